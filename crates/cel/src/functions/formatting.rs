//! `"…".format([…])` (`ext/formatting.go` of cel-go).

use injectd_gocompat::text::quote;

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
            (b'f' | b'e', _) if precision > MAX_PRECISION => {
                return Fault::unknown("the text of a float with so many digits");
            }
            (b'f' | b'e', Val::Text(text)) => match &**text {
                "NaN" => infinite(f64::NAN, kind, precision),
                "Infinity" => infinite(f64::INFINITY, kind, precision),
                "-Infinity" => infinite(f64::NEG_INFINITY, kind, precision),
                _ => return Fault::error("a string does not fit"),
            },
            (b'f' | b'e', Val::Double(value)) if !value.is_finite() => {
                infinite(*value, kind, precision)
            }
            // Zero has no sign.
            (b'f', Val::Double(value)) => fixed(*value + 0.0, precision),
            (b'e', Val::Double(value)) => scientific(*value + 0.0, precision),
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
            Val::Text(text) if is_inner => self.push(&quote(text)),
            Val::Text(text) => self.push(text),
            Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if is_inner => self.push(&format!("b{}", quote(text))),
                Ok(text) => self.push(text),
                Err(_) => Fault::error("invalid UTF-8 in bytes"),
            },
            Val::Null => self.push("null"),
            Val::Type(name) => self.push(name),
            Val::List(list) => self.list(list),
            Val::Map(map) => self.map(map),
            Val::Double(value) if is_inner && value.is_finite() => {
                self.push(&format!("{value:.6}"))
            }
            Val::Double(value) if is_inner => {
                let text = scalar_text(&Val::Double(*value)).unwrap_or_default();
                self.push(&quote(&text))
            }
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
            if !matches!(key, Val::Text(_) | Val::Bool(_) | Val::Int(_) | Val::Uint(_)) {
                return Fault::error(format!("a key that is a {} has no text", key.type_name()));
            }
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
    let (whole, mut fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    // The library of Go keeps the least number of digits in a byte, and leaves out zeros after them.
    let least = precision % 256;
    while fraction.len() > least + 1 && fraction.ends_with('0') {
        fraction = &fraction[..fraction.len() - 1];
    }
    if fraction == "." {
        fraction = "";
    }
    let mut out = if value.is_sign_negative() { "-" } else { "" }.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// With six digits after the point, and the power of ten in superscript. What is written as a precision is
/// a width for cel-go.
fn scientific(value: f64, width: usize) -> String {
    let text = format!("{value:.6e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(("", power), |power| ("\u{207b}", power));
    let digits = format!("{power:0>2}");
    let digits = digits.chars().filter_map(|digit| digit.to_digit(10));
    let superscript: String = digits.map(|digit| SUPERSCRIPT[digit as usize]).collect();
    wide(&format!("{mantissa}\u{d7}10{sign}{superscript}"), width)
}

/// The digits from 0 to 9 in superscript.
const SUPERSCRIPT: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// A number that is not finite.
fn infinite(value: f64, kind: u8, precision: usize) -> String {
    let text = match value {
        f64::INFINITY => "∞",
        f64::NEG_INFINITY => "-∞",
        _ => "NaN",
    };
    wide(text, if kind == b'e' { precision } else { 0 })
}

/// With blanks before it, so that it has so many characters.
fn wide(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}
