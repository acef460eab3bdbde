//! An amount of a resource, as Kubernetes counts, compares and prints it.
//!
//! From k8s.io/apimachinery v0.37.2, `pkg/api/resource`. Kubernetes compares quotas and requests with
//! limits exactly, whatever their size, and limit ranges as integers of 64 bits, which overflow.

use std::{cmp::Ordering, fmt, sync::Arc};

use injectd_gocompat::quantity::{self, Notation};
use num_bigint::{BigInt, Sign};
use serde_json::Value;

/// The power of ten of a thousandth.
const THOUSANDTHS: i32 = -3;

/// The most digits before the point that an amount is counted with; one with more counts as the least
/// such amount. Kubernetes has no such bound: an API server of 1.36 needs a second for `1e999999`, and does
/// not answer in time for `1e99999999`. No cluster has so much of anything, and an amount of so many digits
/// takes 416 bytes: what `1e999` costs is bounded as well.
pub(in super::super) const MOST_DIGITS: u32 = 1000;

/// An amount of a resource.
#[derive(Debug, Clone)]
pub(in super::super) struct Amount {
    /// Kubernetes rounds amounts up to these where it reads them (`SetDefaults_ResourceList`).
    thousandths: BigInt,
    /// The power of ten of which Kubernetes stores a multiple of 64 bits; `None` if it stores a decimal.
    scale: Option<i32>,
    notation: Notation,
    /// The text of an amount that is not a sum.
    text: Option<Arc<str>>,
    /// Whether it has more than [`MOST_DIGITS`], or is a sum with one that has.
    is_beyond: bool,
    /// The limit range that gave it as a default.
    pub(in super::super) given_by: Option<Arc<str>>,
}

impl Amount {
    /// `None` if the value is not a quantity. A null is zero, as `Quantity.UnmarshalJSON` has it.
    pub(in super::super) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::of(0)),
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// So many units.
    pub(in super::super) fn of(units: u32) -> Self {
        Self {
            thousandths: BigInt::from(units) * 1000,
            scale: Some(0),
            notation: Notation::Decimal,
            text: None,
            is_beyond: false,
            given_by: None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let quantity = quantity::parse(text)?;
        let (digits, exponent) = quantity.digits_and_exponent();
        let (digits, exponent, is_beyond) = bounded(digits, exponent);
        let digits: BigInt = digits.parse().ok()?;
        let power = exponent.saturating_sub(THOUSANDTHS);
        let factor = BigInt::from(10).pow(power.unsigned_abs());
        let (thousandths, is_exact) =
            if power >= 0 { (digits * factor, true) } else { divided_up(&digits, &factor) };
        Some(Self {
            thousandths,
            // The rounding to thousandths happens before anything counts with the amount, and
            // changes its scale with it.
            scale: quantity.scaled().map(|(_, scale)| scale.max(THOUSANDTHS)),
            notation: quantity.notation(),
            text: (is_exact && !is_beyond).then(|| quantity.canonical().into()),
            is_beyond,
            given_by: None,
        })
    }

    pub(in super::super) fn is_positive(&self) -> bool {
        self.thousandths.sign() == Sign::Plus
    }

    /// Whether it is too long to be judged: see [`MOST_DIGITS`].
    pub(in super::super) fn is_beyond(&self) -> bool {
        self.is_beyond
    }

    pub(in super::super) fn is_negative(&self) -> bool {
        self.thousandths.sign() == Sign::Minus
    }

    /// Whether it is a whole number of units (`ValidateResourceQuantityValue`).
    pub(in super::super) fn is_whole(&self) -> bool {
        self.in_thousandths() % 1000 == 0
    }

    /// Whether it is a multiple of another, in whole units (`IsHugePageResourceValueDivisible`).
    pub(in super::super) fn is_multiple_of(&self, other: &Self) -> bool {
        other.is_positive()
            && other.is_whole()
            && self.in_units().checked_rem(other.in_units()) == Some(0)
    }

    /// `Quantity.MilliValue`.
    pub(in super::super) fn in_thousandths(&self) -> i64 {
        self.as_go_has_it(&self.thousandths)
    }

    /// The next whole number of units: `Quantity.Value`.
    pub(in super::super) fn in_units(&self) -> i64 {
        self.as_go_has_it(&divided_up(&self.thousandths, &BigInt::from(1000)).0)
    }

    /// An integer that overflows: to 0 where Kubernetes stores one, to the lowest bits of a decimal.
    fn as_go_has_it(&self, number: &BigInt) -> i64 {
        i64::try_from(number).unwrap_or_else(|_| match self.scale {
            Some(_) => 0,
            None => lowest_bits(number),
        })
    }

    /// A sum has the notation of the first that is not zero.
    pub(in super::super) fn plus(&self, other: &Self) -> Self {
        let thousandths = match (self.is_beyond, other.is_beyond) {
            (true, _) => self.thousandths.clone(),
            (false, true) => other.thousandths.clone(),
            (false, false) => &self.thousandths + &other.thousandths,
        };
        let [of_self, of_other] =
            [self, other].map(|amount| amount.thousandths.sign() == Sign::NoSign);
        let notation = if of_self { other.notation } else { self.notation };
        let scale = match (self.scale, other.scale) {
            (_, scale) if of_self => scale,
            (scale, _) if of_other => scale,
            (Some(one), Some(two)) => Some(one.min(two)).filter(|scale| fits(&thousandths, *scale)),
            _ => None,
        };
        let is_beyond = self.is_beyond || other.is_beyond;
        Self { thousandths, scale, notation, text: None, is_beyond, given_by: None }
    }

    /// The number of units, such as `2.5`: for texts where no unit is meant.
    pub(in super::super) fn plain(&self) -> String {
        if self.is_beyond {
            return self.to_string();
        }
        let whole: BigInt = &self.thousandths / 1000;
        let rest: BigInt = &self.thousandths % 1000;
        let rest = format!("{:03}", rest.magnitude());
        match rest.trim_end_matches('0') {
            "" => whole.to_string(),
            rest => format!("{whole}.{rest}"),
        }
    }
}

