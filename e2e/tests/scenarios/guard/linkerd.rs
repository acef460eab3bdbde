//! Linkerd's annotations, sidecars and the selectors of its webhook.

use injectd_harness::objects::{INJECT, namespace, plain_pod};
use serde_json::{Value, json};

use super::case::{Plan, Row};

const VALUES: &str = include_str!("../../../../crates/core/src/linkerd/values/default.yaml");

/// The values of the pod's annotation; the columns of [`TABLE`].
const POD: [Option<&str>; 6] =
    [None, Some("enabled"), Some("ingress"), Some("disabled"), Some(""), Some("true")];

/// The value of the namespace's annotation, and for each value of the pod's annotation: `x` if the
/// pod is injected.
const TABLE: [(&str, Option<&str>, &str); 6] = [
    ("none", None, ".xx..."),
    ("enabled", Some("enabled"), "xxx.x."),
    ("ingress", Some("ingress"), "xxx.x."),
    ("disabled", Some("disabled"), ".xx..."),
    ("empty", Some(""), ".xx..."),
    ("invalid", Some("true"), "......"),
];

pub(super) fn plan(prefix: &str) -> Plan {
    let mut rows = annotations(prefix);
    rows.extend(specs(prefix));
    rows.extend(left_out(prefix));
    let namespaces = namespaces(prefix);
    Plan {
        mesh: "Linkerd",
        flags: vec![format!("--linkerd-namespace={prefix}-control-plane")],
        serve: vec!["--objects=FILE:objects.json"],
        files: vec![objects(&namespaces)],
        namespaces,
        webhooks: vec![webhook()],
        rows,
        is_injected,
    }
}

/// An installation without token projection: the sidecar needs the mounted token.
pub(super) fn plan_with_mounted_tokens(prefix: &str) -> Plan {
    let usual = plan(prefix);
    let projects = "serviceAccountTokenProjection: true";
    let mut without = in_enabled(prefix, json!({"automountServiceAccountToken": false}));
    without.asks = false;
    Plan {
        flags: vec!["--no-token-projection".to_owned()],
        serve: vec!["--objects=FILE:objects.json", "--values=FILE:values.yaml"],
        files: vec![
            objects(&usual.namespaces),
            ("values.yaml", VALUES.replace(projects, &projects.replace("true", "false"))),
        ],
        rows: vec![in_enabled(prefix, json!({})), without],
        ..usual
    }
}

fn is_injected(pod: &Value) -> bool {
    pod["metadata"]["annotations"]["linkerd.io/proxy-version"].is_string()
}

/// The selectors of Linkerd's chart.
fn webhook() -> Value {
    let not_in =
        |key: &str, values: Value| json!({"key": key, "operator": "NotIn", "values": values});
    let absent = |key: &str| json!({"key": key, "operator": "DoesNotExist"});
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods", "services"], "scope": "Namespaced"});
    let webhook = json!({
        "name": "linkerd-proxy-injector.linkerd.io",
        "namespaceSelector": {"matchExpressions": [
            not_in("config.linkerd.io/admission-webhooks", json!(["disabled"])),
            not_in("kubernetes.io/metadata.name", json!(["kube-system", "cert-manager"])),
        ]},
        "objectSelector": {"matchExpressions": [
            absent("linkerd.io/control-plane-component"), absent("linkerd.io/cni-resource"),
        ]},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "webhooks": [webhook]})
}

/// The file that injectd knows the namespaces by.
fn objects(namespaces: &[Value]) -> (&'static str, String) {
    ("objects.json", json!({"kind": "List", "items": namespaces}).to_string())
}

fn annotation(value: Option<&str>) -> Value {
    value.map_or(json!({}), |value| json!({INJECT: value}))
}

fn namespaces(prefix: &str) -> Vec<Value> {
    let mut all: Vec<_> = TABLE
        .iter()
        .map(|(name, value, _)| {
            namespace(&format!("{prefix}-{name}"), &annotation(*value), &json!({}))
        })
        .collect();
    let enabled = annotation(Some("enabled"));
    let off = json!({"config.linkerd.io/admission-webhooks": "disabled"});
    all.push(namespace(&format!("{prefix}-off"), &enabled, &off));
    all.push(namespace(&format!("{prefix}-control-plane"), &enabled, &json!({})));
    all
}

