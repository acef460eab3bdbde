//! Quantities (`k8s.io/apimachinery/pkg/api/resource`).

use injectd_gocompat::quantity::{self, Notation};

use super::{Fault, Res, Text};

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

    /// Whole units. How they are printed depends on what they are added to.
    pub(crate) fn of_units(units: i64) -> Self {
        let billionths = i128::from(units) * BILLION;
        Self { billionths, scaled: Some((units, 0)), is_binary: false, written: None }
    }

    /// The sum, or the difference, with the suffixes of this one; `None` if it is too large.
    pub(crate) fn plus(&self, other: &Self, is_negative: bool) -> Option<Self> {
        let (mut billionths, mut scaled) = (other.billionths, other.scaled);
        if is_negative {
            billionths = -billionths;
            scaled = scaled.and_then(|(value, scale)| Some((value.checked_neg()?, scale)));
        }
        let billionths = self.billionths.checked_add(billionths)?;
        let scaled = self.scaled.zip(scaled).and_then(|(one, other)| scaled_sum(one, other));
        Some(Self { billionths, scaled, is_binary: self.is_binary, written: None })
    }

    /// A multiple of a quantity of bytes or of cores: the former in whole bytes, the latter in
    /// thousandths, both rounded up. The factor is a number of so many parts; `None` if it is too large.
    pub(crate) fn rounded(billionths: i128, parts: i128, is_bytes: bool) -> Option<Self> {
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
    pub(crate) fn is_bytes(&self) -> bool {
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
    pub(crate) fn whole(&self) -> Option<i64> {
        let (value, scale) = self.scaled.filter(|(_, scale)| *scale >= 0)?;
        scaled(value, scale)
    }
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
