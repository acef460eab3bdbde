//! Quantities (`pkg/cel/library/quantity.go`).

use std::{cmp::Ordering, rc::Rc};

use injectd_gocompat::quantity;

use super::{Call, Function, semver};
use crate::value::{Fault, Quantity, Res, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "quantity" => |call| Ok(Val::Quantity(Rc::new(Quantity::read(call.text(0)?)?))),
        "isQuantity" => |call| Ok(Val::Bool(quantity::parse(&call.text(0)?).is_some())),
        "sign" => |call| Ok(Val::Int(one(call, 0)?.billionths.signum() as i64)),
        ".isGreaterThan" => |call| Ok(Val::Bool(compared(call)?.is_gt())),
        ".isLessThan" => |call| Ok(Val::Bool(compared(call)?.is_lt())),
        ".compareTo" => |call| Ok(Val::Int(compared(call)? as i64)),
        ".asApproximateFloat" => |call| Ok(Val::Double(one(call, 0)?.approximate())),
        ".isInteger" => |call| Ok(Val::Bool(one(call, 0)?.whole().is_some())),
        ".asInteger" => |call| {
            let whole = one(call, 0)?.whole().map(Val::Int);
            whole.map_or_else(|| Fault::error("cannot convert value to integer"), Ok)
        },
        ".add" => |call| sum(call, false),
        ".sub" => |call| sum(call, true),
        _ => return None,
    })
}

pub(super) fn one<'d>(call: &Call<'_, 'd>, index: usize) -> Res<Rc<Quantity<'d>>> {
    match call.at(index)? {
        Val::Quantity(quantity) => Ok(Rc::clone(quantity)),
        _ => Fault::overload(),
    }
}

/// The order of two quantities, or of two versions.
fn compared(call: &Call<'_, '_>) -> Res<Ordering> {
    match call.at(0)? {
        Val::Semver(_) => semver::compared(call),
        _ => Ok(one(call, 0)?.billionths.cmp(&one(call, 1)?.billionths)),
    }
}

fn sum<'d>(call: &mut Call<'_, 'd>, is_negative: bool) -> Res<Val<'d>> {
    let first = one(call, 0)?;
    let second = match call.at(1)? {
        Val::Int(value) => Rc::new(Quantity::of_units(*value)),
        _ => one(call, 1)?,
    };
    match first.plus(&second, is_negative) {
        Some(sum) => Ok(Val::Quantity(Rc::new(sum))),
        None => Fault::unknown("a quantity is too large"),
    }
}
