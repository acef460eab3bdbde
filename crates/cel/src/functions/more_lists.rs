//! The functions of lists of cel-go (`ext/lists.go`).

use std::cmp::Ordering;

use super::{Call, Function};
use crate::{
    value::{Fault, Res, Val, equal, order, weight},
    work::Work,
};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "lists.range" => range,
        ".slice" => slice,
        ".flatten" => flatten,
        ".distinct" => distinct,
        ".reverse" => |call| {
            let mut items = call.items(0)?;
            items.reverse();
            Ok(Val::list(items))
        },
        ".sort" => |call| {
            let keys = call.items(0)?;
            sort(call, keys)
        },
        ".@sortByAssociatedKeys" => |call| {
            let keys = call.items(1)?;
            sort(call, keys)
        },
        ".first" => |call| end(call, |length| length.min(1)),
        ".last" => |call| end(call, |length| length),
        _ => return None,
    })
}

fn range<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let count = call.int(0)?;
    call.work.spend_items(usize::try_from(count).unwrap_or(0))?;
    Ok(Val::list((0..count).map(Val::Int).collect()))
}

fn slice<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (items, start, end) = (call.items(0)?, call.int(1)?, call.int(2)?);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match range.and_then(|(start, end)| items.get(start..end)) {
        Some(items) => Ok(Val::list(items.to_vec())),
        None => {
            Fault::error(format!("cannot slice({start}, {end}), list is length {}", items.len()))
        }
    }
}

fn flatten<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let depth = if call.arguments.len() > 1 { call.int(1)? } else { 1 };
    if depth < 0 {
        return Fault::error("level must be non-negative");
    }
    let mut out = Vec::new();
    // The lists that are being read, with the place in each.
    let mut open = vec![(call.list(0)?, 0_usize)];
    while let Some((list, place)) = open.last_mut() {
        let Some(item) = list.get(*place) else {
            open.pop();
            continue;
        };
        *place += 1;
        call.work.spend_items(1)?;
        match item? {
            Val::List(inner) if i64::try_from(open.len()).is_ok_and(|open| open <= depth) => {
                open.push((inner, 0));
            }
            item => out.push(item),
        }
    }
    Ok(Val::list(out))
}

fn distinct<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let mut found: Vec<Val<'d>> = Vec::new();
    'items: for item in call.items(0)? {
        for known in &found {
            if equal(&item, known, call.work)? {
                continue 'items;
            }
        }
        found.push(item);
    }
    Ok(Val::list(found))
}

/// Sorts a list by the keys of its elements.
fn sort<'d>(call: &mut Call<'_, 'd>, keys: Vec<Val<'d>>) -> Res<Val<'d>> {
    let items = call.items(0)?;
    if items.len() != keys.len() {
        return Fault::error("a list and the list of its keys have different sizes");
    }
    let of = keys.first().map(Val::type_name);
    if keys.iter().any(|key| Some(key.type_name()) != of) {
        return Fault::error("list elements must have the same type");
    }
    if keys.first().is_some_and(|key| !is_comparable(key)) {
        return Fault::error("list elements must be comparable");
    }
    spend_sort(&keys, call.work)?;
    let mut pairs: Vec<_> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(one, _), (other, _)| order(one, other).unwrap_or(Ordering::Equal));
    Ok(Val::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

/// Values in their order, if they have one.
pub(super) fn sorted<'d>(mut items: Vec<Val<'d>>, work: &mut Work) -> Res<Vec<Val<'d>>> {
    spend_sort(&items, work)?;
    items.sort_by(|one, other| order(one, other).unwrap_or(Ordering::Equal));
    Ok(items)
}

/// A sort goes through the keys once for each time that their number can be halved.
fn spend_sort(keys: &[Val<'_>], work: &mut Work) -> Res<()> {
    let halvings = keys.len().checked_ilog2().map_or(0, |log| log as usize + 1);
    keys.iter().try_for_each(|key| work.spend(weight(key).saturating_mul(halvings)))
}

fn is_comparable(key: &Val<'_>) -> bool {
    order(key, key).is_some() || matches!(key, Val::Double(_))
}

/// The element before a place that the length gives.
fn end<'d>(call: &mut Call<'_, 'd>, place: fn(usize) -> usize) -> Res<Val<'d>> {
    let list = call.list(0)?;
    let found = place(list.len()).checked_sub(1).and_then(|place| list.get(place)).transpose()?;
    Ok(found.map_or(Val::Optional(None), Val::some))
}
