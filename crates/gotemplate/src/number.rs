//! Number literals: each has all the types that can hold it, as Go's ideal constants do.

use injectd_gocompat::number::parse_float;

use crate::quote::{quote, unquote_char};

/// A number literal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Number {
    /// As the template has it.
    pub(crate) text: String,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    /// Real and imaginary part of a literal with an `i`.
    pub(crate) complex: Option<(f64, f64)>,
}

impl Number {
    /// A character literal. Its errors are Go's.
    pub(crate) fn of_char(text: &str) -> Result<Self, String> {
        let code = unquote_char(text.as_bytes())?;
        let code = code.ok_or_else(|| format!("malformed character constant: {text}"))?;
        Ok(Self {
            text: text.to_owned(),
            int: Some(code.into()),
            uint: Some(code.into()),
            float: Some(code.into()),
            complex: None,
        })
    }

    /// A sum such as `1+2i`.
    pub(crate) fn of_complex(text: &str) -> Result<Self, String> {
        // The sign in the middle is not that of an exponent.
        let bytes = text.as_bytes();
        let is_sign = |at: &usize| {
            matches!(bytes[*at], b'+' | b'-')
                && !matches!(bytes[*at - 1], b'e' | b'E' | b'p' | b'P')
        };
        let middle = (1..bytes.len()).rfind(is_sign).unwrap_or(0);
        let (real, imaginary) = text.split_at(middle);
        let parts = parse_float(real).zip(parse_float(imaginary.trim_end_matches('i')));
        let (real, imaginary) = parts.ok_or("syntax error scanning complex number")?;
        Ok(Self::complex(text, real, imaginary))
    }

    /// Any other number. Its errors are Go's.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        if let Some(imaginary) = text.strip_suffix('i').and_then(parse_float) {
            return Ok(Self::complex(text, 0.0, imaginary));
        }
        let mut number = Self { text: text.to_owned(), ..Self::default() };
        number.uint = parse_uint(text);
        number.int = parse_int(text);
        if number.int == Some(0) {
            number.uint = Some(0);
        }
        #[expect(clippy::cast_precision_loss, reason = "Go converts so")]
        if let Some(int) = number.int {
            number.float = Some(int as f64);
        } else if let Some(uint) = number.uint {
            number.float = Some(uint as f64);
        } else if let Some(float) = parse_float(text) {
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quote(text.as_bytes(), false)));
            }
            number.float = Some(float);
            number.int = exact_int(float);
            number.uint = exact_uint(float);
        } else {
            return Err(format!("illegal number syntax: {}", quote(text.as_bytes(), false)));
        }
        Ok(number)
    }

    fn complex(text: &str, real: f64, imaginary: f64) -> Self {
        let is_real = imaginary == 0.0;
        Self {
            text: text.to_owned(),
            int: exact_int(real).filter(|_| is_real),
            uint: exact_uint(real).filter(|_| is_real),
            float: Some(real).filter(|_| is_real),
            complex: Some((real, imaginary)),
        }
    }

    /// Whether the literal alone, without an expected type, is a float.
    pub(crate) fn is_ideal_float(&self) -> bool {
        let hexadecimal = self.text.starts_with("0x") || self.text.starts_with("0X");
        let hexadecimal_int = hexadecimal && !self.text.contains(['p', 'P']);
        self.float.is_some()
            && !hexadecimal_int
            && !self.text.starts_with('\'')
            && self.text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "it is checked whether the conversion is exact"
)]
fn exact_int(float: f64) -> Option<i64> {
    let int = float as i64;
    (int as f64 == float && float < 9.3e18).then_some(int)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "it is checked whether the conversion is exact"
)]
fn exact_uint(float: f64) -> Option<u64> {
    let int = float as u64;
    (int as f64 == float && float < 1.9e19).then_some(int)
}

/// Digits with a prefix of their base and underscores between them. Go: `strconv.ParseUint(text, 0, 64)`.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    // An underscore follows a digit or the prefix of the base, and a digit follows it.
    let prefixed = digits.len() < lower.len();
    let misplaced = digits.contains("__")
        || digits.ends_with('_')
        || digits.starts_with('_') && !prefixed
        || digits.starts_with(['+', '-']);
    if misplaced {
        return None;
    }
    u64::from_str_radix(&digits.replace('_', ""), base).ok()
}

/// Go: `strconv.ParseInt(text, 0, 64)`.
pub(crate) fn parse_int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = parse_uint(digits)?;
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_prefixes_and_underscores() {
        for (text, value) in [
            ("0x1F", 31),
            ("0b101", 5),
            ("0o17", 15),
            ("017", 15),
            ("1_000", 1000),
            ("-0x10", -16),
            ("+5", 5),
            ("0_7", 7),
            ("0x_f", 15),
            ("0", 0),
        ] {
            assert_eq!(parse_int(text), Some(value), "{text}");
        }
        for text in ["", "0x", "08", "1__0", "_1", "1_", "0b2", "--1", "9223372036854775808"] {
            assert_eq!(parse_int(text), None, "{text}");
        }
    }

    #[test]
    fn whole_floats_are_integers_too() {
        let number = Number::of("1e3").expect("a number");
        assert_eq!((number.int, number.uint, number.float), (Some(1000), Some(1000), Some(1000.0)));
        assert!(number.is_ideal_float());
        assert_eq!(Number::of("1.5").expect("a number").int, None);
        assert!(Number::of("18446744073709551616").is_err());
        assert!(Number::of("1e").is_err());
    }

    #[test]
    fn sums_have_a_real_and_an_imaginary_part() {
        assert_eq!(Number::of_complex("1+2i").map(|number| number.complex), Ok(Some((1.0, 2.0))));
        assert_eq!(
            Number::of_complex("1e+3-2i").map(|number| number.complex),
            Ok(Some((1000.0, -2.0)))
        );
        assert_eq!(Number::of("0i").map(|number| number.int), Ok(Some(0)));
    }
}
