//! Fields that the user gave to injected containers win over the templates.
//!
//! Istio: `reapplyOverwrittenContainers` (`pkg/kube/inject/webhook.go`).

#![expect(clippy::disallowed_types, reason = "templates are merged into trees")]

mod overrides;
mod status;
mod uid;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use injectd_merge::{MergeError, TypeError};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{
    go_json::go_json,
    process::{
        Facts, ProcessError, Warning,
        names::{OVERRIDES_ANNOTATION, PROXY, STATUS_ANNOTATION},
        tree::{CONTAINERS, INIT_CONTAINERS, annotation, annotations_mut, find, list, name},
    },
};

/// Why a pod is denied. Upstream prefixes the text with `failed to re apply container: `.
#[derive(Debug, Error)]
pub enum ReapplyError {
    /// The annotation `proxy.istio.io/overrides` is not a JSON object.
    #[error("the annotation proxy.istio.io/overrides must be a JSON object")]
    Overrides(#[source] serde_json::Error),
    /// The annotation `proxy.istio.io/overrides` holds other things than containers.
    #[error("the annotation proxy.istio.io/overrides must hold lists of containers")]
    OverridesType(#[source] TypeError),
    /// A user's version of a container of the template cannot be merged.
    #[error("failed to apply sidecar container: strategic merge")]
    Container(#[source] MergeError),
    /// A user's version of an init container of the template cannot be merged.
    #[error("failed to apply sidecar init container: strategic merge")]
    InitContainer(#[source] MergeError),
    /// The metadata cannot hold the annotation.
    #[error(transparent)]
    Metadata(#[from] ProcessError),
}

/// What [`reapply`] reads of the pod as received, for templates that bring containers of these names.
pub(crate) fn original(pod: &Value, brought: &[&str]) -> Value {
    let is_kept = |container: &&Value| {
        let name = name(container);
        name == PROXY || brought.contains(&name)
    };
    let containers =
        |field: &str| -> Value { list(pod, field).iter().filter(is_kept).cloned().collect() };
    let annotations: Map<_, _> = [STATUS_ANNOTATION, OVERRIDES_ANNOTATION]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), annotation(pod, key)?.into())))
        .collect();
    json!({
        "metadata": {"annotations": annotations},
        "spec": {
            CONTAINERS: containers(CONTAINERS),
            INIT_CONTAINERS: containers(INIT_CONTAINERS),
        },
    })
}

/// Merges the user's injected containers into a pod once more, over the templates' fields.
///
/// `pod` is the user's pod with all templates merged, `rendered` an empty pod with all templates
/// merged, and `original` the pod as received, or what counts of it. Containers that the status
/// annotation names are not the user's.
///
/// On `OpenShift`, `original` is the pod without the ids that were dropped for the templates.
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
) -> Result<Vec<Warning>, ReapplyError> {
    let recorded = recorded(original)?;
    let status = annotation(original, STATUS_ANNOTATION);
    let injected = status.and_then(status::read).unwrap_or_default();
    let mut overrides = BTreeMap::new();
    let mut warnings = Vec::new();
    for field in [CONTAINERS, INIT_CONTAINERS] {
        let mut applied = Vec::new();
        for name in list(rendered, field).iter().map(name) {
            if injected.has(field, name) {
                let lost = find(list(&recorded, field), name);
                warnings.extend(lost.map(|_| Warning::LostOverrides(name.to_owned())));
            } else if let Some(source) = source(name, field, &recorded, original) {
                let patch = overrides::patch(source, find(list(pod, field), name));
                apply(pod, field, patch)?;
                applied.push(overrides::Record(source));
            }
        }
        if !applied.is_empty() {
            overrides.insert(field, applied);
        }
    }
    if status.is_none() && !overrides.is_empty() {
        let text = go_json(&overrides);
        annotations_mut(pod)?.insert(OVERRIDES_ANNOTATION.to_owned(), text.into());
    }
    warnings.extend(uid::adjust(pod, original, facts));
    Ok(warnings)
}

fn apply(pod: &mut Value, field: &str, container: Value) -> Result<(), ReapplyError> {
    let is_init = field == INIT_CONTAINERS;
    let error = if is_init { ReapplyError::InitContainer } else { ReapplyError::Container };
    let spec = Map::from_iter([(field.to_owned(), Value::Array(vec![container]))]);
    let patch = Map::from_iter([("spec".to_owned(), Value::Object(spec))]);
    injectd_merge::overlay(pod, Value::Object(patch)).map_err(error)
}

/// The containers of the annotation that an earlier injection wrote, as those of a pod.
fn recorded(original: &Value) -> Result<Value, ReapplyError> {
    let Some(text) = annotation(original, OVERRIDES_ANNOTATION) else { return Ok(Value::Null) };
    let fields: Option<Map<String, Value>> =
        serde_json::from_str(text).map_err(ReapplyError::Overrides)?;
    let mut recorded = Map::new();
    // Go reads keys in any case, and the last one wins.
    for (key, value) in fields.into_iter().flatten() {
        let lists = [CONTAINERS, INIT_CONTAINERS];
        if let Some(list) = lists.into_iter().find(|list| key.eq_ignore_ascii_case(list)) {
            recorded.insert(list.to_owned(), value);
        }
    }
    let pod = json!({"spec": recorded});
    injectd_merge::check(&pod).map_err(ReapplyError::OverridesType)?;
    Ok(pod)
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