/// The digits and the power of ten of an amount, and whether it is beyond [`MOST_DIGITS`].
fn bounded(digits: String, exponent: i32) -> (String, i32, bool) {
    let is_negative = digits.starts_with('-');
    let known = digits.trim_start_matches(['-', '0']);
    if known.is_empty() {
        return ("0".to_owned(), 0, false);
    }
    let before_point =
        i64::try_from(known.len()).unwrap_or(i64::MAX).saturating_add(exponent.into());
    if before_point <= MOST_DIGITS.into() {
        return (digits, exponent, false);
    }
    let least = if is_negative { "-1" } else { "1" };
    (least.to_owned(), MOST_DIGITS.cast_signed(), true)
}

/// Whether a multiple of a power of ten has 64 bits.
fn fits(thousandths: &BigInt, scale: i32) -> bool {
    let power = BigInt::from(10).pow(scale.saturating_sub(THOUSANDTHS).unsigned_abs().min(64));
    i64::try_from(thousandths / power).is_ok()
}

/// Away from zero, and whether there is no rest.
fn divided_up(number: &BigInt, by: &BigInt) -> (BigInt, bool) {
    let (whole, rest) = (number / by, number % by);
    match rest.sign() {
        Sign::NoSign => (whole, true),
        Sign::Plus => (whole + 1, false),
        Sign::Minus => (whole - 1, false),
    }
}

/// `big.Int.Int64`.
fn lowest_bits(number: &BigInt) -> i64 {
    let bits = number.magnitude().iter_u64_digits().next().unwrap_or_default().cast_signed();
    if number.sign() == Sign::Minus { bits.wrapping_neg() } else { bits }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.thousandths == other.thousandths
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.thousandths.cmp(&other.thousandths)
    }
}

