//! The evaluation budget of a pod, with Istio's own templates from `$INJECTD_CORPUS`.

#![expect(clippy::disallowed_types, clippy::print_stdout, reason = "trees; what is skipped")]

use std::{env, path::Path, sync::Arc};

use injectd_istio::{
    injection::{Injection, PodCluster},
    path::PathEnvironment,
    revision::Revision,
};
use injectd_testkit::istio;
use serde_json::{Value, json};

const RELEASES: [&str; 7] =
    ["1.19.10", "1.22.8", "1.24.6", "1.26.8", "1.28.10", "1.30.3", "master"];
/// The templates of Istio's configuration that a pod may ask for.
const TEMPLATES: [&str; 4] = ["sidecar", "gateway", "grpc-simple", "grpc-agent"];

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

fn denial(revision: &Revision, pod: Value) -> Option<String> {
    let injection = Injection::new(revision, Arc::new(pod), "default", PathEnvironment::default());
    injection.inject(PodCluster::default()).err()
}

#[test]
fn each_template_has_room_for_four_times_twenty_containers() {
    let Some(corpus) = env::var_os("INJECTD_CORPUS").filter(|it| !it.is_empty()) else {
        return println!("skipped: INJECTD_CORPUS is not set");
    };
    for release in RELEASES {
        let mesh = istio::recorded(Path::new(&corpus), release);
        for template in TEMPLATES {
            for containers in [1, 20, 80] {
                let found = denial(mesh.revision(), pod(template, containers));
                assert_eq!(found, None, "{release} {template} {containers}");
            }
        }
    }
}

#[test]
fn a_pod_cannot_ask_for_more_than_its_budget() {
    let Some(corpus) = env::var_os("INJECTD_CORPUS").filter(|it| !it.is_empty()) else {
        return println!("skipped: INJECTD_CORPUS is not set");
    };
    let mesh = istio::recorded(Path::new(&corpus), "1.30.3");
    let of = |templates: &str, containers| {
        denial(mesh.revision(), pod(templates, containers)).expect("must be denied")
    };
    let many = vec!["sidecar"; 1_000].join(",");
    assert!(of(&many, 1).contains("more than 32 templates"), "{}", of(&many, 1));
    // Each of them reads all of the containers.
    let some = vec!["grpc-agent"; 32].join(",");
    assert!(of(&some, 80).contains("the evaluation budget of"), "{}", of(&some, 80));
}

/// A template that pastes an annotation without quotes, as Istio's do.
const PASTING: &str = r#"
policy: enabled
templates:
  sidecar: |
    metadata: {name: x}
    status: {{ index .ObjectMeta.Annotations "example.com/paste" }}
"#;

/// YAML in annotations that is read again or copies itself: a kilobyte of it takes what a megabyte does.
#[test]
fn yaml_of_a_pod_cannot_multiply_itself() {
    let mesh = istio::mesh_of(PASTING, istio::VALUES, istio::MESH);
    let anchors = |value: &str| {
        let open = (0..200).map(|at| format!("&a{at} ["));
        let open = open.fold(String::new(), |all, anchor| all + &anchor);
        format!("{open}{value}{}", "]".repeat(200))
    };
    let aliases = |text: &str| format!("[&a '{text}'{}]", ", *a".repeat(900));
    let values = [
        ("anchors", anchors(&"1,".repeat(5_000)), "anchors and aliases copy more than"),
        ("text in anchors", anchors(&"x".repeat(20_000)), "anchors and aliases copy more than"),
        ("aliases", aliases(&"x".repeat(10_000)), "anchors and aliases copy more than"),
        (
            "lines",
            format!("{}\"x\n{}\"", " ".repeat(2_000), "y\n".repeat(2_000)),
            "too many quoted texts",
        ),
        ("escapes", format!("[{}]", r#""a\'b","#.repeat(10_000)), "too many quoted texts"),
    ];
    for (name, value, expected) in values {
        // The first is read by itself, the second is written by a template as it stands.
        let annotations =
            [("proxy.istio.io/config", format!("x: {value}")), ("example.com/paste", value)];
        for (key, value) in annotations {
            let mut pod = pod("sidecar", 1);
            pod["metadata"]["annotations"][key] = value.into();
            let denial = denial(mesh.revision(), pod).unwrap_or_default();
            assert!(denial.contains(expected), "{name} in {key}: {denial:.300}");
        }
    }
}
