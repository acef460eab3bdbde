//! Reviews of pods that are expensive for an injector, of any size.

use serde_json::{Map, Value, json};

const TEMPLATES: &str = "inject.istio.io/templates";
const PROXY_CONFIG: &str = "proxy.istio.io/config";
const USER_VOLUME: &str = "sidecar.istio.io/userVolume";
const STATUS: &str = "sidecar.istio.io/status";
const LOG_LEVEL: &str = "sidecar.istio.io/logLevel";
const CPU: &str = "sidecar.istio.io/proxyCPU";
/// Linkerd injects no pod without it.
const INJECT: &str = "linkerd.io/inject";

/// A pod of so many small containers, `c0` and so on.
pub(super) fn pod(annotations: &[(&str, String)], containers: usize) -> Value {
    let mut all = Map::from_iter([(INJECT.to_owned(), json!("enabled"))]);
    all.extend(annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
    let containers =
        (0..containers).map(|index| json!({"name": format!("c{index}"), "image": "x"}));
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "attack", "annotations": all, "labels": {}},
        "spec": {"containers": containers.collect::<Vec<_>>()},
    })
}

pub(super) fn review_in(namespace: &str, pod: &Value) -> Vec<u8> {
    let request = json!({
        "uid": "attack",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": namespace,
        "object": pod,
    });
    let api_version = "admission.k8s.io/v1";
    let review = json!({"kind": "AdmissionReview", "apiVersion": api_version, "request": request});
    review.to_string().into()
}

pub(super) fn review(pod: &Value) -> Vec<u8> {
    review_in("attacker", pod)
}

/// A pod of one container with an annotation.
pub(super) fn annotated(key: &str, value: String) -> Vec<u8> {
    review(&pod(&[(key, value)], 1))
}

/// One template, as often as that; `note` makes bodies of which no two are alike.
pub(super) fn repeated_template(count: usize, note: usize) -> Vec<u8> {
    let templates = vec!["sidecar"; count].join(",");
    review(&pod(&[(TEMPLATES, templates), (CPU, format!("{}m", note + 1))], 1))
}

/// A template with an entry for each container.
pub(super) fn many_containers(template: &str, count: usize) -> Vec<u8> {
    review(&pod(&[(TEMPLATES, template.to_owned())], count))
}

/// A pod with a `ProxyConfig` of so many keys of proxyMetadata.
pub(super) fn proxy_config(keys: usize) -> Value {
    let metadata = (0..keys).map(|index| (format!("K{index:05}"), json!("v")));
    let config = json!({"proxyMetadata": metadata.collect::<Map<_, _>>()});
    pod(&[(PROXY_CONFIG, config.to_string())], 1)
}

pub(super) fn many_keys(count: usize) -> Vec<u8> {
    review(&proxy_config(count))
}

pub(super) fn many_labels(count: usize) -> Vec<u8> {
    let mut pod = pod(&[], 1);
    let labels = (0..count).map(|index| (format!("l{index:06}"), json!("v")));
    pod["metadata"]["labels"] = labels.collect::<Map<_, _>>().into();
    review(&pod)
}

/// A `ProxyConfig` with a list in 250 anchors, each of which copies what is inside of it.
pub(super) fn nested_anchors(length: usize) -> Vec<u8> {
    let opened: Vec<_> = (0..250).map(|index| format!("&a{index} [")).collect();
    let items = "1,".repeat(length / 2);
    annotated(PROXY_CONFIG, format!("x: {}{items}{}", opened.concat(), "]".repeat(250)))
}

/// A `ProxyConfig` with texts in quotes that only YAML 1.1 allows, each read anew.
pub(super) fn quoted_texts(length: usize) -> Vec<u8> {
    annotated(PROXY_CONFIG, format!("x: [{}]", r#""a\'b","#.repeat(length / 7)))
}

/// Volumes with these names, as an annotation asks for them.
pub(super) fn volumes_in(namespace: &str, names: impl Iterator<Item = String>) -> Vec<u8> {
    let volumes: Map<_, _> = names.map(|name| (name, json!({"emptyDir": {}}))).collect();
    review_in(namespace, &pod(&[(USER_VOLUME, Value::from(volumes).to_string())], 1))
}

pub(super) fn many_volumes(count: usize) -> Vec<u8> {
    volumes_in("attacker", (0..count).map(|index| format!("volume-{index:05}")))
}

/// The mark of an earlier injection, with a name for each container.
pub(super) fn stripped_names(count: usize) -> Vec<u8> {
    let names: Vec<_> = (0..count).map(|index| format!("c{index}")).collect();
    let status = json!({"initContainers": null, "containers": names});
    review(&pod(&[(STATUS, status.to_string())], count))
}

/// A list of containers, pasted into the template through a value that it does not quote. Each is a
/// container of the pod. With `names`, the pod has that many, and the list repeats them.
pub(super) fn pasted_containers(length: usize, names: Option<usize>) -> Vec<u8> {
    // A name stands in the value, and often in the pod: 21 bytes, and 33.
    let count = names.map_or(length / 55, |names| (length - 33 * names) / 21);
    let names = names.unwrap_or(count);
    let lines: Vec<_> = (0..count).map(|index| format!("\n  - name: c{}", index % names)).collect();
    // The list of the proxy's arguments goes on after the value.
    review(&pod(&[(LOG_LEVEL, format!("x{}\n    args:", lines.concat()))], names))
}

/// A pod with so many annotations that no release reads.
pub(super) fn unknown_annotations(begin: &str, count: usize) -> Value {
    let keys: Vec<_> = (0..count).map(|index| format!("{begin}{index:06}")).collect();
    let annotations: Vec<_> = keys.iter().map(|key| (&**key, "v".to_owned())).collect();
    pod(&annotations, 1)
}
