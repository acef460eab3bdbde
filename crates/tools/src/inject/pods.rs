//! Pods and pod templates in manifests.

use injectd_core::{linkerd::annotations::Annotation, object::Kind};
use injectd_k8s::object::texts;
use serde_json::{Map, Value};

use crate::manifests::{Action, Entry, GROUPS, group, text};

/// Where kinds that Linkerd's injector does not know have a pod template: Rollout, `DeploymentConfig`,
/// `CloneSet` and Knative's Service; `PodTemplate`; kinds like `CronJob`; `ScaledJob` of KEDA; those of
/// `AdvancedCronJob` and `UnitedDeployment` of Kruise.
const TEMPLATES: [&str; 10] = [
    "/spec/template",
    "/template",
    "/spec/jobTemplate/spec/template",
    "/spec/jobTargetRef/template",
    "/spec/template/jobTemplate/spec/template",
    "/spec/template/broadcastJobTemplate/spec/template",
    "/spec/template/deploymentTemplate/spec/template",
    "/spec/template/statefulSetTemplate/spec/template",
    "/spec/template/advancedStatefulSetTemplate/spec/template",
    "/spec/template/cloneSetTemplate/spec/template",
];

/// The kinds that Linkerd's injector knows in any case, as Kubernetes spells them.
const KINDS: [&str; 10] = [
    "Pod",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "Service",
    "Namespace",
];

/// The kind of an object of that name.
pub(crate) fn kind_of(object: &Value, name: &str) -> Kind {
    if GROUPS.contains(&group(object)) { Kind::of(name) } else { Kind::Other }
}

/// Where an object of any kind has what looks like a pod template: one with containers, at a place
/// where known kinds have it.
pub(crate) fn template_of(object: &Value) -> Option<&'static str> {
    let has_containers = |prefix: &&str| {
        object.pointer(&format!("{prefix}/spec/containers")).is_some_and(Value::is_array)
    };
    TEMPLATES.into_iter().find(has_containers)
}

/// The entry of an object of a kind that Linkerd's injector does not know.
pub(crate) fn without_injector(object: &Value, kind: &str) -> Entry {
    if kind.is_empty() {
        let entry = Entry::of(object, kind, Action::Unchanged);
        return entry.because("the object has no kind; it is printed as it is");
    }
    match template_of(object) {
        None => Entry::of(object, kind, Action::Unchanged),
        Some(prefix) => {
            let path = prefix.replace('/', ".");
            let group = group(object);
            let of_group = if group.is_empty() { String::new() } else { format!(" of {group}") };
            let message = format!(
                "Linkerd's injector does not know the kind {kind}{of_group}; the webhook injects its pods if \
                 their namespace, or {path}.metadata.annotations, has linkerd.io/inject: enabled",
                path = path.trim_start_matches('.'),
            );
            let entry = Entry::of(object, kind, Action::Skipped).because(message);
            Entry { reasons: vec!["unsupported_resource"], has_pods: true, ..entry }
        }
    }
}

/// Rejects an object without the spec of a pod, and one whose kind or metadata an API server would not
/// read.
pub(crate) fn must_have_spec(object: &Value, prefix: &str) -> Result<(), String> {
    must_be_readable(object)?;
    let path = format!("{prefix}/spec");
    match object.pointer(&path) {
        Some(spec) if !spec.is_null() => Ok(()),
        _ => Err(format!("{} is missing", dotted(&path))),
    }
}

/// Rejects an object whose kind is not spelled as kubectl finds it, or whose names are not texts, as a
/// plain `n` or `5` in YAML.
pub(super) fn must_be_readable(object: &Value) -> Result<(), String> {
    const TEXTS: [&str; 3] = ["/metadata/name", "/metadata/generateName", "/metadata/namespace"];
    let kind = text(object, "/kind");
    if let Some(known) =
        KINDS.iter().find(|known| known.eq_ignore_ascii_case(kind) && **known != kind)
    {
        return Err(format!("kind {kind} is not known to Kubernetes; write {known}"));
    }
    let is_other = |value: &Value| !value.is_string() && !value.is_null();
    let other = |path: &&str| object.pointer(path).is_some_and(is_other);
    let Some(path) = TEXTS.into_iter().find(other) else { return Ok(()) };
    let found = match object.pointer(path) {
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::Array(_)) => "a list",
        _ => "a mapping",
    };
    Err(format!("{} must be a text, but it is {found}; quote it", dotted(path)))
}

fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// A warning for each port that the proxy does not handle.
pub(super) fn udp_warnings(object: &Value, kind: Kind) -> Vec<String> {
    let list = |name| items(object.pointer(&format!("{}/spec/{name}", kind.path_prefix())));
    let is_native_sidecar = |container: &&Value| text(container, "/restartPolicy") == "Always";
    let sidecars = list("initContainers").iter().filter(is_native_sidecar);
    let mut warnings = Vec::new();
    for container in sidecars.chain(list("containers")) {
        for port in items(container.get("ports")) {
            if text(port, "/protocol") == "UDP" {
                let (name, port) = (text(container, "/name"), &port["containerPort"]);
                warnings.push(format!(
                    "port {port} of container {name:?} uses UDP; the proxy handles TCP only"
                ));
            }
        }
    }
    warnings
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Gives the object metadata, if it has none.
pub(super) fn ensure_metadata(object: &mut Value) {
    map_in(object, "metadata");
}

/// Sets an annotation of the pod at this prefix.
pub(super) fn annotate(object: &mut Value, prefix: &str, key: &str, value: &str) {
    let Some(pod) = object.pointer_mut(prefix) else { return };
    let Some(metadata) = map_in(pod, "metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), value.into());
    }
}

/// Gives an annotation the value that it had before.
pub(super) fn restore(object: &mut Value, prefix: &str, key: &str, value: Option<String>) {
    if let Some(value) = value {
        return annotate(object, prefix, key, &value);
    }
    let annotations = object.pointer_mut(&format!("{prefix}/metadata/annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        // A plain `remove` would change the order of the annotations that stay.
        annotations.shift_remove(key);
    }
}

/// An annotation of the pod at this prefix.
pub(super) fn annotation<'o>(object: &'o Value, prefix: &str, key: &str) -> Option<&'o str> {
    object.pointer(&format!("{prefix}/metadata/annotations"))?.get(key)?.as_str()
}

/// Linkerd's annotations of a pod template at this prefix.
pub(super) fn linkerd_annotations(object: &Value, prefix: &str) -> Vec<(String, String)> {
    if prefix.is_empty() {
        return Vec::new();
    }
    let annotations = texts(object, &format!("{prefix}/metadata/annotations"));
    annotations.filter(|(key, _)| Annotation::of(key).is_some()).collect()
}

/// The mapping at a key, which is made if it is null or absent; `None` if something else is there.
fn map_in<'o>(object: &'o mut Value, key: &str) -> Option<&'o mut Map<String, Value>> {
    let value = object.as_object_mut()?.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_are_those_of_all_known_kinds() {
        let known = Kind::ALL.iter().filter(|kind| **kind != Kind::Other);
        let mut known: Vec<_> = known.map(|kind| kind.as_str()).collect();
        let mut spelled = KINDS.map(str::to_ascii_lowercase);
        known.sort_unstable();
        spelled.sort_unstable();
        assert_eq!(spelled, *known);
    }
}
