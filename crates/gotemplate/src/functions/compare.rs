//! Go's comparisons.

use std::sync::Arc;

use crate::{
    context::Use,
    function::{Call, Slot},
    print,
    value::{Kind, Shape, Value},
};

/// Kinds that can be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Complex,
    Int,
    Float,
    String,
    Uint,
}

fn basic(kind: Kind) -> Option<Basic> {
    Some(match kind {
        Kind::Bool => Basic::Bool,
        Kind::Complex => Basic::Complex,
        Kind::Int(_) => Basic::Int,
        Kind::Float => Basic::Float,
        Kind::String => Basic::String,
        Kind::Uint(_) => Basic::Uint,
        _ => return None,
    })
}

fn taken(call: &mut Call<'_, '_>) -> Vec<Slot> {
    for index in 0..call.count() {
        call.used(index, Use::Whole);
    }
    call.args.iter().map(|slot| slot.clone().unboxed()).collect()
}

fn type_of(slot: &Slot) -> String {
    slot.type_name().into_owned()
}

/// Whether the first argument equals any other. Go: `eq`.
pub(super) fn equal(call: &mut Call<'_, '_>) -> Result<bool, String> {
    let args = taken(call);
    let Some((first, others)) = args.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Err("missing argument for comparison".to_owned());
    };
    for other in others {
        if equals(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equals(one: &Slot, other: &Slot) -> Result<bool, String> {
    let kinds = (basic(one.kind()), basic(other.kind()));
    let (Some(first), Some(second)) = (&one.value, &other.value) else {
        let is_nil = |slot: &Slot| slot.value.as_ref().is_none_or(Value::is_nil);
        // A basic kind and no value are different, two without a basic kind are compared as nil.
        return Ok(kinds == (None, None) && is_nil(one) && is_nil(other));
    };
    let mixed = matches!(
        kinds,
        (Some(Basic::Int), Some(Basic::Uint)) | (Some(Basic::Uint), Some(Basic::Int))
    );
    if kinds.0 != kinds.1 && !mixed {
        let (one, other) = (type_of(one), type_of(other));
        return Err(format!("incompatible types for comparison: {one} and {other}"));
    }
    if kinds.0.is_some() {
        return Ok(match (first.plain().as_ref(), second.plain().as_ref()) {
            (Value::Bool(one), Value::Bool(other)) => one == other,
            #[expect(clippy::float_cmp, reason = "Go compares so")]
            (Value::Float(one), Value::Float(other)) => one == other,
            #[expect(clippy::float_cmp, reason = "Go compares so")]
            (Value::Complex(a, b), Value::Complex(c, d)) => a == c && b == d,
            (Value::Text(one), Value::Text(other)) => one == other,
            (one, other) => integer(one) == integer(other),
        });
    }
    incomparable(first, second)
}

/// Values of kinds that have no order: nil, pointers and structs. Lists and maps are an error.
fn incomparable(one: &Value, other: &Value) -> Result<bool, String> {
    let same_kind = one.kind().name() == other.kind().name();
    if !same_kind {
        let (one_type, other_type) = (one.type_name(), other.type_name());
        let (one, other) = (print::shown_by(one, 's'), print::shown(other));
        return Err(format!("non-comparable types {one}: {one_type}, {other_type}: {other}"));
    }
    if one.is_nil() || other.is_nil() {
        return Ok(one.is_nil() == other.is_nil());
    }
    let not_comparable = || {
        Err(format!("non-comparable type {}: {}", print::shown_by(other, 's'), other.type_name()))
    };
    match (one, other) {
        (Value::Object(first), Value::Object(second)) => match (first.shape(), second.shape()) {
            (Shape::Pointer, Shape::Pointer) => Ok(Arc::ptr_eq(first, second)),
            (Shape::Struct, Shape::Struct) if first.type_name() != second.type_name() => {
                second.equals(second.as_ref()).map_or_else(not_comparable, |_| Ok(false))
            }
            _ => first.equals(second.as_ref()).map_or_else(not_comparable, Ok),
        },
        _ => not_comparable(),
    }
}

/// An integer of either kind.
fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(int, _) => Some(i128::from(*int)),
        Value::Uint(int, _) => Some(i128::from(*int)),
        _ => None,
    }
}

/// Whether the first argument is less than the second. Go: `lt`.
pub(super) fn less(call: &mut Call<'_, '_>) -> Result<bool, String> {
    const INVALID: &str = "invalid type for comparison";
    let args = taken(call);
    let [one, other, ..] = args.as_slice() else { return Err(INVALID.to_owned()) };
    let kinds = basic(one.kind()).zip(basic(other.kind())).ok_or(INVALID)?;
    let (Some(first), Some(second)) = (&one.value, &other.value) else {
        return Err(INVALID.to_owned());
    };
    if matches!(kinds, (Basic::Bool, Basic::Bool) | (Basic::Complex, Basic::Complex)) {
        return Err(INVALID.to_owned());
    }
    Ok(match (first.plain().as_ref(), second.plain().as_ref()) {
        (Value::Float(one), Value::Float(other)) => one < other,
        (Value::Text(one), Value::Text(other)) => one < other,
        (first, second) => {
            let Some((one, other)) = integer(first).zip(integer(second)) else {
                let (one, other) = (type_of(one), type_of(other));
                return Err(format!("incompatible types for comparison: {one} and {other}"));
            };
            one < other
        }
    })
}
