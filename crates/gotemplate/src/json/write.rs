//! Writes JSON.

use injectd_gocompat::number::format_float;

use super::MAX_NESTING;
use crate::{
    runes::runes,
    value::{Shape, Value},
};

/// How JSON is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// `<`, `>` and `&` are written as escapes.
    pub(crate) escape_html: bool,
    /// Two blanks of indentation for each level.
    pub(crate) pretty: bool,
}

impl Style {
    /// `json.Marshal`.
    pub(crate) const COMPACT: Self = Self { escape_html: true, pretty: false };
}

/// JSON of a value, of at most so many bytes. Errors are Go's, but for limits.
pub(crate) fn write(value: &Value, style: Style, limit: usize) -> Result<Vec<u8>, String> {
    let mut writer = Writer { out: Vec::new(), style, limit };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer {
    out: Vec<u8>,
    style: Style,
    limit: usize,
}

impl Writer {
    fn check(&self, depth: usize) -> Result<(), String> {
        if depth > MAX_NESTING {
            return Err(format!("values are nested deeper than {MAX_NESTING} levels"));
        }
        if self.out.len() > self.limit {
            return Err(format!("the JSON is longer than {} bytes", self.limit));
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        self.check(depth)?;
        match value {
            Value::Nil => self.str("null"),
            Value::Bool(value) => self.str(if *value { "true" } else { "false" }),
            Value::Int(value, _) => self.str(&value.to_string()),
            Value::Uint(value, _) => self.str(&value.to_string()),
            Value::Float(value) => self.str(&float(*value)?),
            Value::Complex(..) => return Err("json: unsupported type: complex128".to_owned()),
            Value::Text(text) => self.string(text),
            Value::List(list) if list.is_nil() => self.str("null"),
            Value::List(list) => {
                self.str("[");
                for (index, item) in list.iter().enumerate() {
                    self.separate(index, depth + 1);
                    self.value(item, depth + 1)?;
                }
                self.close(list.is_empty(), "]", depth);
            }
            Value::Map(map) if map.is_nil() => self.str("null"),
            Value::Map(map) => {
                self.str("{");
                let entries = map.entries();
                for (index, (key, item)) in entries.iter().enumerate() {
                    self.separate(index, depth + 1);
                    self.string(key);
                    self.str(if self.style.pretty { ": " } else { ":" });
                    self.value(item, depth + 1)?;
                }
                self.close(entries.is_empty(), "}", depth);
            }
            Value::Object(object) => match object.shape() {
                Shape::NilPointer => self.str("null"),
                _ => self.given(&object.json()?, depth)?,
            },
        }
        Ok(())
    }

    /// The JSON that an object makes of itself.
    fn given(&mut self, json: &str, depth: usize) -> Result<(), String> {
        if self.style.pretty {
            let value = super::read(json.as_bytes())?;
            return self.value(&value, depth);
        }
        self.str(json);
        Ok(())
    }

    fn str(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn separate(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.str(",");
        }
        self.line(depth);
    }

    fn line(&mut self, depth: usize) {
        if self.style.pretty {
            self.str("\n");
            self.str(&"  ".repeat(depth));
        }
    }

    fn close(&mut self, is_empty: bool, bracket: &str, depth: usize) {
        if !is_empty {
            self.line(depth);
        }
        self.str(bracket);
    }

    fn string(&mut self, text: &[u8]) {
        self.str("\"");
        for (at, char, width) in runes(text) {
            match char {
                None => self.str("\\ufffd"),
                Some('"') => self.str("\\\""),
                Some('\\') => self.str("\\\\"),
                Some('\n') => self.str("\\n"),
                Some('\r') => self.str("\\r"),
                Some('\t') => self.str("\\t"),
                Some('\u{8}') => self.str("\\b"),
                Some('\u{c}') => self.str("\\f"),
                Some(char)
                    if char < ' '
                        || matches!(char, '\u{2028}' | '\u{2029}')
                        || self.style.escape_html && matches!(char, '<' | '>' | '&') =>
                {
                    self.str(&format!("\\u{:04x}", u32::from(char)));
                }
                Some(_) => self.out.extend_from_slice(&text[at..at + width]),
            }
        }
        self.str("\"");
    }
}

/// A float as Go writes it into JSON: an exponent below 1e-6 and from 1e21 on.
pub(crate) fn float(value: f64) -> Result<String, String> {
    if !value.is_finite() {
        return Err(format!("json: unsupported value: {}", format_float(value)));
    }
    let magnitude = value.abs();
    let shortest = format_float(value);
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        // e-09 becomes e-9.
        return Ok(shortest.replace("e-0", "e-"));
    }
    Ok(plain(&shortest))
}

/// A decimal without an exponent.
fn plain(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_owned() };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let Ok(whole) = usize::try_from(exponent) else {
        let zeros = exponent.unsigned_abs() as usize - 1;
        return format!("{sign}0.{}{digits}", "0".repeat(zeros));
    };
    if digits.len() <= whole + 1 {
        return format!("{sign}{digits:0<0$}", whole + 1);
    }
    let (whole, fraction) = digits.split_at(whole + 1);
    format!("{sign}{whole}.{fraction}")
}
