//! Messages as JSON.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use injectd_gocompat::number::format_float;

use super::{
    message::{Message, Value},
    schema::{Field, Kind, Wrapped},
};

impl Message {
    /// The JSON of Protobuf, without blanks: fields in their order and only those that are set, keys
    /// of maps sorted, `<`, `>` and `&` escaped.
    ///
    /// Go: `jsonpb.Marshaler` of `github.com/golang/protobuf`, which Istio uses in all releases.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        message(&mut out, self);
        out
    }
}

fn message(out: &mut String, of: &Message) {
    out.push('{');
    let mut first = true;
    for (field, value) in of.fields() {
        let Some(value) = value else { continue };
        comma(out, &mut first);
        text(out, &field.json);
        out.push(':');
        self::field(out, field, value);
    }
    out.push('}');
}

fn field(out: &mut String, field: &Field, value: &Value) {
    let mut first = true;
    match value {
        Value::List(items) => {
            out.push('[');
            for item in items {
                comma(out, &mut first);
                single(out, field.kind, item);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (key, value) in entries {
                comma(out, &mut first);
                text(out, key);
                out.push(':');
                single(out, field.kind, value);
            }
            out.push('}');
        }
        value => single(out, field.kind, value),
    }
}

fn comma(out: &mut String, first: &mut bool) {
    if !std::mem::replace(first, false) {
        out.push(',');
    }
}

fn single(out: &mut String, kind: Kind, value: &Value) {
    match value {
        Value::Text(value) => text(out, value),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Integer(number) => integer(out, kind, *number),
        Value::Double(number) => double(out, *number),
        Value::Message(value) => message(out, value),
        Value::Duration(nanos) => duration(out, *nanos),
        Value::Struct(object) => any(out, object),
        // There are no lists of lists in Protobuf.
        Value::List(_) | Value::Map(_) => out.push_str("null"),
    }
}

fn integer(out: &mut String, kind: Kind, number: i64) {
    let name = match kind {
        Kind::Enum(of) => i32::try_from(number).ok().and_then(|number| of.get().name_of(number)),
        _ => None,
    };
    // Writing into a String cannot fail.
    let _ = match (name, kind) {
        (Some(name), _) => write!(out, "\"{name}\""),
        (None, Kind::Wrapper(Wrapped::Int64)) => write!(out, "\"{number}\""),
        _ => write!(out, "{number}"),
    };
}

/// A float as Go's `encoding/json` writes it, and what is not finite as Protobuf does.
fn double(out: &mut String, number: f64) {
    if !number.is_finite() {
        let name = match number {
            _ if number.is_nan() => "NaN",
            _ if number > 0.0 => "Infinity",
            _ => "-Infinity",
        };
        let _ = write!(out, "\"{name}\"");
        return;
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        // Go's exponent has two digits at least; JSON drops the zero of a negative one only.
        out.push_str(&format_float(number).replace("e-0", "e-"));
    } else {
        let _ = write!(out, "{number}");
    }
}

/// Seconds with no, 3, 6 or 9 decimals.
fn duration(out: &mut String, nanos: i64) {
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, nanos) =
        (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    let _ = write!(out, "\"{sign}{seconds}");
    let _ = match nanos {
        0 => Ok(()),
        _ if nanos % 1_000_000 == 0 => write!(out, ".{:03}", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => write!(out, ".{:06}", nanos / 1_000),
        _ => write!(out, ".{nanos:09}"),
    };
    out.push_str("s\"");
}

/// A string as Go's `encoding/json` writes it into HTML.
pub(super) fn text(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Any JSON with sorted keys. Protobuf holds its numbers as doubles.
fn any(out: &mut String, value: &serde_json::Value) {
    use serde_json::Value as Json;
    let mut first = true;
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => double(out, number.as_f64().unwrap_or_default()),
        Json::String(value) => text(out, value),
        Json::Array(items) => {
            out.push('[');
            for item in items {
                comma(out, &mut first);
                any(out, item);
            }
            out.push(']');
        }
        Json::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in entries {
                comma(out, &mut first);
                text(out, key);
                out.push(':');
                any(out, value);
            }
            out.push('}');
        }
    }
}