fn annotations(prefix: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, of_namespace, asks) in TABLE {
        for (of_pod, asks) in POD.into_iter().zip(asks.chars()) {
            let mut pod = plain_pod(&format!("row-{}", rows.len()));
            pod["metadata"]["annotations"] = annotation(of_pod);
            let by_namespace = of_namespace.filter(|mode| matches!(*mode, "enabled" | "ingress"));
            let asked_by = match by_namespace {
                Some(value) => format!("the annotation {INJECT}: {value} of its namespace"),
                None => format!("its annotation {INJECT}: {}", of_pod.unwrap_or_default()),
            };
            let namespace = format!("{prefix}-{name}");
            rows.push(Row { namespace, pod, asks: asks == 'x', is_excused: false, asked_by });
        }
    }
    rows
}

/// A pod of the namespace `enabled` with these fields of its spec.
fn in_enabled(prefix: &str, spec: Value) -> Row {
    let mut pod = plain_pod("spec");
    if let (Some(fields), Value::Object(more)) = (pod["spec"].as_object_mut(), spec) {
        fields.extend(more);
    }
    let asked_by = format!("the annotation {INJECT}: enabled of its namespace");
    Row { namespace: format!("{prefix}-enabled"), pod, asks: true, is_excused: false, asked_by }
}

fn specs(prefix: &str) -> Vec<Row> {
    let app = || json!({"name": "main", "image": "example.com/main:1"});
    let beside =
        |name: &str, image: &str| json!({"containers": [app(), {"name": name, "image": image}]});
    let init =
        |name: &str, image: &str| json!({"initContainers": [{"name": name, "image": image}]});
    let specs = [
        (json!({"hostNetwork": true}), false),
        (json!({"hostNetwork": false}), true),
        (json!({"automountServiceAccountToken": false}), true),
        (beside("linkerd-proxy", "x"), false),
        (beside("istio-proxy", "x"), false),
        (beside("a", "cr.l5d.io/linkerd/proxy:edge-1"), false),
        (beside("a", "gcr.io/istio-release/proxyv2:1"), false),
        (beside("a", "example.com/linkerd/proxy:edge-1"), true),
        (beside("a", "cr.l5d.io/linkerd/proxy-init:v1"), true),
        (beside("linkerd-debug", "cr.l5d.io/linkerd/debug:edge-1"), true),
        (init("linkerd-proxy", "x"), false),
        (init("linkerd-init", "x"), false),
        (init("istio-init", "x"), false),
        (init("a", "cr.l5d.io/linkerd/proxy-init:v1"), false),
        (init("a", "cr.l5d.io/linkerd/proxy:edge-1"), false),
        (init("a", "gcr.io/istio-release/proxy_init:1"), false),
        (init("linkerd-network-validator", "x"), true),
    ];
    specs.into_iter().map(|(spec, asks)| Row { asks, ..in_enabled(prefix, spec) }).collect()
}

/// Pods that the webhook is not called for, and those of the control plane's namespace.
fn left_out(prefix: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for label in ["linkerd.io/control-plane-component", "linkerd.io/cni-resource"] {
        let mut row = Row { asks: false, ..in_enabled(prefix, json!({})) };
        row.pod["metadata"]["labels"] = json!({label: "x"});
        rows.push(row);
    }
    let off =
        Row { namespace: format!("{prefix}-off"), asks: false, ..in_enabled(prefix, json!({})) };
    let namespace = format!("{prefix}-control-plane");
    let control_plane = Row { namespace, is_excused: true, ..in_enabled(prefix, json!({})) };
    let namespace = "kube-system".to_owned();
    let mut system = Row { namespace, asks: false, ..in_enabled(prefix, json!({})) };
    system.pod["metadata"]["annotations"] = annotation(Some("enabled"));
    let mut generated = in_enabled(prefix, json!({}));
    generated.pod["metadata"] = json!({"generateName": "generated-"});
    rows.extend([off, control_plane, system, generated]);
    rows
}
