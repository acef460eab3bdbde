//! Nothing panics on pods, configuration and targets of any shape.

#![expect(clippy::disallowed_types, reason = "pods are trees")]

use injectd_istio::{
    annotations,
    config::{Config, Values},
    decide, detect, image, openshift,
    owner::Owner,
    path::{PathEnvironment, Route, Webhook, route},
    release::Release,
    selection, strip,
};
use serde_json::{Value, json};

const RELEASES: [Release; 3] = [Release::OLDEST, Release::new(26, 0), Release::NEWEST];

const CONFIG: &str = "
policy: enabled
defaultTemplates: [a]
templates: {a: '{{ x'}
aliases: {b: [a]}
neverInjectSelector: [{matchLabels: {a: b}, matchExpressions: [{key: k, operator: In, values: [a]}]}]
injectedAnnotations: {a: b}
";

const VALUES: &str = r#"{"global": {"hub": "h", "tag": "t", "variant": "v", "network": "n",
    "multiCluster": {"clusterName": "c"}, "proxy_init": {"image": "i"},
    "proxy": {"image": "p", "statusPort": 15020, "resources": {"limits": {"cpu": "1"}}}}}"#;

fn pod() -> Value {
    json!({
        "metadata": {
            "name": "a", "generateName": "a-",
            "labels": {
                "sidecar.istio.io/inject": "é", "pod-template-hash": "é",
                "topology.istio.io/network": "n",
            },
            "annotations": {
                "sidecar.istio.io/status": r#"{"containers":["istio-proxy"],"initContainers":[]}"#,
                "proxy.istio.io/overrides": r#"{"containers":[{"name":"x"}]}"#,
                "prometheus.io/port": "15020",
                "inject.istio.io/templates": "a,b,c",
                "traffic.sidecar.istio.io/excludeOutboundIPRanges": "1.2.3.4/é",
                "status.sidecar.istio.io/port": "99999999999999999999999999",
            },
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a-é", "controller": true},
            ],
        },
        "spec": {
            "hostNetwork": false, "nodeName": "n",
            "containers": [
                {"name": "istio-proxy", "securityContext": {"runAsUser": 1, "runAsGroup": 1}},
                {"name": "app", "securityContext": {"runAsUser": 1}},
            ],
            "initContainers": [{"name": "i"}],
        },
    })
}

/// The tree with each of its values replaced by odd ones in turn.
fn odd_trees(tree: &Value) -> Vec<Value> {
    let odd = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!(u64::MAX),
        json!(""),
        json!("é\0\"{"),
        json!([]),
        json!([null, [], 5, "x"]),
        json!({}),
        json!({"name": 5, "": null}),
    ];
    let mut trees = odd.to_vec();
    let children: Vec<(String, &Value)> = match tree {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => return trees,
    };
    for (key, child) in children {
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        for odd in odd_trees(child) {
            let mut changed = tree.clone();
            *changed.pointer_mut(&pointer).expect("the child must be there") = odd;
            trees.push(changed);
        }
    }
    trees
}

#[test]
fn odd_pods_do_not_panic() {
    let config = Config::parse(CONFIG).expect("the configuration must be valid");
    let values = Values::parse(VALUES).expect("the values must be valid");
    let pods = odd_trees(&pod());
    assert!(pods.len() > 300, "{}", pods.len());
    for (mut pod, release) in pods.into_iter().flat_map(|pod| RELEASES.map(|r| (pod.clone(), r))) {
        let decision = decide::decide(&config, release, &pod, "default");
        assert!(!decision.reason.text().is_empty());
        let all = pod.pointer("/metadata/annotations").and_then(Value::as_object);
        let asked = all.and_then(|all| all.get(selection::TEMPLATES_ANNOTATION)?.as_str());
        for name in selection::names(&config, asked).unwrap_or_default() {
            _ = selection::template(&config, name).map_err(|error| error.to_string());
        }
        _ = annotations::validate(all, release, |_| Ok(())).map_err(|error| error.to_string());
        _ = Owner::of(&pod, "default", release);
        _ = strip::strip(&pod, release, 15020).map_err(|error| error.to_string());
        PathEnvironment::default().add_cluster_and_network(&values, None);
        openshift::drop_application_user(&mut pod, release);
    }
}

#[test]
fn odd_configuration_does_not_panic() {
    let config: Value = injectd_yaml::parse(CONFIG, injectd_yaml::Options::default())
        .expect("the configuration must be valid");
    for config in odd_trees(&config) {
        if let Ok(config) = Config::parse(&config.to_string()) {
            assert!(!config.default_templates.is_empty());
        }
    }
    let values: Value = serde_json::from_str(VALUES).expect("the values must be valid");
    for values in odd_trees(&values) {
        let Ok(values) = Values::parse(&values.to_string()) else { continue };
        let image = image::proxy_image(&values, Release::NEWEST, image::ImageType::default());
        assert!(image.contains('/'));
        _ = detect::detect(|_| Some("1.x"), &Config::default(), &values);
    }
}

#[test]
fn odd_targets_do_not_panic() {
    let parts = ["/", "//", ".", "..", "%", "%4", "%2f", "%ff", "é", ":ENV:", "=", "?", "x", "://"];
    for first in parts {
        for second in parts {
            for third in parts {
                for start in ["", "/inject", "/inject/", "http://host/inject"] {
                    let target = format!("{start}{first}{second}{third}");
                    for release in RELEASES {
                        if let Route::Inject(path) = route(&target, &Webhook::of(&target), release)
                        {
                            _ = PathEnvironment::parse(&path);
                        }
                    }
                }
            }
        }
    }
}
