//! Durations, as Go's `time.ParseDuration` reads them.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{ReadError, scalar};

/// A duration in nanoseconds.
pub(super) fn nanos(json: &Json) -> Result<i64, ReadError> {
    if json.is_null() {
        return Ok(0);
    }
    let text = scalar::text(json)?;
    injectd_gocompat::duration::parse(text).ok_or_else(|| ReadError::Duration(reason(text)))
}

/// Why Go rejects the text: the first term without a known unit, else the whole.
fn reason(text: &str) -> String {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let quoted = quoted(text);
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    while rest.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
        let whole = digits(rest);
        let mut unit = &rest[whole..];
        if let Some(fraction) = unit.strip_prefix('.') {
            unit = &fraction[digits(fraction)..];
            if whole == 0 && fraction.len() == unit.len() {
                break;
            }
        }
        let end = unit.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(unit.len());
        let (unit, after) = unit.split_at(end);
        match unit {
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = after,
            "" => return format!("time: missing unit in duration {quoted}"),
            _ => {
                let unit = self::quoted(unit);
                return format!("time: unknown unit {unit} in duration {quoted}");
            }
        }
    }
    format!("time: invalid duration {quoted}")
}

/// A text in quotes; bytes that are not printable ASCII are written in hexadecimal.
///
/// Go: `quote` of package `time`.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            // Writing into a String cannot fail.
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out + "\""
}
