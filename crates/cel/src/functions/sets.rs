//! Lists as sets (`ext/sets.go` of cel-go).

use super::{Call, Function};
use crate::value::{Res, Val, equal};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "sets.contains" => |call| has_all(call, 0, 1).map(Val::Bool),
        "sets.equivalent" => |call| Ok(Val::Bool(has_all(call, 0, 1)? && has_all(call, 1, 0)?)),
        "sets.intersects" => |call| {
            let (all, some) = (call.items(0)?, call.items(1)?);
            for item in &all {
                if has(call, &some, item)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        },
        _ => return None,
    })
}

/// Whether a list has all elements of another one.
fn has_all(call: &mut Call<'_, '_>, list: usize, of: usize) -> Res<bool> {
    let (list, of) = (call.items(list)?, call.items(of)?);
    for item in &of {
        if !has(call, &list, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has<'d>(call: &mut Call<'_, 'd>, list: &[Val<'d>], item: &Val<'d>) -> Res<bool> {
    for known in list {
        if equal(known, item, call.work)? {
            return Ok(true);
        }
    }
    Ok(false)
}
