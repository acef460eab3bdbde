//! Objects of manifests: the items of Lists, and where an object has its pod.

use injectd_core::object::Kind;
use serde_json::{Map, Value};

/// The key of the objects of a List.
pub(crate) const ITEMS: &str = "items";

/// The API groups of the kinds that injection knows; a custom resource may use their names.
pub(crate) const GROUPS: [&str; 4] = ["", "apps", "batch", "extensions"];

/// What a List has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<'l> {
    pub(crate) items: &'l [Value],
    /// The kind that the name of the List's kind gives them.
    pub(crate) item_kind: &'l str,
}

/// The items of a List of any kind. Of a custom resource whose kind ends in List, items may be anything:
/// it is one if it has no name and its items are objects.
pub(crate) fn listed(object: &Value) -> Option<Listed<'_>> {
    let item_kind = object.get("kind")?.as_str()?.strip_suffix("List")?;
    let items = match object.get(ITEMS)? {
        Value::Null => &[],
        items => items.as_array()?.as_slice(),
    };
    let is_kubernetes = GROUPS.contains(&group(object));
    let is_named = object.pointer("/metadata/name").is_some();
    let is_list = is_kubernetes || !is_named && items.iter().all(Value::is_object);
    is_list.then_some(Listed { items, item_kind })
}

/// The API group of an object; empty for that of pods.
pub(crate) fn group(object: &Value) -> &str {
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
}

/// The kind of `OpenShift` that `istioctl kube-inject` knows, and its group.
const DEPLOYMENT_CONFIG: (&str, &str) = ("DeploymentConfig", "apps.openshift.io");

/// Where an object has its pod or pod template; `None` if it has none that a mesh injects.
pub(crate) fn pod_prefix(object: &Value, kind: Kind, name: &str) -> Option<&'static str> {
    match kind {
        Kind::Pod | Kind::Workload(_) | Kind::CronJob => Some(kind.path_prefix()),
        _ if (name, group(object)) == DEPLOYMENT_CONFIG => Some(Kind::Workload("").path_prefix()),
        Kind::Service | Kind::Namespace | Kind::Other => None,
    }
}

/// The pod of a template, or the pod itself.
pub(crate) fn pod_of(object: &Value, prefix: &str) -> Value {
    let template = object.pointer(prefix).unwrap_or(object);
    if prefix.is_empty() {
        return template.clone();
    }
    let mut pod = Map::new();
    pod.insert("apiVersion".to_owned(), "v1".into());
    pod.insert("kind".to_owned(), "Pod".into());
    pod.extend(template.as_object().cloned().unwrap_or_default());
    Value::Object(pod)
}
