//! Quantities by value.

use injectd_gocompat::quantity;
use serde_json::Value;

/// The form of zero.
pub(super) const ZERO: &str = "0e0";

/// A quantity as digits and a power of ten; `None` if it is none. Kubernetes prints some quantities
/// as they were written: `+5`, `007`, `1.500`.
pub(super) fn normal(text: &str) -> Option<Value> {
    let canonical = quantity::parse(text)?.canonical();
    let (sign, unsigned) = match canonical.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", canonical.strip_prefix('+').unwrap_or(&canonical)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let number = format!("{whole}{fraction}");
    let places = i32::try_from(fraction.len()).ok()?;
    let (number, power) = match suffix.strip_suffix('i') {
        Some(binary) => {
            let power = u32::try_from(
                ["", "K", "M", "G", "T", "P", "E"].iter().position(|s| *s == binary)?,
            )
            .ok()?;
            let number: i128 = number.parse().ok()?;
            (number.checked_mul(1024_i128.checked_pow(power)?)?.to_string(), 0)
        }
        None => (number, decimal_power(suffix)?),
    };
    let number = number.trim_start_matches('0');
    let digits = number.trim_end_matches('0');
    if digits.is_empty() {
        return Some(ZERO.into());
    }
    let zeros = i32::try_from(number.len() - digits.len()).ok()?;
    let power = power.checked_sub(places)?.checked_add(zeros)?;
    Some(format!("{sign}{digits}e{power}").into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_quantities_have_one_form() {
        for (texts, form) in [
            (&["1.5", "1500m", "1.500", "+1.5", "01.50"][..], "15e-1"),
            (&["50m", "050m", "0.05", ".05", "+0.050"], "5e-2"),
            (&["-5", "-05", "-5.0"], "-5e0"),
            (&["1Ki", "1024", "01Ki", "1.024k", "+1Ki"], "1024e0"),
            (&["0", "-0", "0.00", "000", "0Ki", "+0"], ZERO),
            (&["7", "007", "+7", "7e0", "70e-1"], "7e0"),
        ] {
            for text in texts {
                assert_eq!(normal(text), Some(form.into()), "{text}");
            }
        }
        for text in ["", "x", "1.5.5", "1Kx"] {
            assert_eq!(normal(text), None, "{text}");
        }
    }
}
