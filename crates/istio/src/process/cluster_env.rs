//! The variables of the proxy that come from the path, the values and the pod's labels.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tree::{append_variable, name, sidecar_mut};

/// Replaces the variables of these names, or appends them, sorted by name.
///
/// Istio: `overwriteClusterInfo`.
pub(super) fn set(pod: &mut Value, environment: &BTreeMap<String, String>) {
    if environment.is_empty() {
        return;
    }
    let Some(proxy) = sidecar_mut(pod) else { return };
    if let Some(env) = proxy.get_mut("env").and_then(Value::as_array_mut) {
        env.retain(|variable| !environment.contains_key(name(variable)));
    }
    for (name, value) in environment {
        append_variable(proxy, name, value);
    }
}
