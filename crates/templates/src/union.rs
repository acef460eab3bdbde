//! Fields of a Pod of which an object has one: kinds of handlers and sources, and what a variable gets its value
//! from.

use injectd_merge::schema::Struct;
use serde_json::{Map, Value};

/// The other fields of an object that cannot stay beside a field of this key.
pub fn rivals<'m>(
    types: &'static Struct,
    key: &'m str,
    fields: &'m Map<String, Value>,
) -> impl Iterator<Item = &'m String> {
    let of = member(types, key);
    let is_rival = move |(other, value): &(&String, &Value)| {
        let is_set = !value.is_null() && **value != "";
        is_set && *other != key && of == member(types, other)
    };
    let fields = of.map(|_| fields.iter());
    fields.into_iter().flatten().filter(is_rival).map(|(other, _)| other)
}

/// The keys that cannot stay beside a field of this key.
pub(crate) fn others(types: &'static Struct, key: &str) -> impl Iterator<Item = &'static str> {
    let of = member(types, key);
    let names = types.fields().iter().map(|field| field.name);
    names.filter(move |name| of.is_some() && *name != key && member(types, name) == of)
}

/// The union that a field of a struct is a member of.
fn member(types: &'static Struct, key: &str) -> Option<&'static str> {
    match (types.name, key) {
        // The value of a variable is a text, and so no struct that names its union.
        ("EnvVar", "value" | "valueFrom") => Some(types.name),
        _ => types.union_of(types.field(key)?),
    }
}
