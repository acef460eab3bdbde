//! The mark: what templates have put into a pod, as the pod itself says it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use injectd_templates::mark::{ANNOTATION, LABEL};
use injectd_templates::named::member;

/// What templates have put into a pod, by their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub BTreeMap<String, Entry>);

/// What one template has put into a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The hash of its `spec` at that time.
    pub hash: String,
    /// The names of the containers that it added, in their order.
    pub added: Vec<String>,
    /// The names of the containers that its rules were for, in their order.
    pub served: Vec<String>,
}

impl Mark {
    /// The mark of a pod; an empty one if it has none, or one that cannot be read.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let annotations =
            member(pod, "metadata").and_then(|metadata| member(metadata, "annotations"));
        let text = annotations.and_then(|annotations| annotations.get(ANNOTATION)?.as_str());
        // The author of a pod may write any text there: one that is no mark counts as none.
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The entry of a template that is in the pod: all containers that it added are there.
    #[must_use]
    pub fn believed(&self, key: &str, pod: &Value) -> Option<&Entry> {
        let entry = self.0.get(key)?;
        let names: BTreeSet<_> = container_names(pod).collect();
        entry.added.iter().all(|name| names.contains(name.as_str())).then_some(entry)
    }

    /// Writes the mark into a pod. An empty one is not written.
    pub fn write(&self, pod: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        // A map with texts as keys is always JSON.
        let text = serde_json::to_string(self).unwrap_or_default();
        let Value::Object(pod) = pod else { return };
        let metadata = entries(pod, "metadata");
        entries(metadata, "annotations").insert(ANNOTATION.to_owned(), Value::String(text));
        entries(metadata, "labels").insert(LABEL.to_owned(), Value::String("true".to_owned()));
    }
}

/// A pod without the mark and its label. Labels and annotations that are empty without them go as well.
#[must_use]
pub fn removed(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) else {
        return pod;
    };
    let mut had_mark = false;
    for (field, key) in [("annotations", ANNOTATION), ("labels", LABEL)] {
        let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) else { continue };
        let is_removed = map.shift_remove(key).is_some();
        had_mark |= is_removed;
        if is_removed && map.is_empty() {
            metadata.shift_remove(field);
        }
    }
    if had_mark
        && metadata.is_empty()
        && let Some(pod) = pod.as_object_mut()
    {
        pod.shift_remove("metadata");
    }
    pod
}

/// The entries of a member, which becomes an object if it is none.
fn entries<'m>(of: &'m mut Map<String, Value>, key: &str) -> &'m mut Map<String, Value> {
    let member = of.entry(key).or_insert(Value::Null);
    if !member.is_object() {
        *member = Value::Object(Map::new());
    }
    member.as_object_mut().expect("it must be an object")
}

/// All containers of a pod, in its order: init containers first.
pub(crate) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"];
    let spec = member(pod, "spec");
    lists.into_iter().filter_map(move |list| member(spec?, list)?.as_array()).flatten()
}

/// The names of all containers of a pod, in its order: init containers first.
pub(crate) fn container_names(pod: &Value) -> impl Iterator<Item = &str> {
    containers(pod).filter_map(|container| member(container, "name")?.as_str())
}
