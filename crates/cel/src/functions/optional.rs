//! Optional values, and the entries that macros add to maps.

use std::rc::Rc;

use super::{Call, Function};
use crate::{
    value::{Fault, Made, Map, Res, Val},
    work::Work,
};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "optional.of" => |call| Ok(Val::some(call.at(0)?.clone())),
        "optional.ofNonZeroValue" => |call| {
            let value = call.at(0)?;
            Ok(if is_zero(value) { Val::Optional(None) } else { Val::some(value.clone()) })
        },
        "optional.none" => |_| Ok(Val::Optional(None)),
        "optional.unwrap" | ".unwrapOpt" => unwrap,
        ".hasValue" => |call| Ok(Val::Bool(value(call)?.is_some())),
        ".value" => {
            |call| value(call)?.map_or_else(|| Fault::error("optional.none() dereference"), Ok)
        }
        "cel.@mapInsert" => |call| insert(call.arguments.to_vec(), call.work),
        _ => return None,
    })
}

fn value<'d>(call: &Call<'_, 'd>) -> Res<Option<Val<'d>>> {
    match call.at(0)? {
        Val::Optional(value) => Ok(value.as_ref().map(|value| (**value).clone())),
        _ => Fault::overload(),
    }
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Optional(None) => true,
        Val::Bool(value) => !value,
        Val::Int(value) | Val::Duration(value) => *value == 0,
        Val::Uint(value) => *value == 0,
        Val::Double(value) => *value == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(list) => list.len() == 0,
        Val::Map(map) => map.len() == 0,
        Val::Timestamp(time) => time.is_first(),
        _ => false,
    }
}

fn unwrap<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let mut found = Vec::new();
    for item in call.items(0)? {
        match item {
            Val::Optional(Some(value)) => found.push((*value).clone()),
            Val::Optional(None) => {}
            _ => return Fault::error("a value is not optional"),
        }
    }
    Ok(Val::list(found))
}

/// A map with one more entry, or with those of a second map. A map that nothing else has is extended
/// in place: macros add entry by entry.
pub(crate) fn insert<'d>(arguments: Vec<Val<'d>>, work: &mut Work) -> Res<Val<'d>> {
    let mut arguments = arguments.into_iter();
    let (Some(Val::Map(map)), Some(second)) = (arguments.next(), arguments.next()) else {
        return Fault::overload();
    };
    let mut made = match map {
        Map::Made(made) => match Rc::try_unwrap(made) {
            Ok(made) => made,
            Err(shared) => Made::of(&Map::Made(shared), work)?,
        },
        data @ (Map::Data(_) | Map::At(..)) => Made::of(&data, work)?,
    };
    match (second, arguments.next()) {
        (key, Some(value)) => add(&mut made, key, value, work)?,
        (Val::Map(more), None) => {
            for (key, value) in more.entries(work)? {
                add(&mut made, key, value?, work)?;
            }
        }
        _ => return Fault::overload(),
    }
    Ok(Val::Map(Map::Made(Rc::new(made))))
}

/// Adds an entry with a new key.
fn add<'d>(made: &mut Made<'d>, key: Val<'d>, value: Val<'d>, work: &mut Work) -> Res<()> {
    work.spend_items(2)?;
    if made.insert(key, value, work)? {
        Ok(())
    } else {
        Fault::error("insert failed: key already exists")
    }
}
