//! Kubernetes' functions of lists (`pkg/cel/library/lists.go`).

use std::cmp::Ordering;

use super::{Call, Function, math};
use crate::value::{Fault, Res, Val, compare, equal};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        ".isSorted" => is_sorted,
        ".sum" => sum,
        ".min" => |call| extreme(call, Ordering::Greater, "min"),
        ".max" => |call| extreme(call, Ordering::Less, "max"),
        _ => return None,
    })
}

/// The place of an element, from the front or from the back.
pub(super) fn place<'d>(call: &mut Call<'_, 'd>, is_last: bool) -> Res<Val<'d>> {
    let list = call.list(0)?;
    let wanted = call.at(1)?.clone();
    for step in 0..list.len() {
        let place = if is_last { list.len() - 1 - step } else { step };
        let Some(item) = list.get(place) else { break };
        if equal(&item?, &wanted, call.work)? {
            return Ok(Val::Int(i64::try_from(place).unwrap_or(i64::MAX)));
        }
    }
    Ok(Val::Int(-1))
}

fn is_sorted<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let mut before: Option<Val<'d>> = None;
    for item in call.items(0)? {
        if !is_comparable(&item) {
            return Fault::overload();
        }
        if let Some(before) = before
            && compare(&before, &item, call.work)? == Some(Ordering::Greater)
        {
            return Ok(Val::Bool(false));
        }
        before = Some(item);
    }
    Ok(Val::Bool(true))
}

fn sum<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let items = call.items(0)?;
    let zero = match items.first() {
        None | Some(Val::Int(_)) => Val::Int(0),
        Some(Val::Uint(_)) => Val::Uint(0),
        Some(Val::Double(_)) => Val::Double(0.0),
        Some(Val::Duration(_)) => Val::Duration(0),
        Some(_) => return Fault::overload(),
    };
    items.into_iter().try_fold(zero, |sum, item| math::add(sum, item, call.work))
}

/// The least or the greatest element; of equal ones the first.
fn extreme<'d>(call: &mut Call<'_, 'd>, replaced: Ordering, name: &str) -> Res<Val<'d>> {
    let mut found: Option<Val<'d>> = None;
    for item in call.items(0)? {
        if !is_comparable(&item) {
            return Fault::overload();
        }
        match &found {
            Some(so_far) if compare(so_far, &item, call.work)? != Some(replaced) => {}
            _ => found = Some(item),
        }
    }
    found.map_or_else(|| Fault::error(format!("{name} called on empty list")), Ok)
}

/// Whether there is an overload for a list of such elements (`comparableTypes`).
fn is_comparable(item: &Val<'_>) -> bool {
    matches!(
        item,
        Val::Int(_)
            | Val::Uint(_)
            | Val::Double(_)
            | Val::Bool(_)
            | Val::Duration(_)
            | Val::Timestamp(_)
            | Val::Text(_)
            | Val::Bytes(_)
    )
}
