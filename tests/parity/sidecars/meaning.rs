//! What of a pod is compared: not what Go writes for absent values, not the order of volumes and mounts,
//! not what injectd notes for itself.

use base64::{Engine, engine::general_purpose::STANDARD};
use injectd_gocompat::quantity;
use serde_json::{Map, Value};

/// The pod without what has no meaning.
pub(crate) fn meaning(pod: &Value) -> Value {
    let mut pod = pod.clone();
    if let Some(fields) = pod.as_object_mut() {
        fields.shift_remove("status");
    }
    if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("creationTimestamp");
        for (map, own) in
            [("annotations", "injectd.dev/templates"), ("labels", "injectd.dev/injected")]
        {
            let Some(entries) = metadata.get_mut(map).and_then(Value::as_object_mut) else {
                continue;
            };
            entries.shift_remove(own);
            if entries.is_empty() {
                metadata.shift_remove(map);
            }
        }
    }
    tidy(&mut pod);
    pod
}

fn tidy(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => {
            fields.values_mut().for_each(tidy);
            fields.retain(|key, value| !means_nothing(key, value));
            canonical_quantities(fields);
            without_order(fields);
            vault_configuration(fields);
        }
        _ => {}
    }
}

fn means_nothing(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => key == "resources" && fields.is_empty(),
        Value::String(text) => key == "value" && text.is_empty() || key == "divisor" && text == "0",
        _ => false,
    }
}

fn canonical_quantities(fields: &mut Map<String, Value>) {
    for key in ["limits", "requests"] {
        let quantities = fields.get_mut(key).and_then(Value::as_object_mut);
        quantities.into_iter().flat_map(Map::values_mut).for_each(canonical);
    }
    if let Some(limit) = fields.get_mut("sizeLimit") {
        canonical(limit);
    }
}

fn canonical(value: &mut Value) {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(billionths) = quantity::parse(&text).and_then(|parsed| parsed.billionths()) {
        *value = format!("{billionths}n").into();
    }
}

fn without_order(fields: &mut Map<String, Value>) {
    for key in ["volumes", "volumeMounts", "imagePullSecrets"] {
        if let Some(Value::Array(entries)) = fields.get_mut(key) {
            entries.sort_by_cached_key(|entry| {
                let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
                [text("mountPath"), text("name"), text("subPath")]
            });
        }
    }
}

/// The order of keys in the configuration of Vault's agent means nothing.
fn vault_configuration(fields: &mut Map<String, Value>) {
    if fields.get("name").is_some_and(|name| name == "VAULT_CONFIG")
        && let Some(value) = fields.get_mut("value")
        && let Some(bytes) = value.as_str().and_then(|text| STANDARD.decode(text).ok())
        && let Ok(configuration) = serde_json::from_slice(&bytes)
    {
        *value = configuration;
    }
}
