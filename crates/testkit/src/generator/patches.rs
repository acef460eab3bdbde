//! Checks that a patch adds a sidecar to an object and changes nothing else.

use serde_json::Value;

/// Applies a patch with a third-party library.
pub fn applied(object: &Value, patch: &[Value]) -> Result<Value, String> {
    let patch: json_patch::Patch = serde_json::from_value(patch.iter().cloned().collect())
        .map_err(|error| error.to_string())?;
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &patch).map_err(|error| error.to_string())?;
    Ok(patched)
}

/// Whether an object has the parts that a patch needs: metadata, or a template for kinds with one,
/// and a list of containers.
pub fn can_be_patched(object: &Value, kind: &str) -> bool {
    let Some(pod) = object.pointer(prefix(kind)) else {
        return false;
    };
    let metadata = pod["metadata"].is_object() || !prefix(kind).is_empty() && pod.is_object();
    metadata && pod["spec"]["containers"].is_array()
}

/// The path of the pod in an object.
pub fn prefix(kind: &str) -> &'static str {
    match kind.to_lowercase().as_str() {
        "deployment"
        | "replicaset"
        | "statefulset"
        | "daemonset"
        | "job"
        | "replicationcontroller" => "/spec/template",
        "cronjob" => "/spec/jobTemplate/spec/template",
        _ => "",
    }
}

/// A change of a part that must stay the same, if there is one. A patch replaces metadata that Go
/// decodes as zero, so unknown members of that metadata are lost.
pub fn changed_elsewhere(
    before: &Value,
    after: &Value,
    kind: &str,
    patch: &[Value],
) -> Option<String> {
    let anew = format!("{}/metadata", prefix(kind));
    let is_anew = patch.first().is_some_and(|first| first["path"] == anew);
    let (one, other) = (rest(before, kind, is_anew), rest(after, kind, is_anew));
    if one != other {
        return Some(format!("{one}\n!=\n{other}"));
    }
    let pod = |object: &Value| object.pointer(prefix(kind)).cloned().unwrap_or_default();
    let (before, after) = (pod(before), pod(after));
    let lists = ["volumes", "initContainers", "containers"];
    let lost = lists.into_iter().find(|list| {
        let had = before["spec"][list].as_array().cloned().unwrap_or_default();
        let has = after["spec"][list].as_array().cloned().unwrap_or_default();
        !is_within(&had, &has)
    });
    let maps = ["annotations", "labels"];
    let lost = lost.or_else(|| {
        maps.into_iter().find(|map| {
            let entries = before["metadata"][map].as_object().into_iter().flatten();
            let mut others = entries.filter(|(key, _)| !key.contains("linkerd.io/"));
            others.any(|(key, value)| after["metadata"][map].get(key) != Some(value))
        })
    });
    lost.map(|name| format!("{name}: {before}\n!=\n{after}"))
}

/// The object without the parts that a sidecar may change.
fn rest(object: &Value, kind: &str, is_anew: bool) -> Value {
    let mut object = object.clone();
    let Some(pod) = object.pointer_mut(prefix(kind)) else {
        return object;
    };
    if let Some(spec) = pod["spec"].as_object_mut() {
        for list in ["volumes", "initContainers", "containers"] {
            spec.remove(list);
        }
    }
    let metadata = pod["metadata"].as_object().cloned().unwrap_or_default();
    let others = metadata
        .into_iter()
        .filter(|(name, _)| !is_anew && !["annotations", "labels"].contains(&name.as_str()));
    pod["metadata"] = Value::Object(others.collect());
    object
}

/// Whether the list still contains the items, in their order.
fn is_within(items: &[Value], list: &[Value]) -> bool {
    let mut list = list.iter();
    items.iter().all(|item| list.any(|other| other == item))
}
