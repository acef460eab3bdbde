#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::reapply;
use crate::{
    budget::Budget,
    process::{Facts, Warning},
    release::Release,
};

static NOTHING: BTreeMap<String, String> = BTreeMap::new();

fn facts() -> Facts<'static> {
    Facts {
        release: Release::NEWEST,
        status_port: 15020,
        tproxy: false,
        hold: false,
        prometheus_merge: true,
        rewrite_probes: true,
        revision: "default",
        environment: &NOTHING,
        injected_annotations: &NOTHING,
    }
}

/// Merges the template into the pod as the injector does and re-applies.
fn injected(original: &Value, rendered: &Value, facts: &Facts<'_>) -> (Value, Vec<Warning>) {
    let mut pod = original.clone();
    injectd_merge::overlay(&mut pod, rendered.clone()).unwrap();
    let budget = Budget::of(&pod, &|| false);
    let warnings = reapply(&mut pod, rendered, original, facts, &budget).unwrap();
    (pod, warnings)
}

fn proxy(fields: &Value) -> Value {
    let mut proxy = fields.clone();
    proxy["name"] = "istio-proxy".into();
    json!({"spec": {"containers": [proxy]}})
}

#[test]
fn the_users_fields_win_and_empty_ones_say_nothing() {
    let user = json!({
        "image": "auto", "args": ["mine"], "command": [], "workingDir": "", "tty": null,
        "env": [{"name": "U", "value": "u"}, {"name": "T2", "value": "user"}],
        "resources": {"limits": {"cpu": "1000m"}}, "unknown": 5,
    });
    let template = json!({
        "image": "proxy", "args": ["theirs"], "command": ["c"], "workingDir": "/",
        "env": [{"name": "T1"}, {"name": "T2", "value": "template"}, {"name": "T3"}],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    });
    let (pod, _) = injected(&proxy(&user), &proxy(&template), &facts());
    let merged = &pod["spec"]["containers"][0];
    assert_eq!(merged["image"], "proxy");
    assert_eq!(merged["args"], json!(["mine"]));
    assert_eq!(merged["command"], json!(["c"]));
    assert_eq!(merged["workingDir"], "/");
    assert_eq!(merged["resources"]["limits"], json!({"cpu": "1000m", "memory": "1Gi"}));
    let env = json!([{"name": "T1"}, {"name": "U", "value": "u"},
        {"name": "T2", "value": "user"}, {"name": "T3"}]);
    assert_eq!(merged["env"], env);
    assert_eq!(merged["unknown"], 5);
    let overrides = pod["metadata"]["annotations"]["proxy.istio.io/overrides"].as_str().unwrap();
    let expected = json!({"containers": [{
        "name": "istio-proxy", "args": ["mine"],
        "env": [{"name": "U", "value": "u"}, {"name": "T2", "value": "user"}],
        "resources": {"limits": {"cpu": "1"}},
    }]});
    assert_eq!(serde_json::from_str::<Value>(overrides).unwrap(), expected);
}

