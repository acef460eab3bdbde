//! Arithmetic, and the joining of texts, bytes and lists.

use super::{Call, Function};
use crate::{
    value::{Bytes, Fault, List, Res, Time, Val},
    work::Work,
};

/// Bytes of a short text.
const SHORT: usize = 128;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "_+_" => |call| add(call.at(0)?.clone(), call.at(1)?.clone(), call.work),
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => remainder,
        "-_" => negate,
        "!_" => |call| match call.at(0)? {
            Val::Bool(value) => Ok(Val::Bool(!value)),
            _ => Fault::overload(),
        },
        _ => return None,
    })
}

/// The value, or the error of numbers that are out of range.
fn in_range(value: Option<Val<'_>>) -> Res<Val<'_>> {
    value.map_or_else(|| Fault::error("integer overflow"), Ok)
}

/// The sum of numbers and times, or what both are together.
pub(crate) fn add<'d>(one: Val<'d>, other: Val<'d>, work: &mut Work) -> Res<Val<'d>> {
    match (one, other) {
        (Val::Int(one), Val::Int(other)) => in_range(one.checked_add(other).map(Val::Int)),
        (Val::Uint(one), Val::Uint(other)) => in_range(one.checked_add(other).map(Val::Uint)),
        (Val::Double(one), Val::Double(other)) => Ok(Val::Double(one + other)),
        (Val::Duration(one), Val::Duration(other)) => {
            in_range(one.checked_add(other).map(Val::Duration))
        }
        (Val::Timestamp(time), Val::Duration(nanos))
        | (Val::Duration(nanos), Val::Timestamp(time)) => moved(time, i128::from(nanos)),
        (Val::Text(one), Val::Text(other)) => {
            work.spend(one.len() + other.len())?;
            Ok(joined(&one, &other))
        }
        (Val::Bytes(one), Val::Bytes(other)) => {
            work.spend(one.len() + other.len())?;
            Ok(Val::Bytes(Bytes::Made([&*one, &*other].concat().into())))
        }
        (Val::List(one), Val::List(other)) => join(one, &other, work),
        _ => Fault::overload(),
    }
}

/// A text and one behind it. A short one is put together without an allocation of its own.
fn joined<'d>(one: &str, other: &str) -> Val<'d> {
    let mut short = [0; SHORT];
    let length = one.len() + other.len();
    if let Some((first, rest)) = short.split_at_mut_checked(one.len())
        && let Some(second) = rest.get_mut(..other.len())
    {
        first.copy_from_slice(one.as_bytes());
        second.copy_from_slice(other.as_bytes());
        if let Ok(text) = std::str::from_utf8(&short[..length]) {
            return Val::text(text);
        }
    }
    Val::text([one, other].concat())
}

/// A list that nothing else has is extended in place: macros add element by element.
fn join<'d>(one: List<'d>, other: &List<'d>, work: &mut Work) -> Res<Val<'d>> {
    work.spend_items(other.len())?;
    let mut items = match one {
        List::Made(items) => std::rc::Rc::try_unwrap(items).or_else(|items| {
            work.spend_items(items.len())?;
            Ok(items.to_vec())
        })?,
        List::Data(_) | List::At(..) => {
            work.spend_items(one.len())?;
            one.to_vec()?
        }
    };
    for item in other.iter() {
        items.push(item?);
    }
    Ok(Val::list(items))
}

/// A time that is later by some nanoseconds.
fn moved<'d>(time: Time, nanos: i128) -> Res<Val<'d>> {
    match time.later(nanos) {
        Some(time) => Ok(Val::Timestamp(time)),
        None => Fault::error("timestamp overflow"),
    }
}

fn subtract<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    match (call.at(0)?, call.at(1)?) {
        (Val::Int(one), Val::Int(other)) => in_range(one.checked_sub(*other).map(Val::Int)),
        (Val::Uint(one), Val::Uint(other)) => in_range(one.checked_sub(*other).map(Val::Uint)),
        (Val::Double(one), Val::Double(other)) => Ok(Val::Double(one - other)),
        (Val::Duration(one), Val::Duration(other)) => {
            in_range(one.checked_sub(*other).map(Val::Duration))
        }
        (Val::Timestamp(time), Val::Duration(nanos)) => moved(*time, -i128::from(*nanos)),
        (Val::Timestamp(one), Val::Timestamp(other)) => {
            in_range(i64::try_from(one.since(*other)).ok().map(Val::Duration))
        }
        _ => Fault::overload(),
    }
}

fn multiply<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    match (call.at(0)?, call.at(1)?) {
        (Val::Int(one), Val::Int(other)) => in_range(one.checked_mul(*other).map(Val::Int)),
        (Val::Uint(one), Val::Uint(other)) => in_range(one.checked_mul(*other).map(Val::Uint)),
        (Val::Double(one), Val::Double(other)) => Ok(Val::Double(one * other)),
        _ => Fault::overload(),
    }
}

fn divide<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    match (call.at(0)?, call.at(1)?) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => {
            Fault::error("division by zero")
        }
        (Val::Int(one), Val::Int(other)) => in_range(one.checked_div(*other).map(Val::Int)),
        (Val::Uint(one), Val::Uint(other)) => in_range(one.checked_div(*other).map(Val::Uint)),
        (Val::Double(one), Val::Double(other)) => Ok(Val::Double(one / other)),
        _ => Fault::overload(),
    }
}

fn remainder<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    match (call.at(0)?, call.at(1)?) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => {
            Fault::error("modulus by zero")
        }
        (Val::Int(one), Val::Int(other)) => in_range(one.checked_rem(*other).map(Val::Int)),
        (Val::Uint(one), Val::Uint(other)) => in_range(one.checked_rem(*other).map(Val::Uint)),
        _ => Fault::overload(),
    }
}

fn negate<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    match call.at(0)? {
        Val::Int(value) => in_range(value.checked_neg().map(Val::Int)),
        Val::Double(value) => Ok(Val::Double(-value)),
        Val::Duration(value) => in_range(value.checked_neg().map(Val::Duration)),
        _ => Fault::overload(),
    }
}
