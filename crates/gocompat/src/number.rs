//! Booleans and numbers as Go's `strconv` package parses and prints them.

mod float;
mod print;

pub use float::{parse_float, parse_yaml_float};
pub use print::{format_float, plain_decimal};

/// Parses a boolean: `1`, `t`, `T`, `true`, `TRUE`, `True` or the same six of `false`.
///
/// Go: `strconv.ParseBool`.
#[must_use]
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses a signed decimal integer that fits in `bits` bits (2 to 64, or 0 for 64).
///
/// Go: `strconv.ParseInt(text, 10, bits)`. It may begin with one sign, `+` or `-`.
#[must_use]
pub fn parse_int(text: &str, bits: u32) -> Option<i64> {
    let unused = match bits {
        0 => 0,
        _ => 64_u32.checked_sub(bits)?,
    };
    let value: i64 = text.parse().ok()?;
    let range = (i64::MIN >> unused)..=(i64::MAX >> unused);
    range.contains(&value).then_some(value)
}

/// Parses an unsigned decimal integer of 64 bits, without a sign.
///
/// Go: `strconv.ParseUint(text, 10, 64)`.
#[must_use]
pub fn parse_uint(text: &str) -> Option<u64> {
    if text.starts_with('+') {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_have_six_spellings_each() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(parse_bool(text), Some(true), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(parse_bool(text), Some(false), "{text}");
        }
        for text in ["", "yes", "no", "on", "tRUE", " true", "enabled", "2"] {
            assert_eq!(parse_bool(text), None, "{text}");
        }
    }

    #[test]
    fn signed_integers_take_one_sign_and_decimal_digits() {
        assert_eq!(parse_int("007", 64), Some(7));
        assert_eq!(parse_int("+7", 64), Some(7));
        assert_eq!(parse_int("-0", 64), Some(0));
        for text in ["", "+", "-", "--1", "1_0", " 1", "1 ", "0x1", "1.0", "1e3", "\u{661}"] {
            assert_eq!(parse_int(text, 64), None, "{text}");
        }
    }

    #[test]
    fn signed_integers_keep_to_their_bits() {
        assert_eq!(parse_int("-128", 8), Some(-128));
        assert_eq!(parse_int("128", 8), None);
        assert_eq!(parse_int("2147483647", 32), Some(2_147_483_647));
        assert_eq!(parse_int("-2147483649", 32), None);
        assert_eq!(parse_int("-9223372036854775808", 64), Some(i64::MIN));
        assert_eq!(parse_int("9223372036854775808", 0), None);
        assert_eq!(parse_int("1", 65), None);
    }

    #[test]
    fn unsigned_integers_take_no_sign() {
        assert_eq!(parse_uint("18446744073709551615"), Some(u64::MAX));
        for text in ["", "+1", "-1", "-0", "18446744073709551616", "1_0", "0x1"] {
            assert_eq!(parse_uint(text), None, "{text}");
        }
    }
}
