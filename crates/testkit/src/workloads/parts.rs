//! Parts of the pods of workloads, and random texts.

use std::iter;

use serde_json::{Value, json};

use super::Kind;
use crate::generator::random::Random;

/// Kubernetes' alphabet of generated names.
// Without vowels there are no words in such names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

pub(super) fn container(random: &mut Random, name: &str, number: usize) -> Value {
    let port = 8080 + number;
    let (action, check) = if random.percent(70) {
        ("httpGet", json!({"path": "/healthz", "port": port, "scheme": "HTTP"}))
    } else {
        ("tcpSocket", json!({"port": port}))
    };
    let probe = json!({
        action: check,
        "initialDelaySeconds": 5,
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    });
    let suffix = if number == 0 { String::new() } else { format!("-{number}") };
    let args = [format!("--listen=:{port}"), format!("--shards={}", random.between(1, 9))];
    let count = random.between(3, 15);
    let setting = |index| {
        let value = format!("{:x}", bits(random) >> 32);
        json!({"name": format!("SETTING_{index:02}"), "value": value})
    };
    let env: Vec<_> = (0..count).map(setting).collect();
    json!({
        "name": format!("{name}{suffix}"),
        "image": "",
        "args": args,
        "ports": [{"name": format!("http{suffix}"), "containerPort": port, "protocol": "TCP"}],
        "env": env,
        "resources": {
            "limits": {"memory": format!("{}Mi", random.pick(&[128, 256, 512]))},
            "requests": {"cpu": format!("{}m", random.pick(&[50, 100, 250])), "memory": "128Mi"},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    })
}

/// An init container.
pub(super) fn migration(random: &mut Random, name: &str) -> Value {
    json!({
        "name": "migrate",
        "image": format!("registry.example/{name}-migrate:{}", random.below(100)),
        "args": ["up"],
        "resources": {},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    })
}

/// The volume that the plugin `ServiceAccount` adds, with a name of its own for each pod.
pub(super) fn mount_token(spec: &mut Value, name: &str) {
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]);
    let volume = json!({"name": name, "projected": {"sources": sources, "defaultMode": 420}});
    push(spec, "volumes", volume);
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    let mount = json!({"name": name, "readOnly": true, "mountPath": path});
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            push(container, "volumeMounts", mount.clone());
        }
    }
}

fn push(owner: &mut Value, list: &str, item: Value) {
    owner[list].as_array_mut().expect("the part must have the list").push(item);
}

/// The node of a pod of a `DaemonSet`, as its controller chooses it.
pub(super) fn node_affinity(node: &str) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let terms = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
}

pub(super) fn tolerations(kind: Kind) -> Value {
    let toleration = |what| {
        let key = format!("node.kubernetes.io/{what}");
        let mut toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
        if kind != Kind::DaemonSet {
            toleration["tolerationSeconds"] = 300.into();
        }
        toleration
    };
    ["not-ready", "unreachable"].map(toleration).to_vec().into()
}

pub(super) fn letters(random: &mut Random, count: usize) -> String {
    iter::repeat_with(|| char::from(random.pick(LETTERS))).take(count).collect()
}

/// A uid of version 4.
pub(super) fn uid(random: &mut Random) -> String {
    let random = bits(random) & !(0xf << 76) & !(3 << 62);
    let hex = format!("{:032x}", random | 4 << 76 | 2 << 62);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    parts.join("-")
}

pub(super) fn bits(random: &mut Random) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}
