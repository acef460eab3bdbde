//! Strings, booleans, numbers and enums, as Go's `encoding/json` reads them.

use std::ops::RangeInclusive;

use serde_json::Value as Json;

use super::{ReadError, quoted};
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
    let Json::String(name) = json else { return number(json, &bare(json), &ENUM) };
    of.number_of(name)
        .map(i64::from)
        .ok_or_else(|| ReadError::UnknownEnum { quoted: quoted::in_json(name), name: &of.name })
}

/// An integer, which may be in quotes.
pub(super) fn integer(json: &Json, of: &Integers) -> Result<i64, ReadError> {
    match json {
        Json::String(text) => {
            let (json, literal) = quoted::json(text)?;
            number(&json, &literal, of)
        }
        other => number(other, &bare(other), of),
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
            text => number(&quoted::json(text)?.0),
        },
        other => number(other),
    }
}

/// An integer without quotes, and how it is written.
fn number(json: &Json, literal: &str, of: &Integers) -> Result<i64, ReadError> {
    let value = match json {
        Json::Null => return Ok(0),
        // A float in serde_json. Go rejects the sign of an unsigned number.
        Json::Number(_) if literal == "-0" => of.range.contains(&-1).then_some(0),
        Json::Number(number) => number.as_i64().filter(|number| of.range.contains(number)),
        other => return Err(mismatch(other, of.go_type)),
    };
    value.ok_or_else(|| ReadError::Type { found: format!("number {literal}"), go_type: of.go_type })
}

/// A number as Go writes it; `serde_json` adds a fraction to whole floats.
fn bare(json: &Json) -> String {
    json.to_string().trim_end_matches(".0").to_owned()
}
