//! Comparisons, membership and sizes.

use std::cmp::Ordering;

use super::{Call, Function};
use crate::value::{Fault, Res, Val, compare, equal};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "_==_" => |call| equal(call.at(0)?, call.at(1)?, call.work).map(Val::Bool),
        "_!=_" => |call| equal(call.at(0)?, call.at(1)?, call.work).map(|equal| Val::Bool(!equal)),
        "_<_" => |call| compared(call, Ordering::is_lt),
        "_<=_" => |call| compared(call, Ordering::is_le),
        "_>_" => |call| compared(call, Ordering::is_gt),
        "_>=_" => |call| compared(call, Ordering::is_ge),
        "@in" => is_in,
        "size" | ".size" => size,
        "dyn" => |call| call.at(0).cloned(),
        "type" => |call| Ok(Val::Type(call.at(0)?.type_name())),
        _ => return None,
    })
}

fn compared<'d>(call: &mut Call<'_, 'd>, is: fn(Ordering) -> bool) -> Res<Val<'d>> {
    let order = compare(call.at(0)?, call.at(1)?, call.work)?;
    order.map_or_else(Fault::overload, |order| Ok(Val::Bool(is(order))))
}

fn is_in<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let value = call.at(0)?;
    match call.at(1)? {
        Val::List(list) => {
            for item in list.iter() {
                if equal(value, &item?, call.work)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        Val::Map(map) => map.has(value, call.work).map(Val::Bool),
        _ => Fault::overload(),
    }
}

fn size<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let size = match call.at(0)? {
        Val::Text(_) => call.text(0)?.chars().count(),
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.len(),
        Val::Map(map) => map.len(),
        _ => return Fault::overload(),
    };
    Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}
