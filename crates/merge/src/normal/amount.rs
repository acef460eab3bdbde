//! Quantities by value.

#![expect(clippy::disallowed_types, reason = "values of a Pod")]

use injectd_gocompat::quantity;
use serde_json::Value;

/// The form of zero.
pub(super) const ZERO: &str = "0e0";

/// A quantity as digits and a power of ten; `None` if it is none.
pub(super) fn normal(text: &str) -> Option<Value> {
    let canonical = quantity::parse(text)?.canonical();
    let end = canonical.find(|c: char| !c.is_ascii_digit() && c != '-');
    let (number, suffix) = canonical.split_at(end.unwrap_or(canonical.len()));
    let (number, power) = match suffix.strip_suffix('i') {
        Some(binary) => {
            let power = u32::try_from(
                ["", "K", "M", "G", "T", "P", "E"].iter().position(|s| *s == binary)?,
            )
            .ok()?;
            let number: i128 = number.parse().ok()?;
            (number.checked_mul(1024_i128.checked_pow(power)?)?.to_string(), 0)
        }
        None => (number.to_owned(), decimal_power(suffix)?),
    };
    let digits = number.trim_end_matches('0');
    if digits.is_empty() || digits == "-" {
        return Some(ZERO.into());
    }
    let zeros = i32::try_from(number.len() - digits.len()).ok()?;
    Some(format!("{digits}e{}", power.checked_add(zeros)?).into())
}

fn decimal_power(suffix: &str) -> Option<i32> {
    Some(match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => suffix.strip_prefix('e')?.parse().ok()?,
    })
}
