//! Fields that the user gave to injected containers win over the templates.
//!
//! Istio: `reapplyOverwrittenContainers` (`pkg/kube/inject/webhook.go`).

#![expect(clippy::disallowed_types, reason = "templates are merged into trees")]

mod overrides;
mod status;
mod uid;

#[cfg(test)]
mod tests;

use injectd_merge::MergeError;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::process::{
    Facts, ProcessError, Warning, go_json,
    names::{OVERRIDES_ANNOTATION, STATUS_ANNOTATION},
    tree::{CONTAINERS, INIT_CONTAINERS, annotation, annotations_mut, find, list, name},
};

/// The image of a user's container that stands for the one of the template.
const AUTO_IMAGE: &str = "auto";

/// Why a pod is denied. Upstream prefixes the text with `failed to re apply container: `.
#[derive(Debug, Error)]
pub enum ReapplyError {
    /// The annotation `proxy.istio.io/overrides` is not the JSON of two lists of containers.
    #[error("{0}")]
    Overrides(#[source] serde_json::Error),
    /// A user's container cannot be merged.
    #[error("failed to apply sidecar {kind}: strategic merge: {source}", kind = if *.init { "init container" } else { "container" })]
    Merge {
        /// Whether the template has it among the init containers.
        init: bool,
        /// Why.
        source: MergeError,
    },
    /// The metadata cannot hold the annotation.
    #[error("{0}")]
    Metadata(#[source] ProcessError),
}

/// Merges the user's injected containers into a pod once more, over the templates' fields.
///
/// `pod` is the user's pod with all templates merged, `rendered` an empty pod with all templates
/// merged, and `original` the pod as received. Containers that the status annotation names are
/// not the user's.
///
/// Sets the annotation `proxy.istio.io/overrides`, from which a later injection knows the user's
/// fields. Since 1.20, the user's ids of `istio-proxy` are taken over where traffic is captured.
///
/// # Errors
///
/// See [`ReapplyError`]; the pod may be changed in part then.
pub fn reapply(
    pod: &mut Value,
    rendered: &Value,
    original: &Value,
    facts: &Facts<'_>,
) -> Result<Option<Warning>, ReapplyError> {
    let recorded = recorded(original)?;
    let status = annotation(original, STATUS_ANNOTATION);
    let injected = status.and_then(status::read).unwrap_or_default();
    let mut overrides = Map::new();
    for field in [CONTAINERS, INIT_CONTAINERS] {
        let mut applied = Vec::new();
        for container in list(rendered, field) {
            let name = name(container);
            if injected.has(field, name) {
                continue;
            }
            let Some(source) = source(name, field, &recorded, original) else { continue };
            let source = overrides::without_image(source, AUTO_IMAGE);
            let patch = json!({"spec": {field: [overrides::patch(&source)]}});
            injectd_merge::overlay(pod, patch)
                .map_err(|source| ReapplyError::Merge { init: field == INIT_CONTAINERS, source })?;
            applied.push(overrides::record(&source));
        }
        if !applied.is_empty() {
            overrides.insert(field.to_owned(), applied.into());
        }
    }
    if status.is_none() && !overrides.is_empty() {
        let annotations = annotations_mut(pod).map_err(ReapplyError::Metadata)?;
        let text = go_json(&Value::Object(overrides));
        annotations.insert(OVERRIDES_ANNOTATION.to_owned(), text.into());
    }
    Ok(uid::adjust(pod, original, facts))
}

/// The containers of the annotation that an earlier injection wrote, by list.
fn recorded(original: &Value) -> Result<Value, ReapplyError> {
    let Some(text) = annotation(original, OVERRIDES_ANNOTATION) else { return Ok(Value::Null) };
    let recorded: Map<String, Value> = serde_json::from_str::<Option<_>>(text)
        .map_err(ReapplyError::Overrides)?
        .unwrap_or_default();
    Ok(json!({"spec": recorded}))
}

/// The user's version of a container. An init container of the template may be a container of the
/// user's pod.
fn source<'a>(
    wanted: &str,
    field: &str,
    recorded: &'a Value,
    original: &'a Value,
) -> Option<&'a Value> {
    let of_pod = |field| find(list(original, field), wanted);
    find(list(recorded, field), wanted)
        .or_else(|| of_pod(CONTAINERS))
        .or_else(|| (field == INIT_CONTAINERS).then(|| of_pod(INIT_CONTAINERS)).flatten())
}
