#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};

use super::{
    super::{Warning, process},
    facts, processed,
};
use crate::{process::Facts, release::Release};

/// The application's container after the rewrite, and the variable.
fn rewritten(app: &Value, annotations: &Value, facts: &Facts<'_>) -> (Value, Value) {
    let mut app = app.clone();
    app["name"] = "app".into();
    let pod = json!({
        "metadata": {"annotations": annotations},
        "spec": {"containers": [app, {"name": "istio-proxy"}]},
    });
    let pod = processed(&pod, facts);
    let variable = pod["spec"]["containers"][1]["env"][0]["value"].clone();
    (pod["spec"]["containers"][0].clone(), variable)
}

#[test]
fn http_probes_call_the_agent() {
    let app = json!({"readinessProbe": {"timeoutSeconds": 3, "periodSeconds": 7, "httpGet": {
        "scheme": "HTTPS", "httpHeaders": [{"name": "h", "value": "<"}], "host": "x", "port": 8080,
        "path": "/ready",
    }}});
    let (app, variable) = rewritten(&app, &json!({}), &facts());
    let expected = json!({"timeoutSeconds": 3, "periodSeconds": 7, "httpGet": {
        "scheme": "HTTP", "httpHeaders": [{"name": "h", "value": "<"}], "host": "x",
        "port": 15020, "path": "/app-health/app/readyz",
    }});
    assert_eq!(app["readinessProbe"], expected);
    let expected = r#"{"/app-health/app/readyz":{"httpGet":{"path":"/ready","port":8080,"host":"x","scheme":"HTTPS","httpHeaders":[{"name":"h","value":"\u003c"}]},"timeoutSeconds":3}}"#;
    assert_eq!(variable, expected);
}

