//! Undoes in a recorded pod what came after the templates.

use injectd_istio::{process::Facts, release::Release};
use serde_json::{Map, Value, json};

use super::case::Case;

const STATUS: &str = "sidecar.istio.io/status";
const LISTS: [&str; 2] = ["containers", "initContainers"];
const MOVED: [&str; 4] = ["istio-proxy", "istio-init", "istio-validation", "enable-core-dump"];

fn list<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + Clone {
    pod["spec"][field].as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// A pod with the names that the recorded status says the templates have.
pub(crate) fn rendered(recorded: &Value) -> Value {
    let text = recorded["metadata"]["annotations"][STATUS].as_str().unwrap_or_default();
    let status: Value = serde_json::from_str(text).unwrap_or_default();
    let mut spec = Map::new();
    for field in ["containers", "initContainers", "volumes", "imagePullSecrets"] {
        let names = status[field].as_array().map_or(&[][..], Vec::as_slice);
        let elements = names.iter().map(|name| json!({"name": name})).collect();
        spec.insert(field.to_owned(), elements);
    }
    json!({"spec": spec})
}

/// The recorded pod before the steps of `process`.
pub(crate) fn processed(case: &Case, recorded: &Value, facts: &Facts<'_>) -> Value {
    let mut pod = recorded.clone();
    annotations(&mut pod, case, facts);
    label(&mut pod, case);
    for field in LISTS {
        let Some(containers) = pod["spec"][field].as_array_mut() else { continue };
        for container in containers.iter_mut() {
            if container["name"] == "istio-proxy" {
                variables(container, case);
            } else {
                probes(container, field, case, facts.release);
            }
        }
        let (moved, mut others): (Vec<_>, Vec<_>) = std::mem::take(containers)
            .into_iter()
            .partition(|one| MOVED.iter().any(|name| one["name"] == *name));
        let middle = others.len() / 2;
        others.splice(middle..middle, moved);
        *containers = others;
    }
    pod
}

fn restore(map: &mut Map<String, Value>, key: &str, original: &Value) {
    match original.get(key) {
        Some(value) => map.insert(key.to_owned(), value.clone()),
        None => map.shift_remove(key),
    };
}

fn is_prometheus(key: &str) -> bool {
    let key = key.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    let keys = ["prometheus_io_scrape", "prometheus_io_port", "prometheus_io_path"];
    let of_istio = ["prometheus_istio_io_scrape_targets", "prometheus_istio_io_secure_port"];
    keys.contains(&&*key) || of_istio.contains(&&*key)
}

fn annotations(pod: &mut Value, case: &Case, facts: &Facts<'_>) {
    let original = &case.object["metadata"]["annotations"];
    let Some(annotations) = pod["metadata"]["annotations"].as_object_mut() else { return };
    restore(annotations, STATUS, original);
    for key in facts.injected_annotations.keys() {
        restore(annotations, key, original);
    }
    annotations.retain(|key, _| !is_prometheus(key));
    for (key, value) in original.as_object().into_iter().flatten() {
        if is_prometheus(key) {
            annotations.insert(key.clone(), value.clone());
        }
    }
}

fn label(pod: &mut Value, case: &Case) {
    if let Some(labels) = pod["metadata"]["labels"].as_object_mut() {
        restore(labels, "topology.istio.io/network", &case.object["metadata"]["labels"]);
    }
}

/// An earlier injection's variables get their earlier values; new ones go.
fn variables(proxy: &mut Value, case: &Case) {
    let mut lists = LISTS.iter().flat_map(|field| list(&case.object, field));
    let before = lists.find(|one| one["name"] == "istio-proxy").cloned().unwrap_or_default();
    let Some(env) = proxy["env"].as_array_mut() else { return };
    let added = ["ISTIO_KUBE_APP_PROBERS", "ISTIO_PROMETHEUS_ANNOTATIONS"];
    let earlier = before["env"].as_array().map_or(&[][..], Vec::as_slice);
    let mut earlier = added.map(|name| earlier.iter().filter(move |one| one["name"] == name));
    env.retain_mut(|variable| {
        let Some(index) = added.iter().position(|name| variable["name"] == *name) else {
            return true;
        };
        let value = earlier[index].next();
        value.is_some_and(|value| {
            variable.clone_from(value);
            true
        })
    });
}

fn probes(container: &mut Value, field: &str, case: &Case, release: Release) {
    let original = list(&case.object, field).find(|one| one["name"] == container["name"]);
    let (Some(original), Some(container)) = (original, container.as_object_mut()) else { return };
    for field in ["readinessProbe", "livenessProbe", "startupProbe"] {
        restore(container, field, original);
    }
    if release >= Release::new(25, 0) {
        restore(container, "lifecycle", original);
    }
}

/// The recorded pod before the user's containers were re-applied: without the record of them and
/// without the user's uid in the arguments.
pub(crate) fn reapplied(case: &Case, recorded: &Value) -> Value {
    let mut pod = recorded.clone();
    if let Some(annotations) = pod["metadata"]["annotations"].as_object_mut() {
        restore(annotations, "proxy.istio.io/overrides", &case.object["metadata"]["annotations"]);
    }
    let mut proxies = LISTS.iter().flat_map(|field| list(&case.object, field));
    let proxy = proxies.find(|one| one["name"] == "istio-proxy").cloned().unwrap_or_default();
    let uid = proxy["securityContext"]["runAsUser"].as_i64().filter(|uid| *uid != 0);
    for container in pod["spec"]["initContainers"].as_array_mut().into_iter().flatten() {
        let is_capture =
            ["istio-init", "istio-validation"].iter().any(|name| container["name"] == *name);
        let args = container["args"].as_array_mut().filter(|_| is_capture && uid.is_some());
        let Some(args) = args else { continue };
        let flag = args.iter().position(|argument| argument == "-u");
        if let Some(value) = flag.and_then(|flag| args.get_mut(flag + 1)) {
            *value = "1337".into();
        }
    }
    pod
}
