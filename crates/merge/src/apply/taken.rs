//! Values that the base takes from the patch.

use serde_json::{Map, Number, Value};

use super::{Base, PATCH_DIRECTIVE, directives, settle as settle_in};
use crate::schema::{Field, Kind, Struct};

/// A value that is new in the base: nulls in its objects go, and so do objects with `$patch`.
///
/// Go: `discardNullValuesFromPatch` and `removeDirectives`.
pub(super) fn new_value(mut value: Value) -> Option<Value> {
    remove_nulls(&mut value);
    without_directives(value)
}

/// A value without the objects that have `$patch`.
///
/// Go: `removeDirectives`.
pub(super) fn without_directives(mut value: Value) -> Option<Value> {
    remove_directives(&mut value).then_some(value)
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(remove_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// The answer is whether the value stays.
fn remove_directives(value: &mut Value) -> bool {
    match value {
        Value::Object(map) if map.contains_key(PATCH_DIRECTIVE) => return false,
        Value::Object(map) => map.retain(|_, value| remove_directives(value)),
        Value::Array(list) => list.retain_mut(remove_directives),
        _ => {}
    }
    true
}

/// The value as a field holds it.
pub(super) fn in_field(mut value: Value, field: Option<&'static Field>, reading: Base) -> Value {
    settle_in(&mut value, field.map(|field| &field.kind), reading);
    value
}

/// Changes a value to what Go reads it as: no nulls and no directives, integers without a point,
/// and keys in the case of their fields. Values of a wrong type stay.
pub(super) fn settle(value: &mut Value, kind: &'static Kind) {
    match (kind, value) {
        (Kind::Struct(inner), Value::Object(map)) => settle_struct(map, inner.get()),
        (Kind::Map(_, inner), Value::Object(map)) => {
            for value in map.values_mut() {
                settle_element(value, inner);
            }
        }
        (Kind::List(inner), Value::Array(list)) => {
            for value in list {
                settle_element(value, inner);
            }
        }
        (Kind::Int32 | Kind::Int64 | Kind::IntOrString, Value::Number(number)) => {
            if let Some(integer) = whole(number) {
                *number = integer.into();
            }
        }
        _ => {}
    }
}

/// The integer that a float holds.
pub(crate) fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    crate::show::json_number(&Number::from_f64(float)?).parse().ok()
}

/// An element of a list or a map: `null` is the empty value.
fn settle_element(value: &mut Value, kind: &'static Kind) {
    if value.is_null() {
        *value = zero(kind);
    } else {
        settle(value, kind);
    }
}

/// The value that Go writes for a `null` it has read.
pub(crate) fn zero(kind: &Kind) -> Value {
    match kind {
        Kind::Text(_) => "".into(),
        Kind::Boolean => false.into(),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString => 0.into(),
        Kind::Quantity => "0".into(),
        Kind::Struct(_) => Value::Object(Map::new()),
        Kind::Time | Kind::Any | Kind::List(_) | Kind::Map(..) => Value::Null,
    }
}

fn settle_struct(map: &mut Map<String, Value>, fields: &'static Struct) {
    let goes = |key: &str, value: &Value| value.is_null() || directives::is_directive(key);
    let other_case =
        |key: &str| fields.field(key).is_none() && fields.field_ignoring_case(key).is_some();
    let mut renamed = Vec::new();
    if map.iter().any(|(key, value)| goes(key, value) || other_case(key)) {
        let all = std::mem::take(map).into_iter().filter(|(key, value)| !goes(key, value));
        let (moved, kept) = all.partition(|(key, _)| other_case(key));
        *map = kept;
        renamed = Vec::from_iter::<Map<_, _>>(moved);
    }
    renamed.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    for (key, value) in renamed {
        if let Some(field) = fields.field_ignoring_case(&key) {
            map.entry(field.name).or_insert(value);
        }
    }
    for (key, value) in map {
        if let Some(field) = fields.field(key) {
            settle(value, &field.kind);
        }
    }
}
