//! The label with the network, the status annotation and the annotations of the configuration.

use serde_json::{Value, json};

use super::{
    Facts, ProcessError,
    names::{NETWORK_LABEL, NETWORK_VARIABLE, STATUS_ANNOTATION},
    tree::{CONTAINERS, INIT_CONTAINERS, annotations_mut, labels_mut, list, name},
};
use crate::go_json::go_json;

/// The revision of an injector without one.
const DEFAULT_REVISION: &str = "default";

/// Istio: `applyMetadata`.
pub(super) fn set(
    pod: &mut Value,
    rendered: &Value,
    facts: &Facts<'_>,
) -> Result<(), ProcessError> {
    if let Some(network) = facts.environment.get(NETWORK_VARIABLE) {
        labels_mut(pod)?.insert(NETWORK_LABEL.to_owned(), network.as_str().into());
    }
    let status = status(rendered, facts.revision);
    let annotations = annotations_mut(pod)?;
    annotations.insert(STATUS_ANNOTATION.to_owned(), status.into());
    for (key, value) in facts.injected_annotations {
        annotations.insert(key.clone(), value.as_str().into());
    }
    Ok(())
}

/// The name of a revision in the status.
pub(crate) fn noted_revision(name: &str) -> &str {
    if name.is_empty() { DEFAULT_REVISION } else { name }
}

/// What the templates bring, whether the pod had it or not.
///
/// Istio: `getInjectionStatus`. Lists without elements are null.
fn status(rendered: &Value, revision: &str) -> String {
    let names = |field| {
        let names: Vec<_> = list(rendered, field).iter().map(name).collect();
        if names.is_empty() { Value::Null } else { json!(names) }
    };
    go_json(&json!({
        "initContainers": names(INIT_CONTAINERS),
        "containers": names(CONTAINERS),
        "volumes": names("volumes"),
        "imagePullSecrets": names("imagePullSecrets"),
        "revision": noted_revision(revision),
    }))
}
