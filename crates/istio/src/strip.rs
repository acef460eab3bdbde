//! Removes what an earlier injection added, so that templates read the pod as its author wrote it
//! (`pkg/kube/inject/inject.go`, `stripPod`, `reinsertOverrides`).

use std::collections::HashSet;

use injectd_gotemplate::check_json;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    fields::{CONTAINER_LISTS, annotation, containers, text},
    release::{Delta, Release},
};

/// The annotation that the injector sets: a JSON object with lists of the names that it added.
pub const STATUS_ANNOTATION: &str = "sidecar.istio.io/status";

/// The annotation in which the injector keeps containers that the pod's author declared under the
/// name of an injected one: `{"containers": […], "initContainers": […]}`.
pub const OVERRIDES_ANNOTATION: &str = "proxy.istio.io/overrides";

/// Why the annotation [`OVERRIDES_ANNOTATION`] denies a pod.
#[derive(Debug, Error)]
pub enum OverridesError {
    /// It is not JSON; Go's text.
    #[error("{0}")]
    Json(String),
    /// It is JSON of another shape.
    #[error("annotation {OVERRIDES_ANNOTATION} must hold lists of containers")]
    Shape,
}

/// What an earlier injection added, by list of the status annotation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The names of containers.
    pub containers: HashSet<String>,
    /// The names of init containers.
    pub init_containers: HashSet<String>,
}

impl Status {
    /// The status annotation of a pod; `None` if it is missing or is not a JSON object. `null` counts
    /// as an empty one.
    ///
    /// Names that are not strings are ignored; Istio panics.
    #[must_use]
    pub fn of(pod: &Value) -> Option<Self> {
        let status: Value = serde_json::from_str(annotation(pod, STATUS_ANNOTATION)?).ok()?;
        if !status.is_object() && !status.is_null() {
            return None;
        }
        let names = |list| {
            let names = status.get(list).and_then(Value::as_array).into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let [containers, init_containers] = CONTAINER_LISTS.map(names);
        Some(Self { containers, init_containers })
    }
}

/// Whether [`strip`] leaves a pod as it is.
#[must_use]
pub fn is_clean(pod: &Value) -> bool {
    let has = |key| annotation(pod, key).is_some();
    !has(STATUS_ANNOTATION) && !has(OVERRIDES_ANNOTATION)
}

/// The pod as templates read it: a copy without what [`Status`] names and without the status, and
/// with the containers of [`OVERRIDES_ANNOTATION`] that it lacks.
///
/// Prometheus' annotations are removed with them if their port is `status_port`, the mesh's: the
/// earlier injection set them.
///
/// # Errors
/// The overrides annotation cannot be read.
pub fn strip(pod: &Value, release: Release, status_port: i64) -> Result<Value, OverridesError> {
    let mut stripped = pod.clone();
    if let Some(status) = Status::of(pod) {
        for (list, names) in CONTAINER_LISTS.iter().zip([status.containers, status.init_containers])
        {
            if let Some(containers) = list_mut(&mut stripped, list) {
                containers.retain(|container| !names.contains(text(container, "name")));
            }
        }
        if let Some(Value::Object(annotations)) = stripped.pointer_mut("/metadata/annotations") {
            remove_injected_prometheus(annotations, release, status_port);
            annotations.shift_remove(STATUS_ANNOTATION);
        }
    }
    if let Some(overrides) = annotation(pod, OVERRIDES_ANNOTATION) {
        reinsert(&mut stripped, overrides)?;
    }
    Ok(stripped)
}

fn list_mut<'p>(pod: &'p mut Value, list: &str) -> Option<&'p mut Vec<Value>> {
    pod.get_mut("spec")?.get_mut(list)?.as_array_mut()
}

fn remove_injected_prometheus(
    annotations: &mut Map<String, Value>,
    release: Release,
    status_port: i64,
) {
    let mut port: Vec<_> =
        annotations.iter().filter(|(key, _)| sanitized(key) == "prometheus_io_port").collect();
    // Of several spellings Istio takes one at random.
    port.sort_by_key(|(key, _)| (*key != "prometheus.io/port", *key));
    if port.first().and_then(|(_, port)| port.as_str()) != Some(&*status_port.to_string()) {
        return;
    }
    annotations.retain(|key, _| match &*sanitized(key) {
        "prometheus_io_scrape" | "prometheus_io_port" | "prometheus_io_path" => false,
        "prometheus_istio_io_scrape_targets" => !release.has(Delta::ScrapeTargets),
        _ => true,
    });
}

/// A key as Prometheus compares it: `prometheus.io/port` and `prometheus-io-port` are the same.
fn sanitized(key: &str) -> String {
    key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn reinsert(pod: &mut Value, overrides: &str) -> Result<(), OverridesError> {
    check_json(overrides.as_bytes()).map_err(OverridesError::Json)?;
    let overrides: Value =
        serde_json::from_str(overrides).map_err(|error| OverridesError::Json(error.to_string()))?;
    let overrides = match overrides {
        Value::Object(overrides) => overrides,
        Value::Null => return Ok(()),
        _ => return Err(OverridesError::Shape),
    };
    for list in CONTAINER_LISTS {
        let missing = missing(pod, list, &overrides)?;
        let Some(Value::Object(spec)) = pod.get_mut("spec").filter(|_| !missing.is_empty()) else {
            continue;
        };
        match spec.get_mut(list) {
            Some(Value::Array(containers)) => containers.extend(missing),
            _ => _ = spec.insert(list.to_owned(), Value::Array(missing)),
        }
    }
    Ok(())
}

/// The containers of the overrides that a list of the pod does not have. Keys may be in any case, as
/// Go reads them; the last one wins.
fn missing(
    pod: &Value,
    list: &str,
    overrides: &Map<String, Value>,
) -> Result<Vec<Value>, OverridesError> {
    let mut overridden = overrides.iter().filter(|(key, _)| key.eq_ignore_ascii_case(list));
    let overridden = match overridden.next_back() {
        Some((_, Value::Array(containers))) => containers.as_slice(),
        None | Some((_, Value::Null)) => &[],
        Some(_) => return Err(OverridesError::Shape),
    };
    if overridden.iter().any(|container| !container.is_object() && !container.is_null()) {
        return Err(OverridesError::Shape);
    }
    let present: HashSet<_> = containers(pod, list).iter().map(|own| text(own, "name")).collect();
    let missing = overridden.iter().filter(|container| !present.contains(text(container, "name")));
    let as_object = |container: &Value| match container {
        Value::Null => Value::Object(Map::new()),
        _ => container.clone(),
    };
    Ok(missing.map(as_object).collect())
}

#[cfg(test)]
mod tests;
