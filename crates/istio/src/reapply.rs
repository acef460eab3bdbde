//! Fields that the user gave to injected containers win over the templates.
//!
//! Istio: `reapplyOverwrittenContainers` (`pkg/kube/inject/webhook.go`).

mod overrides;
mod status;
mod uid;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use injectd_merge::{MergeError, TypeError, has_directives};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{
    budget::{Budget, OverBudget, steps_of},
    go_json::go_json,
    process::{
        Facts, ProcessError, Warning,
        names::{OVERRIDES_ANNOTATION, PROXY, STATUS_ANNOTATION},
        tree::{CONTAINERS, INIT_CONTAINERS, annotation, annotations_mut, list, list_mut, name},
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
    /// The merges take more work than a pod may.
    #[error(transparent)]
    Budget(#[from] OverBudget),
}

/// The first item of each name.
type Named<'v> = HashMap<&'v str, &'v Value>;

fn named(items: &[Value]) -> Named<'_> {
    let mut named = Named::with_capacity(items.len());
    for item in items {
        named.entry(name(item)).or_insert(item);
    }
    named
}

/// What [`reapply`] reads of the pod as received, for templates that bring containers of these names.
pub(crate) fn original(pod: &Value, brought: &HashSet<&str>) -> Value {
    let is_kept = |container: &&Value| {
        let name = name(container);
        name == PROXY || brought.contains(name)
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
    budget: &Budget<'_>,
) -> Result<Vec<Warning>, ReapplyError> {
    let recorded = recorded(original)?;
    let status = annotation(original, STATUS_ANNOTATION);
    let injected = status.and_then(status::read).unwrap_or_default();
    let containers = named(list(original, CONTAINERS));
    let init_containers = named(list(original, INIT_CONTAINERS));
    let mut overrides = BTreeMap::new();
    let mut warnings = Vec::new();
    for field in [CONTAINERS, INIT_CONTAINERS] {
        let recorded = named(list(&recorded, field));
        // An init container of the template may be a container of the user's pod.
        let of_pod = |name| {
            let init = init_containers.get(name).filter(|_| field == INIT_CONTAINERS);
            containers.get(name).or(init)
        };
        let mut sources = Vec::new();
        for name in list(rendered, field).iter().map(name) {
            // The container is of an earlier injection, and not of the author: nothing of it is
            // applied again.
            if injected.has(field, name) {
                let is_lost = recorded.contains_key(name);
                warnings.extend(is_lost.then(|| Warning::LostOverrides(name.to_owned())));
            } else {
                sources.extend(recorded.get(name).or_else(|| of_pod(name)));
            }
        }
        apply(pod, field, &sources, budget)?;
        if !sources.is_empty() {
            overrides.insert(field, sources.into_iter().map(overrides::Record).collect::<Vec<_>>());
        }
    }
    if status.is_none() && !overrides.is_empty() {
        let text = go_json(&overrides);
        annotations_mut(pod)?.insert(OVERRIDES_ANNOTATION.to_owned(), text.into());
    }
    warnings.extend(uid::adjust(pod, original, facts));
    Ok(warnings)
}

/// Merges user's containers one after the other into a list of the pod.
fn apply(
    pod: &mut Value,
    field: &str,
    sources: &[&Value],
    budget: &Budget<'_>,
) -> Result<(), ReapplyError> {
    if sources.is_empty() {
        return Ok(());
    }
    // Istio has a text for each of the lists.
    let is_init = field == INIT_CONTAINERS;
    let error = if is_init { ReapplyError::InitContainer } else { ReapplyError::Container };
    // With one look at the list the work stays linear in the containers.
    let mut places = places(list(pod, field));
    for source in sources {
        let place = places.as_ref().and_then(|places| places.get(name(source)).copied());
        let current = place.and_then(|place| list(pod, field).get(place));
        let by_name = || list(pod, field).iter().find(|own| name(own) == name(source));
        let patch = overrides::patch(source, current.or_else(by_name));
        // A template may name a container many times, and the record has a copy of its source each time.
        budget.spend(steps_of(&patch) + steps_of(source))?;
        if let Some(place) = place.filter(|_| !has_directives(&patch))
            && let Some(own) = list_mut(pod, field).and_then(|list| list.get_mut(place))
        {
            // Its place stays, and so do all others: the merge needs to see this container alone.
            budget.spend(steps_of(own))?;
            let mut alone = pod_of(field, own.take());
            let merged = injectd_merge::overlay(&mut alone, pod_of(field, patch));
            *own = list_mut(&mut alone, field).and_then(Vec::pop).unwrap_or_default();
            merged.map_err(error)?;
        } else {
            budget.spend(steps_of(pod))?;
            // The merge may have moved containers.
            places = None;
            injectd_merge::overlay(pod, pod_of(field, patch)).map_err(error)?;
        }
    }
    Ok(())
}

/// A pod with a list of one container.
fn pod_of(field: &str, container: Value) -> Value {
    let spec = Map::from_iter([(field.to_owned(), Value::Array(vec![container]))]);
    Value::Object(Map::from_iter([("spec".to_owned(), Value::Object(spec))]))
}

/// The places of containers by their names; `None` if two have the same or one has none, so that the
/// merge needs to see them all.
fn places(containers: &[Value]) -> Option<HashMap<String, usize>> {
    let mut places = HashMap::with_capacity(containers.len());
    for (place, container) in containers.iter().enumerate() {
        let name = container.as_object()?.get("name")?.as_str()?;
        if name.is_empty() || places.insert(name.to_owned(), place).is_some() {
            return None;
        }
    }
    Some(places)
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
