//! Places in a pod.

use std::collections::BTreeSet;

use injectd_merge::schema::{Kind, POD, Struct};
use injectd_templates::named::NamedList;
use serde_json::{Map, Value};

/// A place in a pod: keys of objects, and names of entries as [`entry`] writes them.
pub(super) type Path = Vec<String>;

/// An entry of a list in a [`Path`].
pub(crate) fn entry(name: &str) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    if name.bytes().all(is_plain) { ["[\"", name, "\"]"].concat() } else { format!("[{name:?}]") }
}

/// A place as a person reads it: `spec.containers["app"].env["A"]`.
pub(crate) fn shown(place: &[String]) -> String {
    let mut text = String::new();
    for part in place {
        if !text.is_empty() && !part.starts_with('[') {
            text.push('.');
        }
        text.push_str(part);
    }
    text
}

/// Places that have what is expected, whatever else the pod has.
pub(super) fn same_places(pod: &Value, expected: &Value) -> BTreeSet<Path> {
    let types = POD.as_struct().expect("a Pod must be a struct");
    let mut places = Vec::new();
    leaves(expected, types, &mut Path::new(), &mut places);
    let is_same = |place: &Path| at(pod, place, types) == at(expected, place, types);
    places.into_iter().filter(is_same).collect()
}

/// The places in an object that are kept or replaced as a whole.
fn leaves(object: &Value, types: &'static Struct, place: &mut Path, found: &mut Vec<Path>) {
    for (key, value) in object.as_object().into_iter().flatten() {
        let field = types.field(key);
        place.push(key.clone());
        let named = field.and_then(NamedList::of);
        match (field.map(|field| &field.kind), value, named) {
            (Some(Kind::Struct(inner)), Value::Object(_), _) => {
                leaves(value, inner.get(), place, found);
            }
            (Some(Kind::Map(..)), Value::Object(map), _) => {
                found.extend(map.keys().map(|key| below(place, key.clone())));
            }
            (_, Value::Array(entries), Some(list)) => {
                let of_entries = entries.iter().filter_map(|entry| list.name(entry));
                found.extend(of_entries.map(|name| below(place, entry(&name))));
            }
            _ => found.push(place.clone()),
        }
        place.pop();
    }
}

fn below(place: &[String], key: String) -> Path {
    place.iter().cloned().chain([key]).collect()
}

/// What is at a place of an object.
fn at<'v>(object: &'v Value, place: &[String], types: &'static Struct) -> Option<&'v Value> {
    let [key, rest @ ..] = place else { return Some(object) };
    let (value, field) = (object.get(key)?, types.field(key));
    let [next, after @ ..] = rest else { return Some(value) };
    match &field?.kind {
        Kind::Struct(inner) => at(value, rest, inner.get()),
        Kind::Map(..) => value.get(next),
        Kind::List(_) => {
            let list = NamedList::of(field?)?;
            let is_named =
                |value: &&Value| list.name(value).is_some_and(|name| entry(&name) == *next);
            at(value.as_array()?.iter().find(is_named)?, after, list.types)
        }
        _ => None,
    }
}

/// A value without objects and lists that have nothing; null if nothing is left.
pub(super) fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, without_empty(value)));
            let fields: Map<_, _> = fields.filter(|(_, value)| !value.is_null()).collect();
            if fields.is_empty() { Value::Null } else { fields.into() }
        }
        Value::Array(items) => {
            let items: Vec<_> = items.into_iter().map(without_empty).collect();
            if items.is_empty() { Value::Null } else { items.into() }
        }
        scalar => scalar,
    }
}

/// Removes what is at a place of an object.
pub(super) fn remove(object: &mut Value, place: &[String], types: &'static Struct) {
    let (Value::Object(fields), [key, rest @ ..]) = (object, place) else { return };
    if rest.is_empty() {
        fields.shift_remove(key);
        return;
    }
    let Some(field) = types.field(key) else { return };
    match (&field.kind, fields.get_mut(key)) {
        (Kind::Struct(inner), Some(value)) => remove(value, rest, inner.get()),
        (Kind::Map(..), Some(Value::Object(map))) => {
            map.shift_remove(&rest[0]);
        }
        (Kind::List(_), Some(Value::Array(entries))) => {
            let Some(list) = NamedList::of(field) else { return };
            let is_named =
                |value: &Value| list.name(value).is_some_and(|name| entry(&name) == rest[0]);
            if rest.len() == 1 {
                entries.retain(|entry| !is_named(entry));
            } else if let Some(entry) = entries.iter_mut().find(|entry| is_named(entry)) {
                remove(entry, &rest[1..], list.types);
            }
        }
        _ => {}
    }
}
