#![expect(clippy::unwrap_used, reason = "tests")]

mod nonsense;
mod probes;
mod prometheus;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Facts, Warning, native_move::native_move, process};
use crate::release::Release;

static NOTHING: BTreeMap<String, String> = BTreeMap::new();

/// The chart's settings.
fn facts() -> Facts<'static> {
    Facts {
        release: Release::NEWEST,
        status_port: 15020,
        tproxy: false,
        hold: false,
        prometheus_merge: false,
        rewrite_probes: true,
        revision: "default",
        environment: &NOTHING,
        injected_annotations: &NOTHING,
    }
}

fn processed(pod: &Value, facts: &Facts<'_>) -> Value {
    let mut pod = pod.clone();
    process(&mut pod, &json!({}), facts).unwrap();
    pod
}

/// A pod with an application and a proxy.
fn pod(annotations: &Value) -> Value {
    json!({
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "app"}, {"name": "istio-proxy"}]},
    })
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn cluster_variables_are_replaced_and_appended_in_order() {
    let mut pod = pod(&json!({}));
    pod["spec"]["containers"][1]["env"] =
        json!([{"name": "B", "valueFrom": {}}, {"name": "X", "value": "x"}, {"name": "B"}]);
    let environment = [("C", ""), ("B", "b")].map(|(key, value)| (key.into(), value.into()));
    let environment = BTreeMap::from(environment);
    let pod = processed(&pod, &Facts { environment: &environment, ..facts() });
    let expected = json!([{"name": "X", "value": "x"}, {"name": "B", "value": "b"}, {"name": "C"}]);
    assert_eq!(pod["spec"]["containers"][1]["env"], expected);
}

#[test]
fn a_native_proxy_gets_the_variables_too() {
    let environment = BTreeMap::from([("A".to_owned(), "a".to_owned())]);
    let pod = json!({"spec": {"initContainers": [{"name": "istio-proxy", "env": null}]}});
    let pod = processed(&pod, &Facts { environment: &environment, ..facts() });
    let env = json!([{"name": "A", "value": "a"}]);
    assert_eq!(pod["spec"]["initContainers"][0]["env"], env);
}

#[test]
fn the_network_becomes_a_label() {
    let environment = BTreeMap::from([("ISTIO_META_NETWORK".to_owned(), "n".to_owned())]);
    let pod = processed(&json!({}), &Facts { environment: &environment, ..facts() });
    assert_eq!(pod["metadata"]["labels"], json!({"topology.istio.io/network": "n"}));
    assert!(processed(&json!({}), &facts())["metadata"].get("labels").is_none());
}

#[test]
fn the_status_names_what_the_templates_bring() {
    let rendered = json!({"spec": {
        "containers": [{"name": "b<"}, {"name": "a"}],
        "volumes": [{"name": "v"}],
        "initContainers": [],
    }});
    let mut pod = pod(&Value::Null);
    process(&mut pod, &rendered, &Facts { revision: "", ..facts() }).unwrap();
    let expected = r#"{"initContainers":null,"containers":["b\u003c","a"],"volumes":["v"],"imagePullSecrets":null,"revision":"default"}"#;
    assert_eq!(pod["metadata"]["annotations"]["sidecar.istio.io/status"], expected);
}

#[test]
fn injected_annotations_are_written_last() {
    let injected = [("sidecar.istio.io/status", "mine"), ("a", "b")];
    let injected = injected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let injected = BTreeMap::from(injected);
    let facts = Facts { injected_annotations: &injected, ..facts() };
    let pod = processed(&pod(&json!({"a": "user", "c": "d"})), &facts);
    let expected = json!({"sidecar.istio.io/status": "mine", "a": "b", "c": "d"});
    assert_eq!(pod["metadata"]["annotations"], expected);
}

#[test]
fn the_proxy_is_last_or_first_if_applications_wait() {
    let pod = json!({"spec": {"containers": [
        {"name": "a"}, {"name": "istio-proxy", "n": 1}, {"name": "b"}, {"name": "istio-proxy", "n": 2},
    ]}});
    let last = processed(&pod, &facts());
    assert_eq!(names(&last["spec"]["containers"]), ["a", "b", "istio-proxy"]);
    assert_eq!(last["spec"]["containers"][2]["n"], 2);
    let first = processed(&pod, &Facts { hold: true, ..facts() });
    assert_eq!(names(&first["spec"]["containers"]), ["istio-proxy", "a", "b"]);
}

