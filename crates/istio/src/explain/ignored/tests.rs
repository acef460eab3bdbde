use std::{collections::BTreeMap, sync::LazyLock};

use injectd_core::explain::{Workload, places::texts};
use injectd_testkit::{generator::typos, istio};
use serde_json::{Value, json};

use super::*;
use crate::revision::Files;

static REVISION: LazyLock<Revision> = LazyLock::new(|| {
    let files = Files {
        config: istio::CONFIG,
        values: istio::VALUES,
        mesh: istio::MESH,
        shared_mesh: "",
        labels: &BTreeMap::new(),
        release: None,
        revision: "default",
        environment: &BTreeMap::new(),
        allowed_functions: &[],
    };
    Revision::new(files).expect("the configuration must be valid")
});

/// What is said of the keys around a pod: `layer key: text`.
fn said(pod: &Value, workload: Option<Workload<'_>>, namespace: &Value) -> Vec<String> {
    let namespace_annotations = texts(Some(namespace), "annotations");
    let places = Places::of(pod, workload, Some(namespace), namespace_annotations);
    let entries = Entries { revision: &REVISION, keys: keys(&REVISION), places: &places };
    let mut said = Vec::new();
    for at in places.iter() {
        for &(key, value) in &at.entries {
            if let Some(problem) = entries.problem(at, key, value) {
                let text = entries.text(at, key, &problem);
                said.push(format!("{} {key}: {text}", at.place.layer().as_str()));
            }
        }
    }
    said
}

fn metadata(map: &str, key: &str) -> Value {
    json!({"metadata": {map: {key: "x"}}})
}

#[test]
fn one_mistake_in_a_key_is_found() {
    let keys = keys(&REVISION);
    let known: Vec<_> =
        REVISION.known_annotations().chain([NAMESPACE_LABEL, REVISION_KEY]).collect();
    let is_note = |key: &&&str| [STATUS_ANNOTATION, OVERRIDES_ANNOTATION].contains(key);
    for key in known.iter().filter(|key| !is_note(key)) {
        for typo in typos::of_key(key).filter(|typo| !known.contains(&&**typo)) {
            let found = keys.suggestions(&typo);
            assert!(found.contains(key), "{typo}: {found:?}");
        }
    }
}

#[test]
fn the_name_behind_the_prefix_decides() {
    let of_pod = |key: &str| said(&metadata("annotations", key), None, &Value::Null);
    for (key, expected) in [
        (
            "sidecar.istio.io/holdApplicationUntilProxyStarts",
            "nothing reads it; holdApplicationUntilProxyStarts is a field of the ProxyConfig: did you \
             mean proxy.istio.io/config?",
        ),
        (
            "sidecar.istio.io/excludeOutboundPorts",
            "nothing reads it; did you mean traffic.sidecar.istio.io/excludeOutboundPorts?",
        ),
        ("istio.io/inject", "nothing reads it; did you mean sidecar.istio.io/inject?"),
        ("sidecar.istio.io/zzqqxx", "nothing reads it"),
        ("istio-injection", "is a label of Namespaces; nothing reads it here"),
        ("istio.io/rev", "is an annotation; the webhooks read the label"),
        (
            "istio-injecton",
            "nothing reads it; did you mean istio-injection in the labels of the namespace?",
        ),
    ] {
        assert_eq!(of_pod(key), [format!("pod {key}: {expected}")]);
    }
    for key in [
        "app",
        "inject",
        "linkerd.io/inject",
        "config.linkerd.io/proxy-log-level",
        "security.istio.io/tlsMode",
        "service.istio.io/canonical-name",
        "topology.istio.io/network",
        "networking.istio.io/tunnel",
        "istio.io/dataplane-mode",
        "sidecar.istio.io/status",
    ] {
        assert_eq!(of_pod(key), [""; 0], "{key}");
    }
}

#[test]
fn a_key_that_is_elsewhere_is_named_with_its_place() {
    let pod = json!({});
    for map in ["annotations", "labels"] {
        let object = metadata(map, INJECT_ANNOTATION);
        let workload = Workload { object: &object, prefix: "/spec/template" };
        let text = format!(
            "nothing reads it in metadata.{map}; it belongs into spec.template.metadata.labels"
        );
        let expected = format!("workload {INJECT_ANNOTATION}: {text}");
        assert_eq!(said(&pod, Some(workload), &Value::Null), [expected]);
        let text = "is read of pods, not of namespaces; it belongs into metadata.labels";
        let expected = format!("namespace {INJECT_ANNOTATION}: {text}");
        assert_eq!(said(&pod, None, &metadata(map, INJECT_ANNOTATION)), [expected]);
    }
    for key in [NAMESPACE_LABEL, REVISION_KEY] {
        assert_eq!(said(&pod, None, &metadata("labels", key)), [""; 0]);
        let expected = format!("namespace {key}: is an annotation; the webhooks read the label");
        assert_eq!(said(&pod, None, &metadata("annotations", key)), [expected]);
    }
    let expected = "namespace istio-injecton: nothing reads it; did you mean istio-injection?";
    assert_eq!(said(&pod, None, &metadata("labels", "istio-injecton")), [expected]);
}