#[test]
fn headers_have_a_name_and_a_value_also_where_the_probe_has_none() {
    for (headers, written) in [
        (json!([{"value": "y"}]), r#"[{"name":"","value":"y"}]"#),
        (json!([{"name": "x"}]), r#"[{"name":"x","value":""}]"#),
        (
            json!([{"value": null, "name": "x"}, {}]),
            r#"[{"name":"x","value":""},{"name":"","value":""}]"#,
        ),
    ] {
        let app = json!({"livenessProbe": {"httpGet": {"port": 80, "httpHeaders": headers}}});
        let (_, variable) = rewritten(&app, &json!({}), &facts());
        let expected = format!(
            r#"{{"/app-health/app/livez":{{"httpGet":{{"port":80,"httpHeaders":{written}}}}}}}"#
        );
        assert_eq!(variable, expected.as_str());
    }
}

#[test]
fn tcp_and_grpc_become_http_and_commands_stay() {
    let app = json!({
        "livenessProbe": {"tcpSocket": {"port": 1}, "timeoutSeconds": 0},
        "readinessProbe": {"exec": {"command": ["x"]}},
        "startupProbe": {"grpc": {"port": 15020}},
    });
    let (app, variable) = rewritten(&app, &json!({}), &facts());
    let http = json!({"path": "/app-health/app/livez", "port": 15020});
    assert_eq!(app["livenessProbe"], json!({"httpGet": http, "timeoutSeconds": 0}));
    assert_eq!(app["readinessProbe"], json!({"exec": {"command": ["x"]}}));
    assert_eq!(app["startupProbe"]["httpGet"]["path"], "/app-health/app/startupz");
    let expected = r#"{"/app-health/app/livez":{"tcpSocket":{"port":1}},"/app-health/app/startupz":{"grpc":{"port":15020,"service":null}}}"#;
    assert_eq!(variable, expected);
}

#[test]
fn names_of_ports_are_resolved_and_the_last_one_counts() {
    let mut app = json!({
        "ports": [{"name": "http", "containerPort": 1}, {"name": "http", "containerPort": 2}],
        "livenessProbe": {"httpGet": {"port": "http"}},
    });
    let variable = rewritten(&app, &json!({}), &facts()).1;
    assert_eq!(variable, r#"{"/app-health/app/livez":{"httpGet":{"port":2}}}"#);
    app["livenessProbe"]["httpGet"]["port"] = "other".into();
    let (app, variable) = rewritten(&app, &json!({}), &facts());
    assert_eq!(variable, Value::Null);
    assert_eq!(app["livenessProbe"]["httpGet"]["port"], 15020);
}

#[test]
fn probes_that_cannot_work_are_reported() {
    let warnings = |annotations: &Value| {
        let probe = json!({"httpGet": {"port": "http"}});
        let mut pod = json!({
            "metadata": {"annotations": annotations},
            "spec": {"containers": [{"name": "app", "livenessProbe": probe}, {"name": "istio-proxy"}]},
        });
        process(&mut pod, &json!({}), &facts()).unwrap()
    };
    let unknown = Warning::UnknownPort { container: "app".into(), port: "http".into() };
    assert_eq!(warnings(&json!({})), std::slice::from_ref(&unknown));
    let zero = json!({"status.sidecar.istio.io/port": "0"});
    assert_eq!(warnings(&zero), [unknown, Warning::NoStatusPort]);
}

#[test]
fn lifecycle_handlers_are_rewritten_since_1_25() {
    let app = json!({"lifecycle": {
        "preStop": {"httpGet": {"port": 1}},
        "postStart": {"tcpSocket": {"port": 2, "host": "h"}},
    }});
    let old = Facts { release: Release::new(24, 9), ..facts() };
    assert_eq!(rewritten(&app, &json!({}), &old).1, Value::Null);
    let facts = Facts { release: Release::new(25, 0), ..facts() };
    let (app, variable) = rewritten(&app, &json!({}), &facts);
    assert_eq!(app["lifecycle"]["preStop"]["httpGet"]["path"], "/app-lifecycle/app/prestopz");
    assert_eq!(app["lifecycle"]["postStart"]["httpGet"]["path"], "/app-lifecycle/app/poststartz");
    let expected = r#"{"/app-lifecycle/app/poststartz":{"tcpSocket":{"port":2,"host":"h"}},"/app-lifecycle/app/prestopz":{"httpGet":{"port":1}}}"#;
    assert_eq!(variable, expected);
}

#[test]
fn annotations_decide_about_rewrite_and_port() {
    let app = json!({"livenessProbe": {"httpGet": {"port": 1}}});
    let off = json!({"sidecar.istio.io/rewriteAppHTTPProbers": "false"});
    assert_eq!(rewritten(&app, &off, &facts()).1, Value::Null);
    let unset = Facts { rewrite_probes: false, ..facts() };
    assert_eq!(rewritten(&app, &json!({}), &unset).1, Value::Null);
    let on = json!({"sidecar.istio.io/rewriteAppHTTPProbers": "T"});
    assert_ne!(rewritten(&app, &on, &unset).1, Value::Null);
    for (port, expected) in [("15555", 15555), ("x", 0), ("", 0)] {
        let annotations = json!({"status.sidecar.istio.io/port": port});
        let app = rewritten(&app, &annotations, &facts()).0;
        assert_eq!(app["livenessProbe"]["httpGet"]["port"], expected);
    }
}

#[test]
fn a_pod_without_a_proxy_keeps_its_probes() {
    let pod = json!({"spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {}}}]}});
    assert_eq!(processed(&pod, &facts())["spec"], pod["spec"]);
}

#[test]
fn probes_of_an_earlier_injection_win() {
    let again = |value: &str, release| {
        let pod = json!({
            "metadata": {"annotations": {"sidecar.istio.io/status": ""}},
            "spec": {"containers": [
                {"name": "app", "livenessProbe": {"httpGet": {"port": 1}},
                    "startupProbe": {"httpGet": {"port": 15020}}},
                {"name": "istio-proxy", "env": [{"name": "ISTIO_KUBE_APP_PROBERS", "value": value}]},
            ]},
        });
        let pod = processed(&pod, &Facts { release, ..facts() });
        assert_eq!(pod["spec"]["containers"][1]["env"].as_array().unwrap().len(), 1);
        pod["spec"]["containers"][1]["env"][0]["value"].clone()
    };
    let old = r#"{"/app-health/app/livez":{"httpGet":{"port":9}},"/a":{}}"#;
    let both = r#"{"/a":{},"/app-health/app/livez":{"httpGet":{"port":9}}}"#;
    assert_eq!(again(old, Release::OLDEST), both);
    assert_eq!(again("not JSON", Release::NEWEST), "not JSON");
    let own = r#"{"/app-health/app/livez":{"httpGet":{"port":1}}}"#;
    assert_eq!(again("{}", Release::NEWEST), own);
}

#[test]
fn a_missing_variable_is_added_on_reinjection_since_1_27() {
    let app = json!({"livenessProbe": {"httpGet": {"port": 1}}});
    let status = json!({"sidecar.istio.io/status": "{}"});
    let old = Facts { release: Release::new(26, 8), ..facts() };
    assert_eq!(rewritten(&app, &status, &old).1, Value::Null);
    assert_ne!(rewritten(&app, &status, &facts()).1, Value::Null);
}