#[test]
fn init_containers_have_their_places() {
    for (given, expected) in [
        (
            vec!["x", "enable-core-dump", "istio-proxy", "istio-validation", "istio-init", "y"],
            ["istio-init", "istio-validation", "istio-proxy", "enable-core-dump", "x", "y"]
                .as_slice(),
        ),
        (
            vec!["istio-init", "x", "enable-core-dump", "istio-validation", "y"],
            &["istio-validation", "x", "y", "istio-init", "enable-core-dump"],
        ),
    ] {
        let list: Vec<_> = given.iter().map(|name| json!({"name": name})).collect();
        let pod = processed(&json!({"spec": {"initContainers": list}}), &facts());
        assert_eq!(names(&pod["spec"]["initContainers"]), expected);
    }
}

#[test]
fn the_secure_port_is_copied_from_the_variable() {
    for (annotations, value, expected) in [
        (json!({}), json!("15091"), Some("15091")),
        (json!({"prometheus.istio.io.secure_port": ""}), json!("15091"), None),
        (json!({}), json!("0"), None),
        (json!({}), json!(""), None),
    ] {
        let mut pod = pod(&annotations);
        pod["spec"]["containers"][1]["env"] =
            json!([{"name": "ENVOY_SECURE_MERGED_METRICS_PORT", "value": value}]);
        let newest = processed(&pod, &facts());
        let found = newest["metadata"]["annotations"].get("prometheus.istio.io/secure-port");
        assert_eq!(found.and_then(Value::as_str), expected, "{annotations} {value}");
        let older = processed(&pod, &Facts { release: Release::new(30, 3), ..facts() });
        let found = older["metadata"]["annotations"].get("prometheus.istio.io/secure-port");
        assert_eq!(found, None);
    }
}

#[test]
fn nonsense_is_denied_or_ignored() {
    for pod in [json!(5), json!({"metadata": 5}), json!({"metadata": {"annotations": []}})] {
        assert!(process(&mut pod.clone(), &json!([]), &facts()).is_err(), "{pod}");
    }
    let odd = json!({"spec": {"containers": [null, 5, {"name": 7}, {"name": "istio-proxy",
        "env": "x"}, {"readinessProbe": {"httpGet": {"port": {}}}, "lifecycle": []}],
        "initContainers": {}}});
    process(&mut odd.clone(), &json!(null), &facts()).unwrap();
}

#[test]
fn a_declared_proxy_moves_to_where_the_template_has_it() {
    let rendered = json!({"spec": {"initContainers": [{"name": "istio-proxy"}]}});
    let moves = |asked: Option<&str>, native, release: (u16, u16)| {
        let annotations = asked.map(|asked| json!({"sidecar.istio.io/nativeSidecar": asked}));
        let mut pod = pod(&annotations.unwrap_or_default());
        let release = Release::new(release.0, release.1);
        let warning = native_move(&mut pod, &rendered, native, release);
        (pod["spec"].get("initContainers").is_some(), warning)
    };
    assert_eq!(moves(None, true, (19, 0)), (true, None));
    assert_eq!(moves(None, false, (31, 0)), (false, None));
    assert_eq!(moves(Some("true"), false, (24, 0)), (true, None));
    assert_eq!(moves(Some("true"), false, (23, 6)), (false, None));
    assert_eq!(moves(Some("false"), true, (31, 0)), (false, None));
    assert_eq!(moves(Some(""), true, (31, 0)), (true, None));
    let warning = Warning::NativeSidecar("yes".to_owned());
    assert_eq!(moves(Some("yes"), false, (31, 0)), (true, Some(warning)));
}

#[test]
fn a_proxy_moves_only_if_the_template_is_native() {
    let mut pod = pod(&json!({}));
    let before = pod.clone();
    let sidecar = json!({"spec": {"containers": [{"name": "istio-proxy"}]}});
    assert_eq!(native_move(&mut pod, &sidecar, true, Release::NEWEST), None);
    assert_eq!(pod, before);
}
