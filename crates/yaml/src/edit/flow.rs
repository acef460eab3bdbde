//! Changes in collections in flow style, and in JSON.

use serde_json::Value;

use crate::{Format, writer};

/// What stands between the parts of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spacing {
    format: Format,
    colon: &'static str,
    comma: &'static str,
    /// The indentation of each part, and how much deeper it is than the collection; `None` if all
    /// parts stand in one line.
    lines: Option<(String, String)>,
}

impl Spacing {
    /// JSON with a part in each line.
    pub(super) fn lines(indent: String, unit: String) -> Self {
        Self { format: Format::Json, colon: ": ", comma: ",", lines: Some((indent, unit)) }
    }

    /// Parts in lines of their own, with this indentation and how much deeper it is than that of the
    /// collection; or all in one line.
    pub(super) fn new(format: Format, wide: (bool, bool), lines: Option<(String, String)>) -> Self {
        let colon = if wide.0 { ": " } else { ":" };
        let comma = if wide.1 && lines.is_none() { ", " } else { "," };
        Self { format, colon, comma, lines }
    }

    /// The indentation of each part, if each has its own line.
    pub(super) fn indent(&self) -> Option<&str> {
        self.lines.as_ref().map(|(indent, _)| indent.as_str())
    }

    /// Writes a value that is a part of the collection.
    pub(super) fn write(&self, out: &mut String, value: &Value) {
        let inner =
            self.lines.as_ref().map(|(indent, unit)| (format!("{indent}{unit}"), unit.clone()));
        let inside = Self { lines: inner, ..self.clone() };
        match value {
            Value::Object(map) if !map.is_empty() => {
                out.push('{');
                inside.parts(out, map.iter().map(|(key, value)| inside.entry(key, value)));
                self.close(out, '}');
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('[');
                inside.parts(out, items.iter().map(|item| inside.item(item)));
                self.close(out, ']');
            }
            Value::String(text) => self.string(out, text),
            Value::Number(number) if self.format == Format::Yaml => writer::number(out, number),
            value => out.push_str(&value.to_string()),
        }
    }

    /// An entry of the collection.
    pub(super) fn entry(&self, key: &str, value: &Value) -> String {
        let mut out = String::new();
        self.string(&mut out, key);
        out.push_str(self.colon);
        self.write(&mut out, value);
        out
    }

    /// An item of the collection.
    pub(super) fn item(&self, value: &Value) -> String {
        let mut out = String::new();
        self.write(&mut out, value);
        out
    }

    /// The parts of the collection.
    fn parts(&self, out: &mut String, parts: impl Iterator<Item = String>) {
        for (index, part) in parts.enumerate() {
            match (&self.lines, index) {
                (Some((indent, _)), 0) => out.extend(["\n", indent]),
                (None, 0) => {}
                _ => self.between(out),
            }
            out.push_str(&part);
        }
    }

    /// The bracket behind the parts of an inner collection.
    fn close(&self, out: &mut String, bracket: char) {
        if let Some((indent, _)) = &self.lines {
            out.extend(["\n", indent]);
        }
        out.push(bracket);
    }

    /// What stands between two parts.
    pub(super) fn between(&self, out: &mut String) {
        out.push_str(self.comma);
        if let Some((indent, _)) = &self.lines {
            out.extend(["\n", indent]);
        }
    }

    fn string(&self, out: &mut String, text: &str) {
        match self.format {
            Format::Json => out.push_str(&Value::from(text).to_string()),
            Format::Yaml => writer::string(out, text),
        }
    }
}
