//! A running pod as it was before Linkerd's injector changed it.
//!
//! Not for manifests: [`uninject`] removes from them what a person may have written too.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use serde_json::{Map, Value};

use crate::{
    linkerd::{
        annotations::{Annotation, Keys, is_written},
        snapshot::Snapshot,
        uninject,
    },
    object::Kind,
};

/// The pod without its sidecar, without what the injector noted on it, and without what it inherited
/// from a namespace with these annotations; `None` if it has no sidecar. What its author wrote stays,
/// unless it is what the injector would have written.
pub(super) fn of(
    snapshot: &Snapshot,
    pod: &Value,
    namespace: &[(String, String)],
) -> Option<Value> {
    if !uninject::has_sidecar(pod, Kind::Pod) {
        return None;
    }
    let mut before = pod.clone();
    uninject::remove_sidecar(&mut before, Kind::Pod);
    if let Some(spec) = before.get_mut("spec").and_then(Value::as_object_mut) {
        // A pod without containers of its own had the empty list.
        spec.entry("containers").or_insert_with(|| Value::Array(Vec::new()));
    }
    if uninject::is_control_plane(pod, Kind::Pod) {
        return Some(before);
    }
    let inherited = Keys::inherited_in(snapshot.release_choice.release);
    let is_inherited = |key: &str, value: &Value| {
        Annotation::of(key).is_some_and(|annotation| inherited.contains(annotation))
            && namespace.iter().any(|(own, text)| own == key && value == text)
    };
    if let Some(annotations) = map_mut(&mut before, "annotations") {
        annotations.retain(|key, value| !is_written(key) && !is_inherited(key, value));
    }
    if let Some(labels) = map_mut(&mut before, "labels") {
        labels.retain(|key, _| !is_written(key));
    }
    uninject::remove_opaque_ports(snapshot, &mut before, Kind::Pod);
    Some(before)
}

fn map_mut<'p>(pod: &'p mut Value, map: &str) -> Option<&'p mut Map<String, Value>> {
    pod.get_mut("metadata")?.get_mut(map)?.as_object_mut()
}
