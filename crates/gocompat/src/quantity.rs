//! Quantities (`100Mi`, `1500m`, `1e3`) as Kubernetes parses and prints them.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/api/resource`. It stores a quantity as a small
//! integer with a decimal scale if the text is short enough, else as a big decimal. Callers can
//! distinguish the two, so this module makes the same choice by the same rules.

use std::cmp::Ordering;

mod decimal;
mod scan;

#[cfg(test)]
mod tests;

use decimal::Decimal;
use scan::{Parts, Suffix};

/// Maximum number of digits of a small amount.
// `maxInt64Factors`: any number of 18 digits has 63 bits.
const SMALL_DIGITS: usize = 18;

/// The same with a binary suffix; each power of 1024 takes three digits away.
// `ParseQuantity` has 15 less 1 here, and takes three digits away for each power.
const SMALL_BINARY_DIGITS: usize = 14;

/// The least power of ten that is kept.
const NANO: i32 = -9;

/// A parsed quantity: its value and its notation.
///
/// Kubernetes: `resource.Quantity`.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    suffix: Suffix,
    /// The original text, if Kubernetes considers it canonical and prints it unchanged.
    text: Option<Box<str>>,
}

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// With `n` to `E`.
    Decimal,
    /// With an exponent, such as `1e3`.
    Exponent,
    /// With `Ki` to `Ei`.
    Binary,
}

#[derive(Clone, Debug)]
enum Amount {
    /// `value * 10^scale`.
    Small {
        value: i64,
        scale: i32,
    },
    Large(Decimal),
}

/// Parses a quantity: a sign, digits with a point, and a suffix.
///
/// Kubernetes: `resource.ParseQuantity` (`quantity.go`). Suffixes are `n u m k M G T P E`,
/// `Ki Mi Gi Ti Pi Ei`, or a decimal exponent such as `e3` or `E-3`. Most texts without a digit
/// (`.`, `+`, `k`) are zero, but not the empty one. An amount below a billionth is rounded up to a
/// billionth; one with a binary suffix is capped at `2^63 - 1`. Blanks are rejected: Kubernetes
/// trims them from JSON before it parses.
#[must_use]
pub fn parse(text: &str) -> Option<Quantity> {
    if text.is_empty() {
        return None;
    }
    let parts = Parts::split(text);
    let suffix = Suffix::read(parts.suffix)?;
    if let Some((value, scale)) = small_amount(&parts, suffix) {
        let signed = if parts.negative { -value } else { value };
        return Some(Quantity {
            amount: Amount::Small { value: signed * suffix.factor(), scale },
            suffix,
            text: is_kept(&parts, suffix, value, scale).then(|| text.into()),
        });
    }
    // Kubernetes parses the digits again here, and now requires at least one.
    if !parts.has_digit {
        return None;
    }
    Some(Quantity { amount: Amount::Large(large_amount(&parts, suffix)), suffix, text: None })
}

/// The unsigned digits and their scale; `None` if they need a big decimal.
fn small_amount(parts: &Parts, suffix: Suffix) -> Option<(i64, i32)> {
    let digits = parts.digits().count();
    let scale = suffix.power_of_ten().wrapping_sub(parts.places());
    let fits = match suffix {
        // Each power of 1024 takes three digits away.
        Suffix::Binary(power) => scale == 0 && digits + 3 * power <= SMALL_BINARY_DIGITS,
        Suffix::Decimal(_) | Suffix::Exponent(_) => digits <= SMALL_DIGITS && scale >= NANO,
    };
    let number = |value, digit| value * 10 + i64::from(digit);
    fits.then(|| (parts.digits().fold(0, number), scale))
}

/// Whether Kubernetes considers the text of a small amount canonical. It does so for some that are
/// not: `+5`, `007` and `1.500` print unchanged.
fn is_kept(parts: &Parts, suffix: Suffix, value: i64, scale: i32) -> bool {
    if let Suffix::Binary(_) = suffix {
        return value % 8 != 0;
    }
    let starts_with_zero = parts.digits().next() == Some(0);
    let ends_with_zeros = parts.digits().count() >= 3 && value % 1000 == 0;
    scale % 3 == 0 && !starts_with_zero && !ends_with_zeros
}

fn large_amount(parts: &Parts, suffix: Suffix) -> Decimal {
    let exponent = match suffix.power_of_ten().wrapping_sub(parts.places()) {
        // Kubernetes negates it, which overflows: the power is 2^31.
        i32::MIN => i32::MAX,
        exponent => exponent,
    };
    let mut amount = Decimal::new(parts.negative, parts.digits().collect(), exponent);
    amount.multiply(suffix.factor().unsigned_abs());
    amount.round_up(NANO);
    if let Suffix::Binary(_) = suffix {
        amount.cap();
    }
    amount
}

impl Quantity {
    /// Whole units, rounded away from zero: `1001m` is 2 and `-1m` is -1.
    ///
    /// Linkerd: `inject.ToWholeCPUCores`, which is `RoundUp(0)` and then `AsInt64()`
    /// (`quantity.go`, `amount.go`). `None` if the result is not a 64-bit integer, or if Kubernetes
    /// stores the text as a big decimal: `1.5Gi`, `1Pi`, more than 18 digits or places below a
    /// billionth.
    #[must_use]
    pub fn whole_units(&self) -> Option<i64> {
        let Amount::Small { value, scale } = self.amount else {
            return None;
        };
        let Some(divisor) = 10_i64.checked_pow(scale.unsigned_abs()) else {
            return (value == 0).then_some(0);
        };
        if scale >= 0 {
            return value.checked_mul(divisor);
        }
        let rest = value % divisor;
        Some(value / divisor + rest.signum())
    }

