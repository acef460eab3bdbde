//! The annotation with the port under which merged metrics are served with TLS.

#![expect(clippy::disallowed_types, reason = "templates are merged into trees")]

use serde_json::Value;

use super::{
    ProcessError,
    names::{SECURE_PORT_ANNOTATION, SECURE_PORT_VARIABLE},
    prometheus::same_label,
    tree::{annotations, annotations_mut, find, sidecar},
};

/// Copies the port from the proxy's variable, unless the pod has the annotation in any spelling.
pub(super) fn annotate(pod: &mut Value) -> Result<(), ProcessError> {
    let same = |key: &String| same_label(key, SECURE_PORT_ANNOTATION);
    if annotations(pod).is_some_and(|all| all.keys().any(same)) {
        return Ok(());
    }
    let env = sidecar(pod).and_then(|proxy| proxy.get("env")).and_then(Value::as_array);
    let variable = env.and_then(|env| find(env, SECURE_PORT_VARIABLE));
    let port = variable.and_then(|variable| variable.get("value")).and_then(Value::as_str);
    if let Some(port) = port.filter(|port| !port.is_empty() && *port != "0") {
        let port = port.into();
        annotations_mut(pod)?.insert(SECURE_PORT_ANNOTATION.to_owned(), port);
    }
    Ok(())
}
