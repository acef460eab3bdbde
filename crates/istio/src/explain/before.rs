//! A running pod as it was before Istio's injector changed it.
//!
//! What the injector wrote is known from its notes: the status annotation has the names of what it
//! added, `proxy.istio.io/overrides` the containers of the pod's author, and variables of the proxy
//! the annotations that it consumed. Annotations and labels that templates may write or only copy are
//! compared with those that the pod would get without them: webhooks may select by them. Rewritten
//! probes stay: no rule reads them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    fields::{CONTAINER_LISTS, annotation, containers, text},
    injection::Injection,
    mesh::Istio,
    path::PathEnvironment,
    process::{
        metadata::noted_revision,
        names::{PROMETHEUS_VARIABLE, PROXY, SECURE_PORT_ANNOTATION, SECURE_PORT_VARIABLE},
    },
    strip::{OVERRIDES_ANNOTATION, STATUS_ANNOTATION, Status, strip},
};

use super::{SIDECARS, ignored::REVISION_KEY};

/// The lists of the status annotation that name other things than containers.
const OTHER_LISTS: [&str; 2] = ["volumes", "imagePullSecrets"];

/// The maps of metadata that templates may write.
const MAPS: [&str; 2] = ["annotations", "labels"];

/// The pod without what the injector added; `None` if it has no status annotation. What its author
/// wrote stays, unless it is what the injector would have written.
pub(super) fn of(mesh: &Istio, pod: &Value) -> Option<Value> {
    let noted = annotation(pod, STATUS_ANNOTATION)?;
    match Status::of(pod) {
        Some(_) => noted_in(mesh, pod, &serde_json::from_str(noted).ok()?),
        None => without_notes(mesh, pod),
    }
}

/// The same, if the status annotation cannot be read: `injectedAnnotations` of the configuration may
/// overwrite it. What Istio adds has known names, and the revision is taken for this one.
fn without_notes(mesh: &Istio, pod: &Value) -> Option<Value> {
    let mut status = Value::from_iter(CONTAINER_LISTS.map(|list| (list, json!(SIDECARS))));
    status["revision"] = noted_revision(&mesh.revision().name).into();
    let mut noted = pod.clone();
    annotations_mut(&mut noted)?.insert(STATUS_ANNOTATION.to_owned(), status.to_string().into());
    noted_in(mesh, &noted, &status)
}

/// The pod without what this status names.
fn noted_in(mesh: &Istio, pod: &Value, status: &Value) -> Option<Value> {
    let revision = mesh.revision();
    let status_port = revision.default_config().map_or(0, |config| config.integer("status_port"));
    let mut before = strip(pod, revision.release, status_port).ok()?;
    for list in OTHER_LISTS {
        remove_named(&mut before, status, list);
    }
    let secure_port = proxy_variable(pod, SECURE_PORT_VARIABLE);
    let name = text(status, "revision");
    let is_noted = |key: &str, value: &Value| {
        key == OVERRIDES_ANNOTATION
            || key == REVISION_KEY && value == name
            || key == SECURE_PORT_ANNOTATION && value.as_str() == secure_port
            || revision.config.injected_annotations.get(key).is_some_and(|own| value == own)
    };
    if let Some(annotations) = annotations_mut(&mut before) {
        annotations.retain(|key, value| !is_noted(key, value));
    }
    restore_prometheus(pod, &mut before);
    remove_written(mesh, &mut before);
    Some(before)
}

/// Removes items of a list of the pod's spec whose names the status has.
fn remove_named(pod: &mut Value, status: &Value, list: &str) {
    let names = status.get(list).and_then(Value::as_array);
    let items = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
    if let (Some(names), Some(items)) = (names, items) {
        let names: std::collections::HashSet<_> = names.iter().filter_map(Value::as_str).collect();
        items.retain(|item| !names.contains(text(item, "name")));
    }
}

/// Gives the pod the annotations of Prometheus that the injector replaced, as the agent has them.
fn restore_prometheus(pod: &Value, before: &mut Value) {
    const PORT: &str = "prometheus.io/port";
    let is_replaced = annotation(pod, PORT).is_some() && annotation(before, PORT).is_none();
    let Some(noted) = proxy_variable(pod, PROMETHEUS_VARIABLE).filter(|_| is_replaced) else {
        return;
    };
    let noted: Value = serde_json::from_str(noted).unwrap_or_default();
    let targets = noted.get("targets").and_then(Value::as_array);
    let targets = targets.into_iter().flatten();
    let targets: Vec<_> = targets
        .map(|target| format!("{}:{}", text(target, "port"), text(target, "path")))
        .collect();
    // With targets, port and path are those of the first one.
    let own = |key| if targets.is_empty() { text(&noted, key) } else { "" };
    let all = [
        ("prometheus.io/scrape", text(&noted, "scrape").to_owned()),
        ("prometheus.io/path", own("path").to_owned()),
        (PORT, own("port").to_owned()),
        ("prometheus.istio.io/scrape-targets", targets.join(",")),
    ];
    let Some(annotations) = annotations_mut(before) else { return };
    for (key, value) in all.into_iter().filter(|(_, value)| !value.is_empty()) {
        annotations.insert(key.to_owned(), value.into());
    }
}

/// Removes the settings and labels that templates write with the value that the pod would get without
/// them.
fn remove_written(mesh: &Istio, before: &mut Value) {
    let known = &mesh.revision().known_annotations;
    let is_written = |map: &str, key: &str| match map {
        "labels" => known.writes_label(key),
        _ => known.writes(key),
    };
    let mut without = before.clone();
    let mut has_written = false;
    for map in MAPS {
        let Some(all) = map_mut(&mut without, map) else { continue };
        let count = all.len();
        all.retain(|key, _| !is_written(map, key));
        has_written |= all.len() < count;
    }
    if !has_written {
        return;
    }
    let namespace = before.pointer("/metadata/namespace").and_then(Value::as_str);
    let (namespace, environment) = (namespace.unwrap_or_default(), PathEnvironment::default());
    let injection = Injection::new(mesh.revision(), Arc::new(without), namespace, environment);
    let cluster = mesh.pod_cluster(injection.cluster(), &[]);
    let Ok(injected) = injection.inject(cluster) else { return };
    for map in MAPS {
        let again = injected.pod.get("metadata").and_then(|metadata| metadata.get(map));
        if let Some(all) = map_mut(before, map) {
            all.retain(|key, value| {
                !is_written(map, key) || again.and_then(|again| again.get(key)) != Some(&*value)
            });
        }
    }
}

/// The value of a variable of the proxy.
fn proxy_variable<'p>(pod: &'p Value, name: &str) -> Option<&'p str> {
    let mut all = CONTAINER_LISTS.iter().flat_map(|list| containers(pod, list));
    let proxy = all.find(|container| text(container, "name") == PROXY)?;
    let variables = proxy.get("env")?.as_array()?;
    variables.iter().find(|variable| text(variable, "name") == name)?.get("value")?.as_str()
}

fn annotations_mut(pod: &mut Value) -> Option<&mut Map<String, Value>> {
    map_mut(pod, "annotations")
}

fn map_mut<'p>(pod: &'p mut Value, map: &str) -> Option<&'p mut Map<String, Value>> {
    pod.get_mut("metadata")?.get_mut(map)?.as_object_mut()
}
