//! The values of a pod by their places: what changed, and who may have written it.

use std::collections::{BTreeMap, BTreeSet};

use injectd_merge::schema::{Kind, POD};
use injectd_templates::named::NamedList;
use serde_json::Value;

use super::{
    lists,
    path::{self, Path},
};

/// What is at a place: its kind, and how its entries are named if it is a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    kind: Option<&'static Kind>,
    list: Option<NamedList>,
}

/// A value inside another one.
#[derive(Debug)]
pub(crate) enum Part<'v> {
    /// A field of an object, or an entry of a map.
    Field(&'v str),
    /// An entry of a list, with the key and the value of its name.
    Entry(&'static str, &'v Value),
}

impl Spot {
    /// A pod.
    pub(crate) fn pod() -> Self {
        Self { kind: Some(&POD), list: None }
    }

    /// A container.
    pub(crate) fn container() -> Self {
        let spec = POD.as_struct().and_then(|pod| pod.field("spec")?.kind.as_struct());
        let list = spec.and_then(|spec| spec.field(lists::LISTS[1].key()));
        let kind = list.and_then(|list| match &list.kind {
            Kind::List(entry) => Some(&**entry),
            _ => None,
        });
        Self { kind, list: None }
    }

    /// Calls a function for each part of a value, with its step and what it is; `false` if the value is one
    /// as a whole.
    pub(crate) fn each_part<'v>(
        self,
        value: &'v Value,
        then: &mut dyn FnMut(Part<'v>, String, &'v Value, Self),
    ) -> bool {
        match (self.kind, value, self.list) {
            (Some(Kind::Struct(_) | Kind::Map(..)) | None, Value::Object(fields), _)
                if !fields.is_empty() =>
            {
                for (key, field) in fields {
                    then(Part::Field(key), key.clone(), field, self.field(key));
                }
                true
            }
            (Some(Kind::List(entry)), Value::Array(items), Some(list)) if !items.is_empty() => {
                for item in items {
                    let name = list.name(item).unwrap_or_default();
                    let part = Part::Entry(list.key, &item[list.key]);
                    then(part, path::entry(&name), item, Self { kind: Some(entry), list: None });
                }
                true
            }
            _ => false,
        }
    }

    fn field(self, key: &str) -> Self {
        match self.kind {
            Some(Kind::Struct(of)) => match of.get().field(key) {
                Some(field) => Self { kind: Some(&field.kind), list: NamedList::of(field) },
                None => Self { kind: None, list: None },
            },
            Some(Kind::Map(_, inner)) => Self { kind: Some(inner), list: None },
            _ => Self { kind: None, list: None },
        }
    }
}

/// The values of a pod that are one as a whole, by their places.
pub(crate) fn leaves(pod: &Value) -> BTreeMap<Path, &Value> {
    let mut found = BTreeMap::new();
    add(pod, Spot::pod(), &Path::new(), &mut found);
    found
}

fn add<'v>(value: &'v Value, spot: Spot, place: &Path, found: &mut BTreeMap<Path, &'v Value>) {
    let mut then = |_: Part<'v>, step: String, value: &'v Value, spot: Spot| {
        let place = [&place[..], &[step]].concat();
        add(value, spot, &place, found);
    };
    if !spot.each_part(value, &mut then) {
        found.insert(place.clone(), value);
    }
}

/// A pod without these places, and without what is empty without them.
pub(crate) fn without(pod: &Value, places: &BTreeSet<Path>) -> Value {
    rest(pod, Spot::pod(), &Path::new(), places).unwrap_or_default()
}

fn rest(value: &Value, spot: Spot, place: &Path, places: &BTreeSet<Path>) -> Option<Value> {
    if places.contains(place) {
        return None;
    }
    let mut parts = Vec::new();
    let mut keep = |_: Part<'_>, step: String, value: &Value, spot: Spot| {
        let inner = [&place[..], std::slice::from_ref(&step)].concat();
        parts.push((step, rest(value, spot, &inner, places)));
    };
    if !spot.each_part(value, &mut keep) {
        return Some(value.clone());
    }
    if parts.iter().all(|(_, left)| left.is_none()) {
        return None;
    }
    let left = parts.into_iter().filter_map(|(step, left)| Some((step, left?)));
    Some(match value {
        Value::Array(_) => left.map(|(_, left)| left).collect(),
        _ => Value::Object(left.collect()),
    })
}

/// A step of a place: the entry of a list.
pub(crate) fn entry(name: &str) -> String {
    path::entry(name)
}

/// The place of a container of a pod.
pub(crate) fn container_place(list: &str, name: &str) -> Path {
    vec!["spec".to_owned(), list.to_owned(), entry(name)]
}

/// A place as a person reads it.
pub(crate) fn shown(place: &[String]) -> String {
    path::shown(place)
}