#[test]
fn a_bare_container_is_recorded_with_its_name_and_resources() {
    let (pod, _) = injected(&proxy(&json!({"image": "auto"})), &proxy(&json!({})), &facts());
    let overrides = &pod["metadata"]["annotations"]["proxy.istio.io/overrides"];
    assert_eq!(overrides, r#"{"containers":[{"name":"istio-proxy","resources":{}}]}"#);
    let (pod, _) = injected(&json!({"spec": {"containers": []}}), &proxy(&json!({})), &facts());
    assert!(pod.get("metadata").is_none());
}

#[test]
fn containers_of_the_status_annotation_are_not_the_users() {
    let mut original = proxy(&json!({"args": ["old"]}));
    let status = r#"{"containers":["istio-proxy"],"initContainers":null}"#;
    original["metadata"] = json!({"annotations": {"sidecar.istio.io/status": status}});
    let template = proxy(&json!({"args": ["new"]}));
    let (pod, _) = injected(&original, &template, &facts());
    assert_eq!(pod["spec"]["containers"][0]["args"], json!(["new"]));
    assert_eq!(pod["metadata"], original["metadata"]);
    // Nonsense names no container, and no overrides are recorded.
    for status in ["", "[]", "null", r#"{"containers":"x"}"#, r#"{"containers":[5]}"#] {
        original["metadata"]["annotations"]["sidecar.istio.io/status"] = status.into();
        let (pod, _) = injected(&original, &template, &facts());
        assert_eq!(pod["spec"]["containers"][0]["args"], json!(["old"]), "{status}");
        assert_eq!(pod["metadata"], original["metadata"]);
    }
}

#[test]
fn recorded_overrides_of_an_injected_pod_are_lost() {
    let status = r#"{"containers":["istio-proxy"]}"#;
    let overrides = r#"{"containers":[{"name":"istio-proxy","args":["recorded"]}]}"#;
    let mut original = proxy(&json!({"args": ["recorded"]}));
    original["metadata"] = json!({"annotations": {
        "sidecar.istio.io/status": status, "proxy.istio.io/overrides": overrides,
    }});
    let (pod, warnings) = injected(&original, &proxy(&json!({"args": ["new"]})), &facts());
    assert_eq!(pod["spec"]["containers"][0]["args"], json!(["new"]));
    assert_eq!(warnings, [Warning::LostOverrides("istio-proxy".to_owned())]);
}

#[test]
fn recorded_overrides_come_before_the_pod() {
    let mut original = proxy(&json!({"args": ["pod"]}));
    for key in ["containers", "Containers"] {
        let overrides = format!(r#"{{"{key}":[{{"name":"istio-proxy","args":["recorded"]}}]}}"#);
        original["metadata"] = json!({"annotations": {"proxy.istio.io/overrides": overrides}});
        let (pod, _) = injected(&original, &proxy(&json!({})), &facts());
        assert_eq!(pod["spec"]["containers"][0]["args"], json!(["recorded"]), "{key}");
    }
    for bad in ["{", "5", "[]", r#"{"containers":5}"#, r#"{"initContainers":[{"name":5}]}"#] {
        original["metadata"]["annotations"]["proxy.istio.io/overrides"] = bad.into();
        let budget = Budget::of(&original, &|| false);
        assert!(
            reapply(&mut json!({}), &json!({}), &original, &facts(), &budget).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn a_native_proxy_takes_the_fields_of_a_users_container() {
    let original = json!({"spec": {"containers": [{"name": "istio-proxy", "args": ["mine"]}],
        "initContainers": [{"name": "istio-proxy", "args": ["second"]}]}});
    let rendered = json!({"spec": {"initContainers": [{"name": "istio-proxy"}]}});
    let (pod, _) = injected(&original, &rendered, &facts());
    assert_eq!(pod["spec"]["initContainers"][0]["args"], json!(["mine"]));
    let overrides = pod["metadata"]["annotations"]["proxy.istio.io/overrides"].as_str().unwrap();
    assert!(overrides.starts_with(r#"{"initContainers":[{"#));
    // The other way round the user's init container does not count.
    let original = json!({"spec": {"initContainers": [{"name": "istio-proxy"}]}});
    let (pod, _) = injected(&original, &proxy(&json!({})), &facts());
    assert!(pod.get("metadata").is_none());
}

/// A pod with the user's ids, merged with a template that has one init container.
fn with_ids(ids: &Value, init: &str, facts: &Facts<'_>) -> (Value, Vec<Warning>) {
    let args = ["-x", "-u", "1337", "-u", "1"];
    let mut rendered = proxy(&json!({"securityContext": {"runAsUser": 1337}}));
    rendered["spec"]["initContainers"] = json!([{"name": init, "args": args}]);
    injected(&proxy(&json!({"securityContext": ids})), &rendered, facts)
}

#[test]
fn the_users_uid_is_exempt_from_capture() {
    let ids = json!({"runAsUser": 5, "runAsGroup": 6});
    let (pod, warnings) = with_ids(&ids, "istio-init", &facts());
    let init = &pod["spec"]["initContainers"][0];
    assert_eq!(init["args"], json!(["-x", "-u", "5", "-u", "1"]));
    assert_eq!((init.get("securityContext"), warnings), (None, Vec::new()));
    let (pod, _) = with_ids(&ids, "istio-validation", &facts());
    assert_eq!(pod["spec"]["initContainers"][0]["securityContext"], ids);
    let old = Facts { release: Release::new(19, 10), ..facts() };
    assert_eq!(
        with_ids(&ids, "istio-init", &old).0["spec"]["initContainers"][0]["args"][2],
        "1337"
    );
}

#[test]
fn root_and_groups_do_not_change_the_flag() {
    for ids in [json!({"runAsUser": 0}), json!({"runAsGroup": 6})] {
        let (pod, _) = with_ids(&ids, "istio-validation", &facts());
        let init = &pod["spec"]["initContainers"][0];
        assert_eq!(init["args"][2], "1337");
        assert_eq!(init["securityContext"], ids);
    }
}

#[test]
fn with_tproxy_the_proxy_is_root() {
    let facts = Facts { tproxy: true, ..facts() };
    let (pod, _) = with_ids(&json!({"runAsUser": 5}), "istio-validation", &facts);
    let init = &pod["spec"]["initContainers"][0];
    assert_eq!(pod["spec"]["containers"][0]["securityContext"]["runAsUser"], 0);
    assert_eq!(init["args"][2], "5");
    assert!(init.get("securityContext").is_none());
}

#[test]
fn without_an_init_container_there_is_a_warning() {
    let (_, warnings) = with_ids(&json!({"runAsUser": 5}), "other", &facts());
    assert_eq!(warnings, [Warning::NoInitContainer]);
    assert_eq!(with_ids(&json!({}), "other", &facts()).1, []);
}

/// Steps that it takes to apply containers of a pod once more, all of which the template has.
fn steps(containers: &[Value]) -> Option<usize> {
    let pod = json!({"spec": {"containers": containers}});
    let budget = Budget::of(&pod, &|| false);
    let before = budget.left();
    let applied = reapply(&mut pod.clone(), &pod, &pod, &facts(), &budget);
    applied.is_ok().then(|| before - budget.left())
}

#[test]
fn steps_grow_with_the_number_of_containers() {
    let containers = |count: usize| -> Vec<_> {
        (0..count).map(|index| json!({"name": format!("c{index}"), "image": "i"})).collect()
    };
    let [some, twice] = [1_000, 2_000].map(|count| steps(&containers(count)).expect("a pod"));
    assert!(twice <= 2 * some + 100, "{some} {twice}");
    // Each container of a pod that has a name twice needs a pass over all of them.
    let mut repeated = containers(1_000);
    repeated.push(repeated[0].clone());
    assert_eq!(steps(&repeated), None);
}

#[test]
fn containers_merged_alone_or_in_their_list_are_the_same() {
    let container = |name: &str, image: &str| json!({"name": name, "image": image, "env": [{"name": "A", "value": image}]});
    let own = [container("b", "1"), container("istio-proxy", "2"), container("a", "3")];
    let template = [container("a", "t"), container("istio-proxy", "t"), container("new", "t")];
    let original = json!({"spec": {"containers": own, "initContainers": [container("i", "1")]}});
    let rendered = json!({"spec": {"containers": template, "initContainers": [container("i", "t"), container("b", "t")]}});
    let (alone, _) = injected(&original, &rendered, &facts());
    let mut together = original.clone();
    injectd_merge::overlay(&mut together, rendered.clone()).unwrap();
    for (field, names) in
        [("containers", &["a", "istio-proxy"][..]), ("initContainers", &["i", "b"])]
    {
        for name in names {
            let lists = ["containers", "initContainers"].map(|field| &original["spec"][field]);
            let mut all = lists.into_iter().flat_map(|list| list.as_array().unwrap());
            let container = all.find(|own| own["name"] == *name).unwrap();
            let patch = json!({"spec": {field: [super::overrides::patch(container, None)]}});
            injectd_merge::overlay(&mut together, patch).unwrap();
        }
    }
    assert_eq!(alone["spec"], together["spec"]);
}

#[test]
fn copies_of_a_container_cost_by_their_bytes() {
    let web = json!({"name": "web", "env": [{"name": "A", "value": "a".repeat(100_000)}]});
    let pod = json!({"spec": {"containers": [web]}});
    let rendered = json!({"spec": {"containers": vec![json!({"name": "web"}); 1_000]}});
    let budget = Budget::of(&pod, &|| false);
    let applied = reapply(&mut pod.clone(), &rendered, &pod, &facts(), &budget);
    let error = applied.expect_err("1,000 copies are 100 MB").to_string();
    assert!(error.contains("evaluation budget"), "{error}");
}
