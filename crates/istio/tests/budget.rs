//! The evaluation budget of a pod, with Istio's own templates from `$INJECTD_CORPUS`.

#![expect(clippy::disallowed_types, clippy::print_stdout, reason = "trees; what is skipped")]

use std::{collections::BTreeMap, env, fs, path::Path, sync::Arc};

use injectd_istio::{
    injection::{Injection, Surroundings},
    injector::{Files, Injector},
};
use serde_json::{Value, json};

const RELEASES: [&str; 7] =
    ["1.19.10", "1.22.8", "1.24.6", "1.26.8", "1.28.10", "1.30.3", "master"];
const FILES: [&str; 3] = ["config-default.yaml", "values-default.json", "mesh-default.yaml"];
/// The templates of Istio's configuration that a pod may ask for.
const TEMPLATES: [&str; 4] = ["sidecar", "gateway", "grpc-simple", "grpc-agent"];

fn injector(folder: &Path) -> Injector {
    let [config, values, mesh] =
        FILES.map(|name| fs::read_to_string(folder.join(name)).expect(name));
    let files = Files {
        config: &config,
        values: &values,
        mesh: &mesh,
        shared_mesh: "",
        labels: &BTreeMap::new(),
        release: None,
        revision: "default",
        environment: &BTreeMap::new(),
        allowed_functions: &[],
    };
    Injector::new(files).expect("must be usable")
}

/// A pod with containers as an application has them.
fn pod(templates: &str, containers: usize) -> Value {
    let container = |index: usize| {
        let probe = json!({"httpGet": {"path": "/healthz", "port": 8080}});
        let variable = |n| json!({"name": format!("VARIABLE_{n}"), "value": "a value"});
        json!({
            "name": format!("container-{index}"), "image": "registry.example.com/image:1",
            "ports": [{"containerPort": 8000 + index, "name": format!("port-{index}")}],
            "env": (0..20).map(variable).collect::<Vec<_>>(),
            "livenessProbe": probe, "readinessProbe": probe,
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        })
    };
    json!({
        "metadata": {
            "name": "web-1", "labels": {"app": "web"},
            "annotations": {"inject.istio.io/templates": templates},
        },
        "spec": {
            "containers": (0..containers).map(container).collect::<Vec<_>>(),
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}

fn denial(injector: &Injector, pod: Value) -> Option<String> {
    let injection = Injection::new(injector, Arc::new(pod), "default", "/inject");
    injection.inject(Surroundings::default()).err()
}

#[test]
fn each_template_has_room_for_four_times_twenty_containers() {
    let Some(corpus) = env::var_os("INJECTD_CORPUS") else {
        return println!("skipped: INJECTD_CORPUS is not set");
    };
    for release in RELEASES {
        let injector = injector(&Path::new(&corpus).join("istio").join(release));
        for template in TEMPLATES {
            for containers in [1, 20, 80] {
                let found = denial(&injector, pod(template, containers));
                assert_eq!(found, None, "{release} {template} {containers}");
            }
        }
    }
}

#[test]
fn a_pod_cannot_ask_for_more_than_its_budget() {
    let Some(corpus) = env::var_os("INJECTD_CORPUS") else {
        return println!("skipped: INJECTD_CORPUS is not set");
    };
    let injector = injector(&Path::new(&corpus).join("istio").join("1.30.3"));
    let of = |templates: &str, containers| {
        denial(&injector, pod(templates, containers)).expect("must be denied")
    };
    let many = vec!["sidecar"; 1_000].join(",");
    assert!(of(&many, 1).contains("more than 32 templates"), "{}", of(&many, 1));
    // Each of them reads all of the containers.
    let some = vec!["grpc-agent"; 32].join(",");
    assert!(of(&some, 80).contains("the evaluation budget of"), "{}", of(&some, 80));
}
