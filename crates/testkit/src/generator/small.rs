//! Small cases for proptest, which can shrink them: a few annotations with any text, a few ports,
//! and one of the named releases.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use serde_json::{Map, Value, json};

use super::annotations::{ANNOTATIONS, INJECT};
use super::configs::Config;
use super::releases::NAMED;
use super::subjects::Subjects;

/// A pod with annotations and ports in a namespace with annotations.
#[derive(Clone, Debug)]
pub struct Small {
    /// Index of the named release.
    pub release: usize,
    /// The namespace's annotations: index of the key, and value.
    pub namespace: Vec<(usize, String)>,
    /// The pod's annotations.
    pub pod: Vec<(usize, String)>,
    /// Names and numbers of ports; the flag marks ports of the init container.
    pub ports: Vec<(String, i32, bool)>,
    /// Added and dropped capabilities.
    pub capabilities: Option<(Vec<String>, Vec<String>)>,
}

/// Any small case.
pub fn strategy() -> impl Strategy<Value = Small> {
    let text = || {
        prop_oneof![
            4 => "[0-9a-z+,.: -]{0,8}",
            2 => any::<String>(),
            1 => Just("enabled".to_owned()),
            1 => Just("true".to_owned()),
        ]
    };
    let annotations = move || vec((0..ANNOTATIONS.len(), text()), 0..4);
    let port = ("[a-z0-9-]{0,4}", any::<i32>(), any::<bool>());
    let names = || vec(prop_oneof!["[A-Z_]{0,6}", Just("NET_RAW".to_owned())], 0..3);
    let capabilities = proptest::option::of((names(), names()));
    let parts = (0..NAMED.len(), annotations(), annotations(), vec(port, 0..4), capabilities);
    parts.prop_map(|(release, namespace, pod, ports, capabilities)| Small {
        release,
        namespace,
        pod,
        ports,
        capabilities,
    })
}

impl Small {
    /// Both subjects in a cluster whose namespace has the case's annotations.
    pub fn subjects(&self) -> Subjects {
        let mut config = Config::plain(NAMED[self.release]);
        let mut annotations = words(&self.namespace);
        annotations.insert(INJECT.to_owned(), "enabled".into());
        config.namespaces.insert("shop".to_owned(), annotations.into());
        Subjects::of(config)
    }

    /// The review.
    pub fn review(&self) -> Value {
        let ports = |of_init: bool| -> Value {
            let ports = self.ports.iter().filter(|(.., init)| *init == of_init);
            ports.map(|(name, port, _)| json!({"name": name, "containerPort": port})).collect()
        };
        let mut container = json!({"name": "app", "ports": ports(false)});
        if let Some((add, drop)) = &self.capabilities {
            container["securityContext"] = json!({"capabilities": {"add": add, "drop": drop}});
        }
        json!({
            "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {"uid": "u", "namespace": "shop", "object": {
                "kind": "Pod",
                "metadata": {"name": "web", "annotations": words(&self.pod)},
                "spec": {
                    "containers": [container],
                    "initContainers": [{"name": "init", "ports": ports(true)}],
                },
            }},
        })
    }
}

fn words(annotations: &[(usize, String)]) -> Map<String, Value> {
    let annotations = annotations.iter();
    let words = annotations.map(|(at, text)| (ANNOTATIONS[*at].0.to_owned(), text.as_str().into()));
    words.collect()
}
