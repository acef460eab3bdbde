//! `"…".format([…])` (`ext/formatting.go` of cel-go).

use std::fmt::Write as _;

use super::{Call, convert::scalar_text};
use crate::{
    value::{Fault, List, Map, Res, Val},
    work::Work,
};

/// Digits behind the point, if a clause does not say it.
// As in cel-go, which has it from C.
const DEFAULT_PRECISION: usize = 6;
/// More digits than a float has are written as zeros; an API server would write as many as the format asks for.
const MAX_PRECISION: usize = 1000;

/// The parts of what is left of a format. They are read one by one: a format may have as many as bytes.
struct Clauses<'f> {
    rest: &'f str,
}

/// A part of a format.
enum Clause<'f> {
    Text(&'f str),
    Value { kind: u8, precision: Option<usize> },
}

pub(super) fn format<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let (format, list) = (call.text(0)?, call.list(1)?);
    let mut out = Out { text: String::new(), work: call.work };
    let mut next = 0;
    for clause in (Clauses { rest: &format }) {
        match clause.or_else(Fault::error)? {
            Clause::Text(text) => out.push(text)?,
            Clause::Value { kind, precision } => {
                let Some(value) = list.get(next) else {
                    return Fault::error(format!("index {next} out of range"));
                };
                next += 1;
                out.value(&value?, kind, precision.unwrap_or(DEFAULT_PRECISION))?;
            }
        }
    }
    Ok(Val::text(out.text))
}

/// How each value of a format is written: the letter of its clause.
///
/// # Errors
/// A clause is not valid.
pub(crate) fn kinds(format: &str) -> Result<Vec<u8>, String> {
    let kinds = Clauses { rest: format }.filter_map(|clause| match clause {
        Ok(Clause::Text(_)) => None,
        Ok(Clause::Value { kind, .. }) => Some(Ok(kind)),
        Err(problem) => Some(Err(problem)),
    });
    kinds.collect()
}

impl<'f> Iterator for Clauses<'f> {
    type Item = Result<Clause<'f>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(after) = self.rest.strip_prefix('%') else {
            let end = self.rest.find('%').unwrap_or(self.rest.len());
            let (text, rest) = self.rest.split_at(end);
            self.rest = rest;
            return Some(Ok(Clause::Text(text)));
        };
        if let Some(rest) = after.strip_prefix('%') {
            self.rest = rest;
            return Some(Ok(Clause::Text("%")));
        }
        Some(value(after).map(|(clause, rest)| {
            self.rest = rest;
            clause
        }))
    }
}

/// The clause of a value, after its sign, and the rest.
fn value(text: &str) -> Result<(Clause<'_>, &str), String> {
    let (precision, after) = precision(text)?;
    let kind = *after.as_bytes().first().ok_or("unexpected end of format string")?;
    if !b"sdfebxXo".contains(&kind) {
        return Err(format!("unrecognized formatting clause {:?}", char::from(kind)));
    }
    Ok((Clause::Value { kind, precision }, &after[1..]))
}

fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(rest) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len());
    let digits = rest[..end].parse().map_err(|_| "a precision is not a number".to_owned())?;
    Ok((Some(digits), &rest[end..]))
}

/// What is written so far.
struct Out<'w> {
    text: String,
    work: &'w mut Work,
}