/// As Kubernetes prints it (`Quantity.CanonicalizeBytes`).
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.is_beyond {
            return write!(f, "a number of more than {MOST_DIGITS} digits");
        }
        let number = &self.thousandths;
        let text = match self.notation {
            Notation::Exponent => format!("{number}e{THOUSANDTHS}"),
            Notation::Binary if *number.magnitude() >= 1_024_000_u32.into() => {
                let (whole, _) = divided_up(number, &BigInt::from(1000));
                if &whole % 1024 != BigInt::ZERO {
                    return write!(f, "{whole}");
                }
                format!("{}Ki", whole / 1024)
            }
            Notation::Binary | Notation::Decimal => format!("{number}m"),
        };
        let canonical = quantity::parse(&text).map(|quantity| quantity.canonical());
        f.write_str(&canonical.unwrap_or(text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amount(text: &str) -> Amount {
        Amount::read(&json!(text)).expect("a quantity")
    }

    /// The texts are those that an API server of 1.36 stored.
    #[test]
    fn amounts_are_printed_as_kubernetes_prints_them() {
        for (text, expected) in [
            ("1e41", "100e39"),
            ("1e40", "10e39"),
            ("1e19", "10e18"),
            ("10E", "10E"),
            ("8Ei", "9223372036854775807"),
            ("99999999999999999999n", "100G"),
            ("1e-10", "1e-3"),
            ("0.0000000001", "1m"),
            ("9223372036854775808", "9223372036854775808"),
            // Kubernetes has no letter for it.
            ("10000000000000000000000", "10"),
            ("1000m", "1"),
            ("1e3", "1e3"),
        ] {
            assert_eq!(amount(text).to_string(), expected, "{text}");
        }
        for (one, other, sum) in [
            ("1Ki", "1Ki", "2Ki"),
            ("1Ki", "976", "2000"),
            ("1000", "1Ki", "2024"),
            ("0", "1Ki", "1Ki"),
            ("1e3", "1", "1001"),
            ("1e41", "1e40", "110e39"),
            ("900m", "100m", "1"),
            ("512", "1Mi", "1049088"),
        ] {
            assert_eq!(amount(one).plus(&amount(other)).to_string(), sum, "{one} + {other}");
        }
    }

    #[test]
    fn amounts_of_any_size_are_compared_and_added_exactly() {
        let texts = ["1u", "1001u", "1", "8Ei", "9223372036854775808", "1e40", "1e41", "1e999"];
        for (at, text) in texts.iter().enumerate() {
            for more in &texts[at + 1..] {
                assert!(amount(text) < amount(more), "{text} {more}");
                assert!(amount(text).plus(&amount(more)) > amount(more), "{text} {more}");
            }
        }
        // Amounts have whole thousandths.
        assert_eq!(amount("1u"), amount("2u"));
        assert_eq!(amount("100Ei"), amount("8Ei"));
    }

    /// The size of an amount is the work that it makes.
    #[test]
    fn an_amount_of_any_length_takes_bounded_space() {
        let zeros = |count| format!("1{}", "0".repeat(count));
        let long = |text: &str| {
            let amount = amount(text);
            assert!(amount.thousandths.bits() < 3400, "{}", &text[..text.len().min(20)]);
            assert!(amount.to_string().len() < 1200 && amount.plain().len() < 1200);
            amount
        };
        let within = [zeros(999), "1e999".to_owned(), format!("0.{}1", "0".repeat(200_000))];
        let beyond = [
            zeros(1000),
            zeros(200_000),
            "1e1000".to_owned(),
            "1e2147483647".to_owned(),
            "1e2147483648".to_owned(),
            "0.1e-2147483647".to_owned(),
            format!("{}.5", "9".repeat(200_000)),
        ];
        for text in within.iter().chain(["0e2147483647".to_owned(), zeros(0)].iter()) {
            assert!(!long(text).is_beyond(), "{text}");
        }
        for text in &beyond {
            let amount = long(text);
            assert!(amount.is_beyond() && amount.is_positive() && amount.is_whole());
            assert!(amount > long(&within[0]));
            assert_eq!(amount, long("1e1000"));
            // Nothing is known of the difference of two.
            assert_eq!(amount.plus(&amount), amount);
            assert!(long("1").plus(&amount).is_beyond());
        }
        let negative = long(&format!("-{}", zeros(1000)));
        assert!(negative.is_beyond() && negative.is_negative());
    }

    /// As limit ranges of an API server of 1.36 had it.
    #[test]
    fn integers_overflow_as_they_do_in_kubernetes() {
        for (text, units) in [
            ("9E", 9_000_000_000_000_000_000),
            ("10E", 0),
            ("1e41", 0),
            ("18446744073709551617", 1),
            ("9223372036854775808", i64::MIN),
            ("1001m", 2),
            ("1500u", 1),
        ] {
            assert_eq!(amount(text).in_units(), units, "{text}");
        }
        assert_eq!(amount("9E").plus(&amount("9E")).in_units(), 0);
        assert_eq!(amount("9E").plus(&amount("8Ei")).in_units(), -223_372_036_854_775_809);
    }

    #[test]
    fn plain_numbers_have_no_unit() {
        for (text, expected) in [("2500m", "2.5"), ("2", "2"), ("1k", "1000"), ("1001m", "1.001")] {
            assert_eq!(amount(text).plain(), expected);
        }
    }
}
