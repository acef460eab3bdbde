//! Access to the parts of a pod that the steps read and write.
//!
//! A part of a wrong type counts as absent: the API server has checked the user's part, and the
//! merge checks what templates bring.

use serde_json::{Map, Value, json};

use super::{ProcessError, names::PROXY};

/// Field of the pod's spec.
pub(crate) const CONTAINERS: &str = "containers";
/// Field of the pod's spec.
pub(crate) const INIT_CONTAINERS: &str = "initContainers";

/// A list of the pod's spec; empty if absent.
pub(crate) fn list<'a>(pod: &'a Value, field: &str) -> &'a [Value] {
    let list = pod.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// A list of the pod's spec, if it is there.
pub(crate) fn list_mut<'a>(pod: &'a mut Value, field: &str) -> Option<&'a mut Vec<Value>> {
    pod.get_mut("spec")?.get_mut(field)?.as_array_mut()
}

/// The name of a list element; empty if absent.
pub(crate) fn name(element: &Value) -> &str {
    element.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The first element of this name.
pub(crate) fn find<'a>(list: &'a [Value], wanted: &str) -> Option<&'a Value> {
    list.iter().find(|element| name(element) == wanted)
}

/// The first element of this name.
pub(crate) fn find_mut<'a>(
    pod: &'a mut Value,
    field: &str,
    wanted: &str,
) -> Option<&'a mut Map<String, Value>> {
    let found = list_mut(pod, field)?.iter_mut().find(|element| name(element) == wanted);
    found.and_then(Value::as_object_mut)
}

/// The proxy, which may be a native sidecar.
///
/// Istio: `FindSidecar`.
pub(crate) fn sidecar(pod: &Value) -> Option<&Value> {
    let mut lists = [CONTAINERS, INIT_CONTAINERS].into_iter();
    lists.find_map(|field| find(list(pod, field), PROXY))
}

/// The proxy, which may be a native sidecar.
pub(crate) fn sidecar_mut(pod: &mut Value) -> Option<&mut Map<String, Value>> {
    let mut lists = [CONTAINERS, INIT_CONTAINERS].into_iter();
    let field = lists.find(|field| find(list(pod, field), PROXY).is_some())?;
    find_mut(pod, field, PROXY)
}

/// The annotations, if there are any.
pub(crate) fn annotations(pod: &Value) -> Option<&Map<String, Value>> {
    pod.get("metadata")?.get("annotations")?.as_object()
}

/// The text of an annotation. Go reads null as the empty text.
pub(crate) fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    match annotations(pod)?.get(key)? {
        Value::String(text) => Some(text),
        Value::Null => Some(""),
        _ => None,
    }
}

/// The annotations, created if absent or null.
pub(crate) fn annotations_mut(pod: &mut Value) -> Result<&mut Map<String, Value>, ProcessError> {
    let metadata = metadata_mut(pod)?;
    object_mut(metadata, "annotations").ok_or(ProcessError::NotAnObject("metadata.annotations"))
}

/// The labels, created if absent or null.
pub(crate) fn labels_mut(pod: &mut Value) -> Result<&mut Map<String, Value>, ProcessError> {
    let metadata = metadata_mut(pod)?;
    object_mut(metadata, "labels").ok_or(ProcessError::NotAnObject("metadata.labels"))
}

fn metadata_mut(pod: &mut Value) -> Result<&mut Map<String, Value>, ProcessError> {
    let pod = pod.as_object_mut().ok_or(ProcessError::NotAnObject("the pod"))?;
    object_mut(pod, "metadata").ok_or(ProcessError::NotAnObject("metadata"))
}

/// An object inside another, created if absent or null; `None` if it is of another type.
pub(crate) fn object_mut<'a>(
    parent: &'a mut Map<String, Value>,
    key: &str,
) -> Option<&'a mut Map<String, Value>> {
    if parent.get(key).is_none_or(Value::is_null) {
        parent.insert(key.to_owned(), Value::Object(Map::new()));
    }
    parent.get_mut(key)?.as_object_mut()
}

/// Appends a variable to a container.
pub(crate) fn append_variable(container: &mut Map<String, Value>, name: &str, value: &str) {
    let env = container.entry("env").or_insert(Value::Null);
    if env.is_null() {
        *env = Value::Array(Vec::new());
    }
    if let Some(env) = env.as_array_mut() {
        env.push(variable(name, value));
    }
}

/// A variable as Go writes it: without an empty value.
pub(crate) fn variable(name: &str, value: &str) -> Value {
    if value.is_empty() { json!({"name": name}) } else { json!({"name": name, "value": value}) }
}
