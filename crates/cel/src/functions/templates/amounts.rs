//! Sums and bounds of quantities: memory in whole bytes, CPU in thousandths, both rounded up.

use std::rc::Rc;

use super::{Call, Function};
use crate::{
    functions::quantity::one,
    value::{Fault, Quantity, Res, Text, Val},
    work::Work,
};

/// Places after the point that a factor may have.
// Floats print without an exponent: one with more places is next to zero, and the power of ten that
// makes it whole would not fit beside an amount.
const MAX_PLACES: usize = 20;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "sum" => |call| {
            let all = quantities(call)?;
            let sum = all.iter().try_fold(0_i128, |sum, one| sum.checked_add(one.billionths));
            shown(sum, 1, all.iter().any(|one| one.is_bytes()))
        },
        "max" => |call| extreme(call, "max", Ord::max),
        "min" => |call| extreme(call, "min", Ord::min),
        "scale" => scale,
        _ => return None,
    })
}

fn shown<'d>(billionths: Option<i128>, parts: i128, is_bytes: bool) -> Res<Val<'d>> {
    let rounded = billionths.and_then(|amount| Quantity::rounded(amount, parts, is_bytes));
    match rounded {
        Some(quantity) => Ok(Val::Quantity(Rc::new(quantity))),
        None => Fault::error("a quantity is too large"),
    }
}

/// The quantities of a list. Those of a pod may be texts or numbers.
fn quantities<'d>(call: &mut Call<'_, 'd>) -> Res<Vec<Rc<Quantity<'d>>>> {
    let items = call.items(0)?;
    items.iter().map(|item| of(item, call.work)).collect()
}

fn of<'d>(value: &Val<'d>, work: &mut Work) -> Res<Rc<Quantity<'d>>> {
    let text = match value {
        Val::Quantity(quantity) => return Ok(Rc::clone(quantity)),
        Val::Text(text) => text.clone(),
        Val::Int(number) => Text::Made(number.to_string().into()),
        Val::Double(number) => Text::Made(number.to_string().into()),
        _ => return Fault::overload(),
    };
    work.spend(text.len())?;
    Quantity::read(text).map(Rc::new)
}

type Choose = fn(i128, i128) -> i128;

fn extreme<'d>(call: &mut Call<'_, 'd>, name: &str, choose: Choose) -> Res<Val<'d>> {
    let all = quantities(call)?;
    let Some(chosen) = all.iter().map(|one| one.billionths).reduce(choose) else {
        return Fault::error(format!("{name} called on empty list"));
    };
    shown(Some(chosen), 1, all.iter().any(|one| one.is_bytes()))
}

fn scale<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let quantity = match call.at(0)? {
        Val::Quantity(_) => one(call, 0)?,
        value => of(value, call.work)?,
    };
    let (factor, parts) = match call.at(1)? {
        Val::Int(factor) => (i128::from(*factor), 1),
        Val::Double(factor) => match ratio(*factor) {
            Some(ratio) => ratio,
            None => return Fault::error("scale: a number is too large or too small"),
        },
        _ => return Fault::overload(),
    };
    shown(quantity.billionths.checked_mul(factor), parts, quantity.is_bytes())
}

/// A number as its shortest decimal, so that 0.1 is exact.
fn ratio(number: f64) -> Option<(i128, i128)> {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if fraction.len() > MAX_PLACES {
        return None;
    }
    let parts = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some((format!("{whole}{fraction}").parse().ok()?, parts))
}
