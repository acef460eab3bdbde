//! Istio's labels, sidecars and the selectors of its webhooks.

use std::{fs, path::Path};

use injectd_harness::{
    expect::Outcome,
    objects::{namespace, plain_pod},
};
use serde_json::{Value, json};

use super::case::{Plan, Row};

mod settings;

pub(super) use settings::plan_with_settings;

const CONFIG: &str = include_str!("../../../istio/config.yaml");
const VALUES: &str = include_str!("../../../../crates/testkit/src/istio/values.json");
const MESH: &str = include_str!("../../../../crates/testkit/src/istio/mesh.yaml");

const INJECT: &str = "sidecar.istio.io/inject";
const REVISION: &str = "istio.io/rev";
const INJECTION: &str = "istio-injection";
/// The webhook adds it to each pod.
const MARK: &str = "e2e/injector";

/// Name and labels of a namespace, and which pods are injected in it.
type NamespaceRow<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
/// Labels and annotations of a pod.
type PodColumn<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)]);

/// Labels and annotations of the pod; the columns of [`TABLE`].
const POD: [PodColumn<'_>; 12] = [
    (&[], &[]),
    (&[(INJECT, "true")], &[]),
    (&[(INJECT, "false")], &[]),
    (&[(INJECT, "yes")], &[]),
    (&[(INJECT, "")], &[]),
    (&[(REVISION, "canary")], &[]),
    (&[(REVISION, "default")], &[]),
    (&[(REVISION, "unknown")], &[]),
    (&[(INJECT, "true"), (REVISION, "canary")], &[]),
    (&[], &[(INJECT, "true")]),
    (&[], &[(INJECT, "false")]),
    (&[(INJECT, "true")], &[(INJECT, "false")]),
];

/// The labels of the namespace, and for each of [`POD`]: `x` if the pod is injected.
const TABLE: [NamespaceRow<'_>; 9] = [
    ("none", &[], ".x...xx.x..x"),
    ("enabled", &[(INJECTION, "enabled")], "xx.xxxxxxx.x"),
    ("disabled", &[(INJECTION, "disabled")], "............"),
    ("empty", &[(INJECTION, "")], "............"),
    ("default", &[(REVISION, "default")], "xx.xxxxxxx.x"),
    ("canary", &[(REVISION, "canary")], "xx.xxxxxxx.x"),
    ("unknown", &[(REVISION, "unknown")], "............"),
    ("both", &[(INJECTION, "enabled"), (REVISION, "unknown")], "xx.xxxxxxx.x"),
    ("off", &[(INJECTION, "disabled"), (REVISION, "default")], "............"),
];

/// The namespace of a revision without a webhook.
pub(super) fn unknown(prefix: &str) -> String {
    format!("{prefix}-unknown")
}

pub(super) fn plan(prefix: &str) -> Outcome<Plan> {
    let mut rows: Vec<_> = TABLE.iter().flat_map(|row| of_namespace(prefix, row, &POD)).collect();
    rows.extend(specs(prefix));
    let namespaces = TABLE.iter().map(|row| labelled(prefix, row)).collect();
    Ok(Plan {
        mesh: "Istio",
        flags: ["--mesh=istio", "--revision=default,canary"].map(str::to_owned).into(),
        serve: vec![
            "--mesh=istio",
            "--injector-config=FILE:config.yaml",
            "--values=FILE:values.json",
            "--mesh-config=FILE:mesh.yaml",
        ],
        files: files(CONFIG.to_owned()),
        namespaces,
        webhooks: vec![webhooks("default.yaml")?, webhooks("revision.yaml")?],
        rows,
        is_injected: |pod| pod["metadata"]["annotations"][MARK].is_string(),
    })
}

/// A webhook configuration of `deploy/istio-webhook/webhooks`, without an address.
fn webhooks(file: &str) -> Outcome<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/istio-webhook/webhooks");
    let text = fs::read_to_string(folder.join(file))?.replace("${REVISION}", "canary");
    let text = text.replace("${PORT}", "443").replace("${CA_BUNDLE}", "''");
    let text = text.replace("${SERVICE}", "injectd");
    Ok(serde_saphyr::from_str(&text.replace("${NAMESPACE}", "x"))?)
}

