//! Where annotations and labels are that a person may have meant for a pod: on the pod, on the
//! workload that it is made from, and on its namespace.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use serde_json::Value;

use super::Layer;

/// The trees that an explanation reads besides the view of the review.
#[derive(Debug, Clone, Copy)]
pub struct Trees<'o> {
    /// The object of the review with all its fields.
    pub object: &'o Value,
    /// The workload that the object was made from.
    pub workload: Option<Workload<'o>>,
    /// The object of the namespace, if it is known.
    pub namespace: Option<&'o Value>,
}

/// A workload with a pod template.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'o> {
    /// The object. Its template is not read.
    pub object: &'o Value,
    /// Where its pod template is, as a JSON pointer such as `/spec/template`.
    pub prefix: &'o str,
}

/// A map of metadata, by the object that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named after its map")]
pub enum Place {
    PodAnnotations,
    PodLabels,
    WorkloadAnnotations,
    WorkloadLabels,
    NamespaceAnnotations,
    NamespaceLabels,
}

/// A map of metadata with its entries.
#[derive(Debug)]
pub struct At<'o> {
    /// Which one it is.
    pub place: Place,
    /// Its path in its object: `metadata.annotations`.
    pub path: String,
    /// The entries whose values are texts.
    pub entries: Vec<(&'o str, &'o str)>,
}

/// Every map of metadata around a pod.
#[derive(Debug)]
pub struct Places<'o> {
    all: Vec<At<'o>>,
    /// The path of the pod's metadata in the object that a person edits.
    pod: String,
}

impl<'o> From<&'o Value> for Trees<'o> {
    fn from(object: &'o Value) -> Self {
        Self { object, workload: None, namespace: None }
    }
}

impl Place {
    /// The layer of the object.
    #[must_use]
    pub fn layer(self) -> Layer {
        match self {
            Self::PodAnnotations | Self::PodLabels => Layer::Pod,
            Self::WorkloadAnnotations | Self::WorkloadLabels => Layer::Workload,
            Self::NamespaceAnnotations | Self::NamespaceLabels => Layer::Namespace,
        }
    }

    /// Whether it is a map of labels.
    #[must_use]
    pub fn is_label(self) -> bool {
        matches!(self, Self::PodLabels | Self::WorkloadLabels | Self::NamespaceLabels)
    }

    /// The other map of the same object.
    pub(super) fn other_map(self) -> Self {
        match self {
            Self::PodAnnotations => Self::PodLabels,
            Self::PodLabels => Self::PodAnnotations,
            Self::WorkloadAnnotations => Self::WorkloadLabels,
            Self::WorkloadLabels => Self::WorkloadAnnotations,
            Self::NamespaceAnnotations => Self::NamespaceLabels,
            Self::NamespaceLabels => Self::NamespaceAnnotations,
        }
    }
}

impl<'o> Places<'o> {
    /// The maps around a pod, in the order in which a person looks: pod, workload, namespace.
    /// `namespace_annotations` are those that decide, whether the namespace's object is known or not.
    #[must_use]
    pub fn of(
        pod: &'o Value,
        workload: Option<Workload<'o>>,
        namespace: Option<&'o Value>,
        namespace_annotations: impl Iterator<Item = (&'o str, &'o str)>,
    ) -> Self {
        let mut all =
            vec![At::of(pod, "", Place::PodAnnotations), At::of(pod, "", Place::PodLabels)];
        for prefix in workload.iter().flat_map(|workload| above(workload.prefix)) {
            let object = workload.and_then(|workload| workload.object.pointer(prefix));
            let at = |place| Some(At::of(object?, prefix, place));
            all.extend(at(Place::WorkloadAnnotations));
            all.extend(at(Place::WorkloadLabels));
        }
        all.push(At {
            place: Place::NamespaceAnnotations,
            path: path("", Place::NamespaceAnnotations),
            entries: namespace_annotations.collect(),
        });
        all.extend(namespace.map(|namespace| At::of(namespace, "", Place::NamespaceLabels)));
        let pod = workload.map_or("", |workload| workload.prefix).to_owned();
        Self { all, pod }
    }

    /// All maps.
    pub fn iter(&self) -> impl Iterator<Item = &At<'o>> {
        self.all.iter()
    }

    /// Whether one of these places has an entry.
    pub(super) fn have(&self, places: &[Place], key: &str, value: &str) -> bool {
        let mut right = self.all.iter().filter(|at| places.contains(&at.place));
        right.any(|at| at.entries.contains(&(key, value)))
    }

    /// How a person finds a place: its path, in the pod template if there is one.
    pub(super) fn shown(&self, place: Place) -> String {
        match place {
            Place::PodAnnotations | Place::PodLabels => path(&self.pod, place),
            Place::NamespaceAnnotations => "the annotations of the namespace".to_owned(),
            Place::NamespaceLabels => "the labels of the namespace".to_owned(),
            Place::WorkloadAnnotations | Place::WorkloadLabels => path("", place),
        }
    }
}

impl<'o> At<'o> {
    fn of(object: &'o Value, prefix: &str, place: Place) -> Self {
        let entries = texts(Some(object), map_key(place)).collect();
        Self { place, path: path(prefix, place), entries }
    }

    /// Whether it has a key.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(own, _)| *own == key)
    }
}

/// The entries of a map of an object's metadata whose values are texts.
pub fn texts<'o>(
    object: Option<&'o Value>,
    map: &str,
) -> impl Iterator<Item = (&'o str, &'o str)> + use<'o> {
    let metadata = object.and_then(|object| object.get("metadata"));
    let entries = metadata.and_then(|metadata| metadata.get(map)).and_then(Value::as_object);
    let entries = entries.into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

fn map_key(place: Place) -> &'static str {
    if place.is_label() { "labels" } else { "annotations" }
}

/// The path of a map in the object at a JSON pointer, with dots.
fn path(prefix: &str, place: Place) -> String {
    let dotted = prefix.replace('/', ".");
    let dotted = format!("{dotted}.metadata.{}", map_key(place));
    dotted.trim_start_matches('.').to_owned()
}

/// The JSON pointers above a pod template: that of the object, and of each object in between.
fn above(prefix: &str) -> impl Iterator<Item = &str> {
    prefix.match_indices('/').map(|(end, _)| &prefix[..end])
}
