//! The entry of `managedFields` that a controller's write leaves in a pod.

use std::iter;

use serde_json::{Map, Value, json};

/// Fields that have one manager as a whole.
const ATOMIC: &[&str] =
    &["secretKeyRef", "fieldRef", "nodeSelector", "requiredDuringSchedulingIgnoredDuringExecution"];
/// Fields without an entry for themselves.
const WITHOUT_SELF: &[&str] = &["metadata", "spec", "containers"];
/// The API server sets the first three, and admission plugins, which are not managers, the others.
const UNMANAGED: &[&str] = &[
    "namespace",
    "creationTimestamp",
    "managedFields",
    "tolerations",
    "priority",
    "preemptionPolicy",
];
/// The plugin `ServiceAccount` adds this volume, and its mounts.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// Sets the fields of the first entry of `managedFields`.
pub(crate) fn set(pod: &mut Value) {
    let [metadata, mut spec] = ["metadata", "spec"].map(|part| {
        let mut part = pod[part].clone();
        if let Some(fields) = part.as_object_mut() {
            fields.retain(|name, _| !UNMANAGED.contains(&name.as_str()));
        }
        part
    });
    remove_token(&mut spec, "volumes");
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            remove_token(container, "volumeMounts");
        }
    }
    pod["metadata"]["managedFields"][0]["fieldsV1"] = json!({
        "f:metadata": fields_of("metadata", &metadata),
        "f:spec": fields_of("spec", &spec),
    });
}

fn remove_token(owner: &mut Value, field: &str) {
    let Some(Value::Array(items)) = owner.get_mut(field) else { return };
    items.retain(|item| !item["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME)));
    if items.is_empty()
        && let Some(fields) = owner.as_object_mut()
    {
        fields.shift_remove(field);
    }
}

/// The `fieldsV1` of a value.
fn fields_of(name: &str, value: &Value) -> Value {
    let members = match value {
        Value::Object(object) if !object.is_empty() && !ATOMIC.contains(&name) => members(object),
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            items.iter().map(|item| (key_of(name, item), item_fields(name, item))).collect()
        }
        _ => return json!({}),
    };
    (!WITHOUT_SELF.contains(&name)).then(itself).into_iter().chain(members).collect()
}

fn itself() -> (String, Value) {
    (".".to_owned(), json!({}))
}

fn members(object: &Map<String, Value>) -> Vec<(String, Value)> {
    let mut keys: Vec<_> = object.keys().collect();
    keys.sort_unstable();
    keys.into_iter().map(|key| (format!("f:{key}"), fields_of(key, &object[key]))).collect()
}

/// The key of an item of a list.
fn key_of(name: &str, item: &Value) -> String {
    let fields: &[&str] = match name {
        "ports" => &["containerPort", "protocol"],
        "volumeMounts" => &["mountPath"],
        "ownerReferences" => &["uid"],
        _ => &["name"],
    };
    let key: Value = fields.iter().map(|&field| (field, item[field].clone())).collect();
    format!("k:{key}")
}

fn item_fields(name: &str, item: &Value) -> Value {
    match item {
        Value::Object(object) if name != "ownerReferences" => {
            iter::once(itself()).chain(members(object)).collect()
        }
        _ => json!({}),
    }
}