fn files(config: String) -> Vec<(&'static str, String)> {
    vec![("config.yaml", config), ("values.json", VALUES.into()), ("mesh.yaml", MESH.into())]
}

fn map(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

fn labelled(prefix: &str, row: &NamespaceRow<'_>) -> Value {
    let (name, labels, _) = row;
    namespace(&format!("{prefix}-{name}"), &json!({}), &map(labels))
}

fn of_namespace(prefix: &str, row: &NamespaceRow<'_>, pods: &[PodColumn<'_>]) -> Vec<Row> {
    let (name, of_namespace, asks) = row;
    let columns = pods.iter().zip(asks.chars()).enumerate();
    let row = |(index, ((labels, annotations), asks)): (usize, (&PodColumn<'_>, char))| {
        let mut pod = plain_pod(&format!("row-{index}"));
        pod["metadata"]["labels"] = map(labels);
        pod["metadata"]["annotations"] = map(annotations);
        let asked_by = asked_by(of_namespace, labels);
        let namespace = format!("{prefix}-{name}");
        Row { namespace, pod, asks: asks == 'x', is_excused: false, asked_by }
    };
    columns.map(row).collect()
}

/// The part of the message that names the label: the first that is present.
fn asked_by(of_namespace: &[(&str, &str)], of_pod: &[(&str, &str)]) -> String {
    let value = |labels: &[(&str, &str)], key: &str| {
        labels.iter().find(|(found, _)| *found == key).map(|(_, value)| (*value).to_owned())
    };
    if value(of_namespace, INJECTION).is_some() {
        "the label istio-injection: enabled of its namespace".to_owned()
    } else if let Some(revision) = value(of_namespace, REVISION) {
        format!("the label istio.io/rev: {revision} of its namespace")
    } else if let Some(revision) = value(of_pod, REVISION) {
        format!("its label istio.io/rev: {revision}")
    } else if value(of_pod, INJECT).is_some_and(|asked| asked == "true") {
        "its label sidecar.istio.io/inject: true".to_owned()
    } else {
        "the setting enableNamespacesByDefault of the webhook".to_owned()
    }
}

/// A pod of the namespace `enabled`.
fn in_enabled(prefix: &str, pod: Value) -> Row {
    let asked_by = "the label istio-injection: enabled of its namespace".to_owned();
    Row { namespace: format!("{prefix}-enabled"), pod, asks: true, is_excused: false, asked_by }
}

fn specs(prefix: &str) -> Vec<Row> {
    let of = |list: &str, name: &str, image: &str| {
        let mut pod = plain_pod("spec");
        let app = pod["spec"]["containers"][0].clone();
        let more = json!({"name": name, "image": image});
        pod["spec"][list] = if list == "containers" { json!([app, more]) } else { json!([more]) };
        in_enabled(prefix, pod)
    };
    let excused = |row: Row| Row { is_excused: true, ..row };
    let annotated = |key: &str, value: &str| {
        let mut pod = plain_pod("annotated");
        pod["metadata"]["annotations"] = json!({key: value});
        in_enabled(prefix, pod)
    };
    let mut on_host = plain_pod("host");
    on_host["spec"]["hostNetwork"] = json!(true);
    let mut system = plain_pod("system");
    system["metadata"]["labels"] = json!({INJECT: "true"});
    let mut generated = plain_pod("");
    generated["metadata"] = json!({"generateName": "generated-"});
    vec![
        Row { asks: false, ..in_enabled(prefix, on_host) },
        Row { namespace: "kube-system".to_owned(), asks: false, ..in_enabled(prefix, system) },
        in_enabled(prefix, generated),
        excused(of("containers", "istio-proxy", "example.com/proxyv2:1")),
        excused(of("initContainers", "istio-proxy", "example.com/proxyv2:1")),
        of("containers", "istio-proxy", "auto"),
        of("containers", "linkerd-proxy", "x"),
        of("initContainers", "istio-init", "x"),
        excused(annotated("sidecar.istio.io/status", "{}")),
        // A template without a container.
        annotated("inject.istio.io/templates", "own"),
    ]
}
