//! The lists of a pod whose entries are somebody's as a whole: containers and volumes.

use std::borrow::Cow;

use injectd_merge::schema::{Kind, POD, Struct};
use injectd_templates::named::member;
use serde_json::{Map, Value};

use super::{
    Placed, StepOverlay,
    claims::{Claim, Others},
    directive,
    path::{self, Path},
    place,
    same::has_fields,
};

/// A list of `spec` whose entries are somebody's as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    InitContainers,
    Containers,
    EphemeralContainers,
    Volumes,
}

/// The lists that an overlay may have.
pub(super) const LISTS: [List; 3] = [List::InitContainers, List::Containers, List::Volumes];

impl List {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::InitContainers => "initContainers",
            Self::Containers => "containers",
            Self::EphemeralContainers => "ephemeralContainers",
            Self::Volumes => "volumes",
        }
    }

    /// Other lists that share its names.
    pub(super) fn others(self) -> &'static [Self] {
        match self {
            Self::InitContainers => &[Self::Containers, Self::EphemeralContainers],
            Self::Containers => &[Self::InitContainers, Self::EphemeralContainers],
            Self::EphemeralContainers => &[Self::InitContainers, Self::Containers],
            Self::Volumes => &[],
        }
    }

    /// The entries of an overlay.
    pub(super) fn written(self, overlay: &Value) -> Option<&[Value]> {
        member(member(overlay, "spec")?, self.key())?.as_array().map(Vec::as_slice)
    }

    pub(super) fn of(self, pod: &Value) -> &[Value] {
        let list = member(pod, "spec").and_then(|spec| member(spec, self.key()));
        list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn of_mut(self, pod: &mut Value) -> Option<&mut Vec<Value>> {
        pod.get_mut("spec")?.get_mut(self.key())?.as_array_mut()
    }

    pub(super) fn position(self, pod: &Value, name: &str) -> Option<usize> {
        self.of(pod).iter().position(|entry| self::name(entry) == Some(name))
    }

    pub(super) fn remove(self, pod: &mut Value, name: &str) {
        if let Some(list) = self.of_mut(pod) {
            list.retain(|entry| self::name(entry) != Some(name));
        }
    }

    pub(super) fn types(self) -> &'static Struct {
        let spec = POD.as_struct().and_then(|pod| pod.field("spec")?.kind.as_struct());
        let field = spec.and_then(|spec| spec.field(self.key()));
        let types = field.and_then(|field| match &field.kind {
            Kind::List(entry) => entry.as_struct(),
            _ => None,
        });
        types.expect("the list must be in the table")
    }

    /// Puts new entries of a step into the list of a pod.
    pub(super) fn insert(self, pod: &mut Value, new: Vec<Value>, step: &StepOverlay<'_>) {
        if new.is_empty() {
            return;
        }
        let default = Placed::default();
        let placed = match self {
            Self::InitContainers => &step.init_containers,
            Self::Containers => &step.containers,
            Self::EphemeralContainers | Self::Volumes => &default,
        };
        self.insert_at(pod, new, placed);
    }

    /// Puts new entries into the list of a pod, which may be none of its lists yet.
    pub(super) fn insert_at(self, pod: &mut Value, new: Vec<Value>, placed: &Placed) {
        let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
        match spec.get_mut(self.key()) {
            Some(Value::Array(list)) => place::insert(list, new, placed),
            Some(other) => *other = Value::Array(new),
            None => drop(spec.insert(self.key().to_owned(), Value::Array(new))),
        }
    }

    /// Whether an entry has all that another one has.
    pub(super) fn has(self, met: &Value, wanted: &Value) -> bool {
        match (met, wanted) {
            (Value::Object(met), Value::Object(wanted)) => has_fields(met, wanted, self.types()),
            _ => false,
        }
    }

    /// Whether an entry has all that another one has, but for what later turns replace in it.
    pub(super) fn is_complete(self, met: &Value, wanted: &Value, others: &Others<'_>) -> bool {
        let place = self.place(name(wanted).unwrap_or_default());
        if others.has(&place, Claim::Replaced) || self.has(met, wanted) {
            return true;
        }
        self.has(met, &others.without_replaced(wanted, &place, self.types()))
    }

    /// Whether a later turn replaces an entry by one in another list, and the pod has that one.
    pub(super) fn is_moved(self, pod: &Value, name: &str, others: &Others<'_>) -> bool {
        let is_there = self.others().iter().any(|other| other.position(pod, name).is_some());
        is_there && others.has(&self.place(name), Claim::Replaced)
    }

    /// The place of an entry, as rules for containers have it.
    pub(super) fn place(self, name: &str) -> Path {
        vec![self.noun().to_owned(), path::entry(name)]
    }

    /// What an entry is, for a person.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::InitContainers | Self::Containers | Self::EphemeralContainers => "container",
            Self::Volumes => "volume",
        }
    }
}

/// Whether an overlay has more than containers and volumes.
pub(super) fn has_more(overlay: &Value) -> bool {
    let is_other = |key: &String| LISTS.iter().all(|list| list.key() != key);
    let has_other = |(key, value): (&String, &Value)| match value {
        Value::Object(spec) if key == "spec" => spec.keys().any(is_other),
        _ => true,
    };
    overlay.as_object().is_none_or(|fields| fields.iter().any(has_other))
}

/// A field of an overlay without containers and volumes; `None` if it has nothing else.
pub(super) fn besides<'v>(key: &str, value: &'v Value) -> Option<Cow<'v, Value>> {
    let is_other = |key: &str| LISTS.iter().all(|list| list.key() != key);
    match value {
        Value::Object(spec) if key == "spec" => {
            let others: Map<_, _> = spec
                .iter()
                .filter(|(key, _)| is_other(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            (!others.is_empty()).then(|| Cow::Owned(Value::Object(others)))
        }
        _ => Some(Cow::Borrowed(value)),
    }
}

/// Whether a pod has a volume of the same name as one of an overlay that lacks what the overlay would write.
pub(crate) fn meets_another_volume(pod: &Value, wanted: &Value) -> bool {
    let list = List::Volumes;
    let written = wanted.as_array().into_iter().flatten();
    written.filter(|volume| directive::of(volume).is_none()).any(|volume| {
        let met = name(volume).and_then(|name| list.of(pod).get(list.position(pod, name)?));
        met.is_some_and(|met| !list.has(met, volume))
    })
}

/// The type of a container.
pub(crate) fn container() -> &'static Struct {
    List::Containers.types()
}

pub(super) fn name(entry: &Value) -> Option<&str> {
    member(entry, "name").and_then(Value::as_str)
}
