//! JSON in quotes: `jsonpb` drops the quotes of a number and reads what is left.

use serde_json::Value as Json;

use super::ReadError;
use crate::proto::write;

/// The JSON in a string, and its text.
pub(super) fn json(text: &str) -> Result<(Json, String), ReadError> {
    let raw = in_json(text);
    let raw = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or_default();
    let raw = raw.trim_matches(' ');
    match serde_json::from_str(raw) {
        Ok(json) => Ok((json, raw.to_owned())),
        Err(_) => Err(ReadError::Syntax(problem(raw))),
    }
}

/// A string as it stands, with its quotes, in the JSON that Go makes of YAML.
pub(super) fn in_json(text: &str) -> String {
    let mut raw = String::new();
    write::text(&mut raw, text);
    raw
}

/// What Go's scanner says of a text that is not JSON. It is exact for words and numbers.
fn problem(raw: &str) -> String {
    let first = raw.bytes().next();
    let (rest, place) = match first {
        None => ("", String::new()),
        Some(b't') => literal(raw, "true"),
        Some(b'f') => literal(raw, "false"),
        Some(b'n') => literal(raw, "null"),
        Some(b'-' | b'0'..=b'9') => number(raw),
        Some(_) => (raw, "looking for beginning of value".to_owned()),
    };
    match rest.bytes().next() {
        None if place.is_empty() => "unexpected end of JSON input".to_owned(),
        // Go's scanner sees a blank at the end.
        byte => format!("invalid character {:?} {place}", char::from(byte.unwrap_or(b' '))),
    }
}

/// Where a text leaves a literal, and what Go says there.
fn literal<'t>(text: &'t str, literal: &str) -> (&'t str, String) {
    let same = text.bytes().zip(literal.bytes()).take_while(|(left, right)| left == right).count();
    let place = match literal.chars().nth(same) {
        Some(expected) => format!("in literal {literal} (expecting {expected:?})"),
        None => "after top-level value".to_owned(),
    };
    (text.get(same..).unwrap_or_default(), place)
}

/// Where a text leaves the grammar of numbers, and what Go says there.
fn number(text: &str) -> (&str, String) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let place = |text: &str| text.to_owned();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = if rest.starts_with('0') { 1 } else { digits(rest) };
    if whole == 0 {
        return (rest, place("in numeric literal"));
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return (fraction, place("after decimal point in numeric literal"));
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        if count == 0 {
            return (exponent, place("in exponent of numeric literal"));
        }
        rest = &exponent[count..];
    }
    (rest, place("after top-level value"))
}
