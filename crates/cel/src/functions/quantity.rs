//! Quantities (`pkg/cel/library/quantity.go`).

use std::{cmp::Ordering, rc::Rc};

use injectd_gocompat::quantity::{self, Notation};

use super::{Call, Function, semver};
use crate::value::{Fault, Res, Text, Val};

/// A quantity.
#[derive(Debug, Clone)]
pub(crate) struct Quantity<'d> {
    pub(crate) billionths: i128,
    /// The value and its scale, if Kubernetes stores them so.
    scaled: Option<(i64, i32)>,
    /// Whether it is written with `Ki` to `Ei`.
    is_binary: bool,
    /// How its author wrote it; `None` if it was computed.
    written: Option<Text<'d>>,
}

const BILLION: i128 = 1_000_000_000;
const MILLION: i128 = 1_000_000;
/// From so many units on, an amount without a binary suffix is one of bytes: no machine has so many
/// cores.
const LEAST_BYTES: i128 = 10_000;
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "quantity" => |call| Ok(Val::Quantity(Rc::new(Quantity::read(call.text(0)?)?))),
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
    let (mut billionths, mut scaled) = if let Val::Int(value) = call.at(1)? {
        (i128::from(*value) * BILLION, Some((*value, 0)))
    } else {
        let second = one(call, 1)?;
        (second.billionths, second.scaled)
    };
    if is_negative {
        billionths = -billionths;
        scaled = scaled.and_then(|(value, scale)| Some((value.checked_neg()?, scale)));
    }
    let Some(billionths) = first.billionths.checked_add(billionths) else {
        return Fault::unknown("a quantity is too large");
    };
    let scaled = first.scaled.zip(scaled).and_then(|(one, other)| scaled_sum(one, other));
    let is_binary = first.is_binary;
    Ok(Val::Quantity(Rc::new(Quantity { billionths, scaled, is_binary, written: None })))
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

impl<'d> Quantity<'d> {
    /// Reads a quantity. The caller counts its bytes.
    pub(crate) fn read(text: Text<'d>) -> Res<Self> {
        let Some(parsed) = quantity::parse(&text) else { return Fault::error("invalid quantity") };
        let Some(billionths) = parsed.billionths() else {
            return Fault::unknown("a quantity is too large");
        };
        let is_binary = parsed.notation() == Notation::Binary;
        Ok(Self { billionths, scaled: parsed.scaled(), is_binary, written: Some(text) })
    }

    /// A multiple of a quantity of bytes or of cores: the former in whole bytes, the latter in
    /// thousandths, both rounded up. The factor is a number of so many parts; `None` if it is too large.
    pub(super) fn rounded(billionths: i128, parts: i128, is_bytes: bool) -> Option<Self> {
        let unit = if is_bytes { BILLION } else { MILLION };
        let divisor = unit.checked_mul(parts)?;
        let rounded_down = billionths.checked_neg()?.div_euclid(divisor);
        let amount = rounded_down.checked_neg()?;
        let scale = if is_bytes || amount == 0 { 0 } else { -3 };
        let suffix = if scale == 0 { "" } else { "m" };
        let written = Some(Text::Made(format!("{amount}{suffix}").into()));
        let scaled = i64::try_from(amount).ok().map(|amount| (amount, scale));
        Some(Self { billionths: amount.checked_mul(unit)?, scaled, is_binary: false, written })
    }

    /// Whether it is an amount of bytes, not of cores.
    pub(super) fn is_bytes(&self) -> bool {
        self.is_binary || self.billionths.abs() >= LEAST_BYTES * BILLION
    }

    /// As its author wrote it; a computed one as Kubernetes prints it.
    pub(crate) fn text(&self) -> String {
        if let Some(written) = &self.written {
            return written.to_string();
        }
        let (mut whole, mut suffixes) = (self.billionths / BILLION, BINARY.iter());
        let mut suffix = "";
        if self.is_binary && self.billionths % BILLION == 0 && whole.abs() >= 1024 {
            while whole % 1024 == 0
                && let Some(larger) = suffixes.next()
            {
                whole /= 1024;
                suffix = larger;
            }
            return format!("{whole}{suffix}");
        }
        let text = format!("{}n", self.billionths);
        quantity::parse(&text).map_or(text, |parsed| parsed.canonical())
    }

    /// Whole units; `None` also for such as `1000m` (`int64Amount.AsInt64`).
    fn whole(&self) -> Option<i64> {
        let (value, scale) = self.scaled.filter(|(_, scale)| *scale >= 0)?;
        scaled(value, scale)
    }
}