impl Out<'_> {
    fn push(&mut self, text: &str) -> Res<()> {
        self.work.spend(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    fn value(&mut self, value: &Val<'_>, kind: u8, precision: usize) -> Res<()> {
        let text = match (kind, value) {
            (b's', value) => return self.shown(value, false),
            (b'd', Val::Int(_) | Val::Uint(_)) => scalar_text(value).unwrap_or_default(),
            (b'f' | b'e', Val::Text(text))
                if matches!(&**text, "NaN" | "Infinity" | "-Infinity") =>
            {
                return Fault::unknown("the text of a float that is not finite");
            }
            (b'f', Val::Double(value)) if value.is_finite() && precision <= MAX_PRECISION => {
                fixed(*value, precision)
            }
            (b'f' | b'e', Val::Double(_)) => return Fault::unknown("the text of a float"),
            (b'b', Val::Bool(value)) => u8::from(*value).to_string(),
            (b'x' | b'X', Val::Text(text)) => return self.hex(text.as_bytes(), kind),
            (b'x' | b'X', Val::Bytes(bytes)) => return self.hex(bytes, kind),
            (b'b' | b'o' | b'x' | b'X', Val::Int(value)) => {
                let sign = if *value < 0 { "-" } else { "" };
                sign.to_owned() + &radix(value.unsigned_abs(), kind)
            }
            (b'b' | b'o' | b'x' | b'X', Val::Uint(value)) => radix(*value, kind),
            _ => return Fault::error(format!("a {} does not fit", value.type_name())),
        };
        self.push(&text)
    }

    fn hex(&mut self, bytes: &[u8], kind: u8) -> Res<()> {
        self.work.spend(bytes.len().saturating_mul(2))?;
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                self.text.extend(char::from_digit(u32::from(digit), 16));
            }
        }
        if kind == b'X' {
            let start = self.text.len() - 2 * bytes.len();
            self.text[start..].make_ascii_uppercase();
        }
        Ok(())
    }

    /// A value as `%s` shows it; within a list or map as a literal.
    fn shown(&mut self, value: &Val<'_>, is_inner: bool) -> Res<()> {
        match value {
            Val::Text(text) if is_inner => self.push(&quoted(text)),
            Val::Text(text) => self.push(text),
            Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if is_inner => self.push(&format!("b{}", quoted(text))),
                Ok(text) => self.push(text),
                Err(_) => Fault::error("invalid UTF-8 in bytes"),
            },
            Val::Null => self.push("null"),
            Val::Type(name) => self.push(name),
            Val::List(list) => self.list(list),
            Val::Map(map) => self.map(map),
            Val::Double(value) if is_inner => self.push(&format!("{value:.6}")),
            Val::Timestamp(_) | Val::Duration(_) if is_inner => {
                let text = scalar_text(value).unwrap_or_default();
                let name = if matches!(value, Val::Duration(_)) { "duration" } else { "timestamp" };
                self.push(&format!("{name}(\"{text}\")"))
            }
            Val::Bool(_)
            | Val::Int(_)
            | Val::Uint(_)
            | Val::Double(_)
            | Val::Timestamp(_)
            | Val::Duration(_) => self.push(&scalar_text(value).unwrap_or_default()),
            other => Fault::error(format!("a {} has no text", other.type_name())),
        }
    }

    fn list(&mut self, list: &List<'_>) -> Res<()> {
        self.push("[")?;
        for (index, item) in list.iter().enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.shown(&item?, true)?;
        }
        self.push("]")
    }

    /// The entries by the texts of their keys.
    fn map(&mut self, map: &Map<'_>) -> Res<()> {
        let mut entries = Vec::new();
        for (key, value) in map.entries(self.work)? {
            let mut out = Out { text: String::new(), work: &mut *self.work };
            out.shown(&key, true)?;
            entries.push((out.text, value?));
        }
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.push("{")?;
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.push(key)?;
            self.push(":")?;
            self.shown(value, true)?;
        }
        self.push("}")
    }
}

fn radix(value: u64, kind: u8) -> String {
    match kind {
        b'b' => format!("{value:b}"),
        b'o' => format!("{value:o}"),
        b'x' => format!("{value:x}"),
        _ => format!("{value:X}"),
    }
}

/// With commas between thousands, as in English.
fn fixed(value: f64, precision: usize) -> String {
    let text = format!("{:.precision$}", value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = if value.is_sign_negative() { "-" } else { "" }.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// As Go's `%q`, for the characters that are common.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if other.is_control() => {
                // A String takes every text.
                let _ = write!(out, "\\x{:02x}", u32::from(other));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
