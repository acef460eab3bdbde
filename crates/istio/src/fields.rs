//! Reads fields of pods and of configuration that are trees of JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The keys of a pod's lists of containers, in `spec`.
pub(crate) const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

/// An annotation's value; `null` is empty, as Go reads it.
pub(crate) fn annotation<'p>(pod: &'p Value, key: &str) -> Option<&'p str> {
    text_of(annotations(pod)?.get(key)?)
}

pub(crate) fn annotations(pod: &Value) -> Option<&Map<String, Value>> {
    pod.get("metadata")?.get("annotations")?.as_object()
}

/// A label's value; `null` is empty, as Go reads it.
pub(crate) fn label<'p>(pod: &'p Value, key: &str) -> Option<&'p str> {
    text_of(labels(pod)?.get(key)?)
}

pub(crate) fn labels(pod: &Value) -> Option<&Map<String, Value>> {
    pod.get("metadata")?.get("labels")?.as_object()
}

pub(crate) fn text_of(value: &Value) -> Option<&str> {
    if value.is_null() { Some("") } else { value.as_str() }
}

/// A text field of an object, empty if it is missing or of another type.
pub(crate) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The containers in one of [`CONTAINER_LISTS`].
pub(crate) fn containers<'p>(pod: &'p Value, list: &str) -> &'p [Value] {
    let containers = pod.get("spec").and_then(|spec| spec.get(list)).and_then(Value::as_array);
    containers.map_or(&[], Vec::as_slice)
}

/// Go's `%v` of a `map[string]string`: `map[a:b c:d]`.
pub(crate) fn shown_map(map: &BTreeMap<String, String>) -> String {
    let entries: Vec<_> = map.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("map[{}]", entries.join(" "))
}
