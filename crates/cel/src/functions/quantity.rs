//! Quantities (`pkg/cel/library/quantity.go`).

use std::{cmp::Ordering, rc::Rc};

use injectd_gocompat::quantity;

use super::{Call, Function, semver};
use crate::value::{Fault, Res, Val};

/// A quantity.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    pub(crate) billionths: i128,
    /// The value and its scale, if Kubernetes stores them so.
    scaled: Option<(i64, i32)>,
}

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "quantity" => |call| match quantity::parse(&call.text(0)?) {
            Some(parsed) => Quantity::of(&parsed),
            None => Fault::error("invalid quantity"),
        },
        "isQuantity" => |call| Ok(Val::Bool(quantity::parse(&call.text(0)?).is_some())),
        "sign" => |call| Ok(Val::Int(one(call, 0)?.billionths.signum() as i64)),
        ".isGreaterThan" => |call| Ok(Val::Bool(compared(call)?.is_gt())),
        ".isLessThan" => |call| Ok(Val::Bool(compared(call)?.is_lt())),
        ".compareTo" => |call| Ok(Val::Int(compared(call)? as i64)),
        ".asApproximateFloat" => |call| {
            let text = format!("{}e-9", one(call, 0)?.billionths);
            Ok(Val::Double(text.parse().unwrap_or_default()))
        },
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

fn one(call: &Call<'_, '_>, index: usize) -> Res<Rc<Quantity>> {
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
    let mut second = match call.at(1)? {
        Val::Int(value) => {
            Quantity { billionths: i128::from(*value) * 1_000_000_000, scaled: Some((*value, 0)) }
        }
        _ => (*one(call, 1)?).clone(),
    };
    if is_negative {
        second.billionths = -second.billionths;
        second.scaled =
            second.scaled.and_then(|(value, scale)| Some((value.checked_neg()?, scale)));
    }
    let Some(billionths) = first.billionths.checked_add(second.billionths) else {
        return Fault::unknown("a quantity is too large");
    };
    let scaled = first.scaled.zip(second.scaled).and_then(|(one, other)| scaled_sum(one, other));
    Ok(Val::Quantity(Rc::new(Quantity { billionths, scaled })))
}

/// The sum of two amounts at the lower scale; `None` if it does not fit (`int64Amount.Add`).
fn scaled_sum(one: (i64, i32), other: (i64, i32)) -> Option<(i64, i32)> {
    match (one, other) {
        (one, (0, _)) => Some(one),
        ((0, _), other) => Some(other),
        ((one, high), (other, low)) if high >= low => {
            Some((scaled(one, high.checked_sub(low)?)?.checked_add(other)?, low))
        }
        (one, other) => scaled_sum(other, one),
    }
}

fn scaled(value: i64, zeros: i32) -> Option<i64> {
    value.checked_mul(10_i64.checked_pow(zeros.unsigned_abs())?)
}

impl Quantity {
    fn of<'d>(parsed: &quantity::Quantity) -> Res<Val<'d>> {
        match parsed.billionths() {
            Some(billionths) => {
                Ok(Val::Quantity(Rc::new(Self { billionths, scaled: parsed.scaled() })))
            }
            None => Fault::unknown("a quantity is too large"),
        }
    }

    /// Whole units; `None` also for such as `1000m` (`int64Amount.AsInt64`).
    fn whole(&self) -> Option<i64> {
        let (value, scale) = self.scaled.filter(|(_, scale)| *scale >= 0)?;
        scaled(value, scale)
    }
}
