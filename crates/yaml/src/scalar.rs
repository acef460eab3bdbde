//! The type of a scalar: the rules of `resolve.go` of yaml.v2.

use std::borrow::Cow;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use injectd_gocompat::number;

use crate::timestamp;

const CORE_TAGS: &str = "tag:yaml.org,2002:";

/// Go's decoder does not look at the bits that the last character has too many.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// A typed scalar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Above the range of `Int`.
    Uint(u64),
    Float(f64),
    Text(Cow<'a, str>),
}

impl Scalar<'_> {
    pub(crate) fn into_owned(self) -> Scalar<'static> {
        match self {
            Scalar::Null => Scalar::Null,
            Scalar::Bool(flag) => Scalar::Bool(flag),
            Scalar::Int(number) => Scalar::Int(number),
            Scalar::Uint(number) => Scalar::Uint(number),
            Scalar::Float(number) => Scalar::Float(number),
            Scalar::Text(text) => Scalar::Text(Cow::Owned(text.into_owned())),
        }
    }
}

/// The value of a scalar with a tag, or why the tag does not fit.
pub(crate) fn tagged<'a>(tag: &str, text: Cow<'a, str>) -> Result<Scalar<'a>, &'static str> {
    let Some(name) = tag.strip_prefix(CORE_TAGS) else {
        return Ok(Scalar::Text(text));
    };
    match name {
        "null" => match plain(&text) {
            Scalar::Null => Ok(Scalar::Null),
            _ => Err("the scalar is not a null, as its tag !!null says"),
        },
        "bool" => match plain(&text) {
            Scalar::Bool(flag) => Ok(Scalar::Bool(flag)),
            _ => Err("the scalar is not a boolean, as its tag !!bool says"),
        },
        "int" => match plain(&text) {
            number @ (Scalar::Int(_) | Scalar::Uint(_)) => Ok(number.into_owned()),
            _ => Err("the scalar is not an integer, as its tag !!int says"),
        },
        "float" => match plain(&text) {
            Scalar::Float(number) => Ok(Scalar::Float(number)),
            Scalar::Int(number) => Ok(Scalar::Float(rounded(number))),
            _ => Err("the scalar is not a float, as its tag !!float says"),
        },
        "timestamp" if !timestamp::is_timestamp(&text) => {
            Err("the scalar is not a time, as its tag !!timestamp says")
        }
        "binary" => {
            let decoded = BASE64.decode(text.replace(['\r', '\n'], ""));
            let bytes =
                decoded.map_err(|_| "the scalar is not base64, as its tag !!binary says")?;
            Ok(Scalar::Text(Cow::Owned(as_json_text(&bytes))))
        }
        _ => Ok(Scalar::Text(text)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "Go rounds as well")]
fn rounded(number: i64) -> f64 {
    number as f64
}

/// Go writes a replacement character into JSON for each byte that is not UTF-8.
fn as_json_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// The value of a plain scalar without a tag. Times stay text.
pub(crate) fn plain(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => numeric(text).unwrap_or(Scalar::Text(Cow::Borrowed(text))),
    }
}

fn numeric(text: &str) -> Option<Scalar<'static>> {
    match text.as_bytes().first()? {
        // Here underscores are only allowed between digits.
        b'.' => number::parse_float(text).map(Scalar::Float),
        b'0'..=b'9' | b'+' | b'-' => {
            let digits = if text.contains('_') {
                Cow::Owned(text.replace('_', ""))
            } else {
                Cow::Borrowed(text)
            };
            integer(&digits)
                .or_else(|| number::parse_yaml_float(&digits).map(Scalar::Float))
                .or_else(|| signed_binary(&digits))
        }
        _ => None,
    }
}

/// Go: `strconv.ParseInt` with base 0, then `strconv.ParseUint`.
fn integer(text: &str) -> Option<Scalar<'static>> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("+", &text[1..]),
        _ => ("", text),
    };
    let (radix, digits) = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &body[2..]),
        [b'0', b'b' | b'B', ..] => (2, &body[2..]),
        [b'0', b'o' | b'O', ..] => (8, &body[2..]),
        [b'0', _, ..] => (8, &body[1..]),
        _ => (10, body),
    };
    // Rust accepts a sign here.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let whole = u64::from_str_radix(digits, radix).ok()?;
    let narrow = match sign {
        "-" => 0_i64.checked_sub_unsigned(whole),
        _ => i64::try_from(whole).ok(),
    };
    match narrow {
        Some(narrow) => Some(Scalar::Int(narrow)),
        None => sign.is_empty().then_some(Scalar::Uint(whole)),
    }
}

/// After `0b`, yaml.v2 reads once more, and allows a sign.
fn signed_binary(text: &str) -> Option<Scalar<'static>> {
    let digits = text.strip_prefix("0b")?;
    i64::from_str_radix(digits, 2).ok().map(Scalar::Int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_three_spellings_and_no_others() {
        for text in ["y", "Yes", "ON", "true"] {
            assert_eq!(plain(text), Scalar::Bool(true), "{text}");
        }
        for text in ["oN", "tRUE", "yEs", "nULL", ".iNF", "enabled"] {
            assert_eq!(plain(text), Scalar::Text(text.into()), "{text}");
        }
    }

    #[test]
    fn integers_have_every_base_and_64_bits() {
        for (text, number) in [
            ("0777", 511),
            ("0o17", 15),
            ("-0b11", -3),
            ("0b-11", -3),
            ("0X_f", 15),
            ("1__0", 10),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(plain(text), Scalar::Int(number), "{text}");
        }
        assert_eq!(plain("18446744073709551615"), Scalar::Uint(u64::MAX));
        assert_eq!(plain("18446744073709551616"), Scalar::Float(2_f64.powi(64)));
        for text in ["1:30", "0x", "_1", "0o8", "2001-01-01", "1e400", "0xfffffffffffffffff"] {
            assert_eq!(plain(text), Scalar::Text(text.into()), "{text}");
        }
    }

    #[test]
    fn octal_that_is_none_is_a_float() {
        assert_eq!(plain("08"), Scalar::Float(8.0));
        assert_eq!(plain("8e1_2"), Scalar::Float(8e12));
        assert_eq!(plain(".5"), Scalar::Float(0.5));
    }
}
