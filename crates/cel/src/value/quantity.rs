//! Quantities (`k8s.io/apimachinery/pkg/api/resource`).

use injectd_gocompat::quantity::{self, Notation};

use super::{Fault, Res, Text};

/// A quantity.
#[derive(Debug, Clone)]
pub(crate) struct Quantity<'d> {
    pub(crate) billionths: i128,
    stored: Stored,
    /// Whether it is written with `Ki` to `Ei`.
    is_binary: bool,
    /// How its author wrote it; `None` if it was computed.
    written: Option<Text<'d>>,
}

/// How Kubernetes stores an amount: an integer and the power of ten to multiply it by.
#[derive(Debug, Clone, Copy)]
struct Stored {
    exponent: i32,
    /// The integer if it has 64 bits (`int64Amount`); a big decimal has `None` (`inf.Dec`).
    value: Option<i64>,
}

/// The power of ten of a big decimal that was read.
const NANO: i32 = -9;
/// The greatest amount with a binary suffix. A greater one is stored as this many whole units.
const CAP: i128 = i64::MAX as i128 * BILLION;
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
        let stored = match parsed.scaled() {
            Some((value, exponent)) => Stored::small(value, exponent),
            None if billionths == 0 || is_binary && billionths.abs() == CAP => {
                Stored { exponent: parsed.digits_and_exponent().1, value: None }
            }
            None => Stored { exponent: NANO, value: None },
        };
        Ok(Self { billionths, stored, is_binary, written: Some(text) })
    }

    /// Whole units. How they are printed depends on what they are added to.
    pub(crate) fn of_units(units: i64) -> Self {
        let billionths = i128::from(units) * BILLION;
        Self { billionths, stored: Stored::small(units, 0), is_binary: false, written: None }
    }

    /// The sum, or the difference, with the suffixes of this one, or those of the other one if this one
    /// is zero; `None` if it is too large.
    pub(crate) fn plus(&self, other: &Self, is_negative: bool) -> Option<Self> {
        let (mut billionths, mut stored) = (other.billionths, other.stored);
        if is_negative {
            billionths = -billionths;
            stored.value = stored.value.and_then(i64::checked_neg);
        }
        let with_suffixes = if self.billionths == 0 { other } else { self };
        Some(Self {
            billionths: self.billionths.checked_add(billionths)?,
            stored: self.stored.plus(stored),
            is_binary: with_suffixes.is_binary,
            written: None,
        })
    }

    /// The amount in units, with the error of a float that is multiplied by a power of ten
    /// (`Quantity.AsApproximateFloat64`).
    #[expect(clippy::cast_precision_loss, reason = "as in Go")]
    pub(crate) fn approximate(&self) -> f64 {
        let Stored { exponent, value } = self.stored;
        let integer = value.map_or_else(
            || match exponent.checked_sub(NANO).and_then(|zeros| zeros.try_into().ok()) {
                Some(zeros) => self.billionths / 10_i128.saturating_pow(zeros),
                None => self.billionths,
            },
            i128::from,
        );
        if exponent == 0 {
            return integer as f64;
        }
        // The nearest float, as the table of Go's `math.Pow10`.
        let power = format!("1e{exponent}").parse::<f64>().unwrap_or_default();
        integer as f64 * power
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
        let stored = Stored { exponent: scale, value: i64::try_from(amount).ok() };
        Some(Self { billionths: amount.checked_mul(unit)?, stored, is_binary: false, written })
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
        let Stored { exponent, value } = self.stored;
        scaled(value?, exponent.try_into().ok()?)
    }
}

impl Stored {
    fn small(value: i64, exponent: i32) -> Self {
        Self { exponent, value: Some(value) }
    }

    /// The sum, at the lower power; a big decimal if its integer is one, or does not fit
    /// (`Quantity.Add`).
    fn plus(self, other: Self) -> Self {
        let (high, low) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        match (self.value, other.value) {
            (Some(_), Some(0)) => return self,
            (Some(0), Some(_)) => return other,
            _ => {}
        }
        let zeros = high.exponent.abs_diff(low.exponent);
        let value = high.value.zip(low.value);
        let value = value.and_then(|(high, low)| scaled(high, zeros)?.checked_add(low));
        Self { exponent: low.exponent, value }
    }
}

fn scaled(value: i64, zeros: u32) -> Option<i64> {
    value.checked_mul(10_i64.checked_pow(zeros)?)
}
