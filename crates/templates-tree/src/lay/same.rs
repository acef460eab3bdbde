//! Whether a pod has what an overlay would write, and whether two values mean the same.

use injectd_gocompat::quantity;
use injectd_merge::schema::{Field, Kind, Struct};
use injectd_templates::named::NamedList;
use serde_json::{Map, Value};

use super::directive::{self, Directive, PATCH};

/// Values that an API server writes where a field of an entry is absent: struct, field, value.
const DEFAULTS: [(&str, &str, &str); 3] = [
    ("ContainerPort", "protocol", "TCP"),
    ("ObjectFieldSelector", "apiVersion", "v1"),
    ("ResourceFieldSelector", "divisor", "0"),
];

/// Whether a value is one that Go does not write: the field is absent for an API server.
pub(super) fn is_unset(value: &Value, is_pointer: bool) -> bool {
    let is_zero = match value {
        Value::Null => return true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    };
    is_zero && !is_pointer
}

/// Whether an object has all that an overlay would write: maps contain its entries, lists with names
/// contain its entries, other values are the same.
pub(super) fn has_fields(
    current: &Map<String, Value>,
    wanted: &Map<String, Value>,
    types: &'static Struct,
) -> bool {
    wanted.iter().filter(|(key, _)| *key != PATCH).all(|(key, wanted)| {
        let Some(field) = types.field(key) else { return current.get(key) == Some(wanted) };
        // A null is an absent field to an API server.
        match current.get(key).filter(|value| !value.is_null()) {
            Some(current) => has(current, wanted, field),
            None => {
                directive::of(wanted) == Some(Directive::Delete) || is_default(wanted, field, types)
            }
        }
    })
}

fn has(current: &Value, wanted: &Value, field: &'static Field) -> bool {
    match directive::of(wanted) {
        Some(Directive::Delete) => return false,
        Some(Directive::Replace) => return same(current, &directive::plain(wanted), &field.kind),
        None => {}
    }
    match (&field.kind, current, wanted) {
        (Kind::Struct(inner), Value::Object(current), Value::Object(wanted)) => {
            has_fields(current, wanted, inner.get())
        }
        (Kind::Map(_, inner), Value::Object(current), Value::Object(wanted)) => {
            let has =
                |key: &String, wanted| current.get(key).is_some_and(|c| same(c, wanted, inner));
            wanted.iter().all(|(key, wanted)| has(key, wanted))
        }
        (Kind::List(_), Value::Array(current), Value::Array(entries)) => {
            match NamedList::of(field) {
                Some(list) if !directive::replaces_list(entries) => {
                    entries.iter().all(|entry| has_entry(current, entry, list))
                }
                _ => same(&Value::from(current.clone()), &directive::plain(wanted), &field.kind),
            }
        }
        (kind, ..) => same(current, wanted, kind),
    }
}

fn has_entry(current: &[Value], wanted: &Value, list: NamedList) -> bool {
    let found = list.name(wanted).and_then(|name| list.position(current, &name));
    let entry = found.and_then(|at| current.get(at)).and_then(Value::as_object);
    match (directive::of(wanted), entry, wanted.as_object()) {
        (Some(Directive::Delete), entry, _) => entry.is_none(),
        (_, Some(entry), Some(wanted)) => has_fields(entry, wanted, list.types),
        _ => false,
    }
}

/// Whether two values mean the same to an API server.
pub(super) fn same(one: &Value, other: &Value, kind: &'static Kind) -> bool {
    match (kind, one, other) {
        (Kind::Struct(inner), Value::Object(one), Value::Object(other)) => {
            same_fields(one, other, inner.get())
        }
        (Kind::Map(_, inner), Value::Object(one), Value::Object(other)) => {
            let has =
                |key: &String, one| other.get(key).is_some_and(|other| same(one, other, inner));
            one.len() == other.len() && one.iter().all(|(key, one)| has(key, one))
        }
        (Kind::List(inner), Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| same(one, other, inner))
        }
        (Kind::Quantity, one, other) => one == other || same_quantity(one, other),
        (_, one, other) => one == other,
    }
}

/// [`same`] for two objects of a type.
pub(super) fn same_fields(
    one: &Map<String, Value>,
    other: &Map<String, Value>,
    types: &'static Struct,
) -> bool {
    one.keys().chain(other.keys()).all(|key| {
        let Some(field) = types.field(key) else { return one.get(key) == other.get(key) };
        let set = |value: &&Value| !is_default(value, field, types);
        match (one.get(key).filter(set), other.get(key).filter(set)) {
            (Some(one), Some(other)) => same(one, other, &field.kind),
            (one, other) => one.is_none() && other.is_none(),
        }
    })
}

/// Whether the value of a field means what its absence means.
fn is_default(value: &Value, field: &Field, types: &Struct) -> bool {
    let is_row = |(of, name, default): &(&str, &str, &str)| {
        *of == types.name && *name == field.name && value == *default
    };
    is_unset(value, field.pointer) || DEFAULTS.iter().any(is_row)
}

fn same_quantity(one: &Value, other: &Value) -> bool {
    let amount = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        quantity::parse(text.trim())?.billionths()
    };
    amount(one).is_some_and(|one| amount(other) == Some(one))
}
