//! Equality and order of values (`common/types` of cel-go).

use std::cmp::Ordering;

use super::{Map, Res, Val};
use crate::work::Work;

/// Whether two values are equal. Those of different types are not, but for numbers.
///
/// # Errors
/// There is more to compare than is allowed, or an element is not known.
pub(crate) fn equal<'d>(one: &Val<'d>, other: &Val<'d>, work: &mut Work) -> Res<bool> {
    work.spend(weight(one).min(weight(other)))?;
    Ok(match (one, other) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(one), Val::Bool(other)) => one == other,
        (Val::Text(one), Val::Text(other)) => **one == **other,
        (Val::Bytes(one), Val::Bytes(other)) => **one == **other,
        (Val::List(one), Val::List(other)) => {
            if one.len() != other.len() {
                return Ok(false);
            }
            for (one, other) in one.iter().zip(other.iter()) {
                if !equal(&one?, &other?, work)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Map(one), Val::Map(other)) => return maps(one, other, work),
        (Val::Optional(Some(one)), Val::Optional(Some(other))) => return equal(one, other, work),
        (Val::Optional(one), Val::Optional(other)) => one.is_none() && other.is_none(),
        (Val::Type(one), Val::Type(other)) => one == other,
        (Val::Duration(one), Val::Duration(other)) => one == other,
        (Val::Timestamp(one), Val::Timestamp(other)) => one == other,
        (Val::Ip(one), Val::Ip(other)) => one == other,
        (Val::Cidr(one), Val::Cidr(other)) => one == other,
        (Val::Quantity(one), Val::Quantity(other)) => one.billionths == other.billionths,
        (Val::Semver(one), Val::Semver(other)) => one.order(other) == Ordering::Equal,
        (Val::Url(one), Val::Url(other)) => one == other,
        (Val::Format(one), Val::Format(other)) => std::ptr::eq(*one, *other),
        (one, other) => numbers(one, other) == Some(Ordering::Equal),
    })
}

fn maps<'d>(one: &Map<'d>, other: &Map<'d>, work: &mut Work) -> Res<bool> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (key, value) in one.entries(work)? {
        let Some(found) = other.get(&key, work)? else { return Ok(false) };
        if !equal(&value?, &found, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two values; `None` if they have none. What is read is counted.
///
/// # Errors
/// There is more to compare than is allowed.
pub(crate) fn compare(one: &Val<'_>, other: &Val<'_>, work: &mut Work) -> Res<Option<Ordering>> {
    work.spend(weight(one).min(weight(other)))?;
    Ok(order(one, other))
}

/// The bytes that are read when a value is compared with one that is as long.
pub(crate) fn weight(value: &Val<'_>) -> usize {
    let contents = match value {
        Val::Text(text) => text.len(),
        Val::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    contents.saturating_add(std::mem::size_of::<Val<'_>>())
}

/// The order of two values; `None` if they have none. The caller counts their [`weight`].
pub(crate) fn order(one: &Val<'_>, other: &Val<'_>) -> Option<Ordering> {
    match (one, other) {
        (Val::Bool(one), Val::Bool(other)) => Some(one.cmp(other)),
        (Val::Text(one), Val::Text(other)) => Some((**one).cmp(&**other)),
        (Val::Bytes(one), Val::Bytes(other)) => Some((**one).cmp(&**other)),
        (Val::Duration(one), Val::Duration(other)) => Some(one.cmp(other)),
        (Val::Timestamp(one), Val::Timestamp(other)) => Some(one.cmp(other)),
        (one, other) => numbers(one, other),
    }
}

/// The order of two numbers, also of different types.
fn numbers(one: &Val<'_>, other: &Val<'_>) -> Option<Ordering> {
    match (one, other) {
        (Val::Int(one), Val::Int(other)) => Some(one.cmp(other)),
        (Val::Uint(one), Val::Uint(other)) => Some(one.cmp(other)),
        (Val::Int(one), Val::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Val::Uint(one), Val::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Val::Double(one), Val::Double(other)) => one.partial_cmp(other),
        (Val::Double(one), Val::Int(other)) => double(*one, i128::from(*other)),
        (Val::Double(one), Val::Uint(other)) => double(*one, i128::from(*other)),
        (Val::Int(one), Val::Double(other)) => {
            double(*other, i128::from(*one)).map(Ordering::reverse)
        }
        (Val::Uint(one), Val::Double(other)) => {
            double(*other, i128::from(*one)).map(Ordering::reverse)
        }
        _ => None,
    }
}

/// The order of a float and a whole number, as cel-go has it: both as floats, where the float is in
/// range.
fn double(one: f64, other: i128) -> Option<Ordering> {
    #[expect(clippy::cast_precision_loss, reason = "cel-go compares floats")]
    one.partial_cmp(&(other as f64))
}