    /// The amount in units, rounded to a float: `1500m` is 1.5.
    ///
    /// Kubernetes: `Quantity.AsApproximateFloat64`.
    #[must_use]
    pub fn approximate(&self) -> f64 {
        let (digits, exponent) = self.digits_and_exponent();
        format!("{digits}e{exponent}").parse().unwrap_or_default()
    }

    /// The amount in billionths, which all quantities have whole; `None` if it does not fit.
    #[must_use]
    pub fn billionths(&self) -> Option<i128> {
        let (digits, exponent) = self.digits_and_exponent();
        let value: i128 = digits.parse().ok()?;
        match exponent.checked_sub(NANO)? {
            _ if value == 0 => Some(0),
            zeros if zeros < 0 => None,
            zeros => value.checked_mul(10_i128.checked_pow(zeros.unsigned_abs())?),
        }
    }

    /// The amount in units: decimal digits with a sign, and the power of ten to multiply them by. Its
    /// size is that of the text, whatever the power.
    #[must_use]
    pub fn digits_and_exponent(&self) -> (String, i32) {
        match &self.amount {
            Amount::Small { value, scale } => (value.to_string(), *scale),
            Amount::Large(amount) => amount.digits_and_exponent(),
        }
    }

    /// The order of two amounts, whatever their notation and their size.
    ///
    /// Kubernetes: `Quantity.Cmp`.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let (one, other) = (self.digits_and_exponent(), other.digits_and_exponent());
        let (one, other) = (Magnitude::of(&one.0, one.1), Magnitude::of(&other.0, other.1));
        one.sign.cmp(&other.sign).then_with(|| match one.sign {
            -1 => other.size().cmp(&one.size()),
            _ => one.size().cmp(&other.size()),
        })
    }

    /// The notation of the text, which the amount keeps when it changes.
    ///
    /// Kubernetes: `Quantity.Format`.
    #[must_use]
    pub fn notation(&self) -> Notation {
        match self.suffix {
            Suffix::Decimal(_) => Notation::Decimal,
            Suffix::Exponent(_) => Notation::Exponent,
            Suffix::Binary(_) => Notation::Binary,
        }
    }

    /// The value and the scale of an amount that Kubernetes stores as such, not as a big decimal.
    #[must_use]
    pub fn scaled(&self) -> Option<(i64, i32)> {
        match self.amount {
            Amount::Small { value, scale } => Some((value, scale)),
            Amount::Large(_) => None,
        }
    }

    /// The quantity as Kubernetes writes it in JSON, without the quotes: `1000m` is `1`,
    /// `1.5Gi` is `1536Mi`, `1e3` is `1e3`.
    ///
    /// Kubernetes: `Quantity.MarshalJSON` and `CanonicalizeBytes` (`quantity.go`, `suffix.go`).
    /// Values that `n` to `E` cannot express lose their suffix: `1000E` is `1`.
    #[must_use]
    pub fn canonical(&self) -> String {
        if let Some(text) = &self.text {
            return text.to_string();
        }
        let amount = match &self.amount {
            Amount::Small { value, scale } => Decimal::from_integer(*value, *scale),
            Amount::Large(amount) => amount.clone(),
        };
        if amount.is_zero() {
            return "0".to_owned();
        }
        match self.suffix {
            Suffix::Binary(_) => {
                let whole = amount.whole().filter(|whole| *whole >= 1024);
                whole.map_or_else(
                    || decimal_text(&amount, Suffix::Decimal),
                    |whole| binary_text(amount.negative, whole),
                )
            }
            Suffix::Decimal(_) => decimal_text(&amount, Suffix::Decimal),
            Suffix::Exponent(_) => decimal_text(&amount, Suffix::Exponent),
        }
    }
}

/// An amount that can be compared without its zeros.
struct Magnitude<'a> {
    sign: i8,
    /// How many digits stand before the point.
    places: i64,
    /// The digits, the first and the last not 0.
    digits: &'a str,
}

impl<'a> Magnitude<'a> {
    fn of(text: &'a str, exponent: i32) -> Self {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let digits = digits.trim_start_matches('0');
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let places = length.saturating_add(exponent.into());
        let sign = if digits.is_empty() { 0 } else { sign };
        Self { sign, places, digits: digits.trim_end_matches('0') }
    }

    /// Without the sign; zero has no places.
    fn size(&self) -> (i64, &'a str) {
        if self.sign == 0 { (0, "") } else { (self.places, self.digits) }
    }
}

fn decimal_text(amount: &Decimal, suffix: fn(i32) -> Suffix) -> String {
    let (digits, exponent) = amount.in_thousands();
    let sign = if amount.negative { "-" } else { "" };
    format!("{sign}{digits}{}", suffix(exponent))
}

fn binary_text(negative: bool, mut whole: u64) -> String {
    let mut power = 0;
    while whole >= 1024 && whole.is_multiple_of(1024) {
        whole /= 1024;
        power += 1;
    }
    let sign = if negative { "-" } else { "" };
    format!("{sign}{whole}{}", Suffix::Binary(power))
}
