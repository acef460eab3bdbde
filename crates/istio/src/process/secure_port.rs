//! The annotation with the port under which merged metrics are served with TLS.

use serde_json::Value;

use super::{
    ProcessError,
    names::{SECURE_PORT_ANNOTATION, SECURE_PORT_VARIABLE},
    prometheus::same_label,
    tree::{annotations, annotations_mut, sidecar},
};
use crate::fields::text;

/// Copies the port from the proxy's variable, unless the pod has the annotation in any spelling.
pub(super) fn annotate(pod: &mut Value) -> Result<(), ProcessError> {
    let same = |key: &String| same_label(key, SECURE_PORT_ANNOTATION);
    if annotations(pod).is_some_and(|all| all.keys().any(same)) {
        return Ok(());
    }
    let env = sidecar(pod).and_then(|proxy| proxy.get("env")).and_then(Value::as_array);
    let variables = env.into_iter().flatten();
    let same_name = variables.filter(|variable| text(variable, "name") == SECURE_PORT_VARIABLE);
    let mut ports = same_name.map(|variable| text(variable, "value"));
    if let Some(port) = ports.find(|port| !port.is_empty() && *port != "0") {
        let port = port.into();
        annotations_mut(pod)?.insert(SECURE_PORT_ANNOTATION.to_owned(), port);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_port_that_is_one_counts() {
        let variable = |value: &str| json!({"name": SECURE_PORT_VARIABLE, "value": value});
        let env = json!([variable(""), variable("0"), variable("15092"), variable("15093")]);
        let mut pod = json!({"spec": {"containers": [{"name": "istio-proxy", "env": env}]}});
        annotate(&mut pod).expect("a pod");
        assert_eq!(pod["metadata"]["annotations"][SECURE_PORT_ANNOTATION], "15092");
    }
}
