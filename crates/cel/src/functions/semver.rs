//! Functions of versions (`pkg/cel/library/semverlib.go`).

use std::{cmp::Ordering, rc::Rc};

use super::{Call, Function};
use crate::value::{Fault, Res, Semver, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "semver" => |call| match parsed(call)? {
            Some(version) => Ok(Val::Semver(Rc::new(version))),
            None => Fault::error("invalid semantic version"),
        },
        "isSemver" => |call| Ok(Val::Bool(parsed(call)?.is_some())),
        ".major" => |call| number(call, 0),
        ".minor" => |call| number(call, 1),
        ".patch" => |call| number(call, 2),
        _ => return None,
    })
}

fn parsed(call: &mut Call<'_, '_>) -> Res<Option<Semver>> {
    let text = call.text(0)?;
    let is_loose = match call.arguments.get(1) {
        None => false,
        Some(Val::Bool(value)) => *value,
        Some(_) => return Fault::overload(),
    };
    Ok(if is_loose { Semver::parse_loosely(&text) } else { Semver::parse(&text) })
}

fn number<'d>(call: &Call<'_, 'd>, index: usize) -> Res<Val<'d>> {
    match call.at(0)? {
        // As Go converts it.
        Val::Semver(version) => Ok(Val::Int(version.numbers()[index].cast_signed())),
        _ => Fault::overload(),
    }
}

pub(super) fn compared(call: &Call<'_, '_>) -> Res<Ordering> {
    match (call.at(0)?, call.at(1)?) {
        (Val::Semver(one), Val::Semver(other)) => Ok(one.order(other)),
        _ => Fault::overload(),
    }
}
