//! Strings, booleans, numbers and enums, as Go's `encoding/json` reads them.

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use std::ops::RangeInclusive;

use serde_json::Value as Json;

use super::ReadError;
use crate::proto::schema::EnumType;

/// A kind of integers in Go.
pub(super) struct Integers {
    go_type: &'static str,
    range: RangeInclusive<i64>,
}

pub(super) const INT32: Integers =
    Integers { go_type: "int32", range: i32::MIN as i64..=i32::MAX as i64 };
pub(super) const UINT32: Integers = Integers { go_type: "uint32", range: 0..=u32::MAX as i64 };
pub(super) const INT64: Integers = Integers { go_type: "int64", range: i64::MIN..=i64::MAX };
const ENUM: Integers =
    Integers { go_type: "protoreflect.EnumNumber", range: i32::MIN as i64..=i32::MAX as i64 };

/// The error for a value of another type.
pub(super) fn mismatch(json: &Json, go_type: &'static str) -> ReadError {
    let found = match json {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    ReadError::Type { found: found.to_owned(), go_type }
}

pub(super) fn text(json: &Json) -> Result<&str, ReadError> {
    match json {
        Json::Null => Ok(""),
        Json::String(text) => Ok(text),
        other => Err(mismatch(other, "string")),
    }
}

pub(super) fn boolean(json: &Json) -> Result<bool, ReadError> {
    match json {
        Json::Null => Ok(false),
        Json::Bool(value) => Ok(*value),
        other => Err(mismatch(other, "bool")),
    }
}

/// A number of an enum, or the exact name of one of its values.
pub(super) fn enumeration(json: &Json, of: &'static EnumType) -> Result<i64, ReadError> {
    let Json::String(name) = json else { return plain_integer(json, &ENUM) };
    of.number_of(name)
        .map(i64::from)
        .ok_or_else(|| ReadError::UnknownEnum { quoted: format!("\"{name}\""), name: &of.name })
}

/// An integer, which may be in quotes.
pub(super) fn integer(json: &Json, of: &Integers) -> Result<i64, ReadError> {
    match json {
        Json::String(quoted) => plain_integer(&unquoted(quoted)?, of),
        other => plain_integer(other, of),
    }
}

/// A float, which may be in quotes.
pub(super) fn double(json: &Json) -> Result<f64, ReadError> {
    let number = |json: &Json| match json {
        Json::Null => Ok(0.0),
        Json::Number(number) => Ok(number.as_f64().unwrap_or_default()),
        other => Err(mismatch(other, "float64")),
    };
    match json {
        Json::String(name) => match name.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            quoted => number(&unquoted(quoted)?),
        },
        other => number(other),
    }
}

fn plain_integer(json: &Json, of: &Integers) -> Result<i64, ReadError> {
    match json {
        Json::Null => Ok(0),
        Json::Number(number) => {
            number.as_i64().filter(|number| of.range.contains(number)).ok_or_else(|| {
                ReadError::Type { found: format!("number {number}"), go_type: of.go_type }
            })
        }
        other => Err(mismatch(other, of.go_type)),
    }
}

/// The JSON in a string.
fn unquoted(text: &str) -> Result<Json, ReadError> {
    serde_json::from_str(text).map_err(|_| ReadError::Syntax(syntax(text)))
}

/// What Go's scanner says of a text that is not JSON; exact for texts that look like words or
/// numbers.
fn syntax(text: &str) -> String {
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    let number = text.strip_prefix('-').unwrap_or(text);
    let digits = match number.strip_prefix('0') {
        Some(rest) => rest,
        None => number.trim_start_matches(|c: char| c.is_ascii_digit()),
    };
    let at_end = digits.chars().next();
    match (text.chars().next(), at_end) {
        (None, _) | (_, None) => "unexpected end of JSON input".to_owned(),
        (Some(_), Some(c)) if digits.len() < number.len() => {
            format!("invalid character {c:?} after top-level value")
        }
        (Some('-'), Some(c)) => format!("invalid character {c:?} in numeric literal"),
        (Some(c), _) => format!("invalid character {c:?} looking for beginning of value"),
    }
}
