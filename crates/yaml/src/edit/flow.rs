//! Changes in collections in flow style, and in JSON.

#![expect(clippy::disallowed_types, reason = "configuration, manifests and objects from files")]

use std::ops::Range;

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

    /// That of a collection whose bracket and whose first part are at these bytes.
    pub(super) fn of(text: &str, format: Format, open: usize, first: usize) -> Self {
        let indent = |at: usize| {
            let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..];
            &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
        };
        if text[open..first].contains('\n') {
            let (outer, inner) = (indent(open), indent(first));
            let unit = inner.strip_prefix(outer).filter(|unit| !unit.is_empty()).unwrap_or("  ");
            let lines = Some((inner.to_owned(), unit.to_owned()));
            return Self { format, colon: ": ", comma: ",", lines };
        }
        // JSON is either as Go writes it, without a blank, or as people and Python write it.
        let tight = format == Format::Json && !text[open..].contains("\": ");
        let (colon, comma) = if tight { (":", ",") } else { (": ", ", ") };
        Self { format, colon, comma, lines: None }
    }

    /// Writes a value that is a part of the collection.
    pub(super) fn write(&self, out: &mut String, value: &Value) {
        let inner =
            self.lines.as_ref().map(|(indent, unit)| (format!("{indent}{unit}"), unit.clone()));
        let inside = Self { lines: inner, ..self.clone() };
        match value {
            Value::Object(map) if !map.is_empty() => {
                let parts = map.iter().map(|(key, value)| inside.entry(key, value));
                self.brackets(out, ('{', '}'), &inside, parts);
            }
            Value::Array(items) if !items.is_empty() => {
                self.brackets(out, ('[', ']'), &inside, items.iter().map(|item| inside.item(item)));
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

    fn brackets(
        &self,
        out: &mut String,
        (open, close): (char, char),
        inside: &Self,
        parts: impl Iterator<Item = String>,
    ) {
        out.push(open);
        for (index, part) in parts.enumerate() {
            match (&inside.lines, index) {
                (Some((indent, _)), 0) => out.extend(["\n", indent]),
                (None, 0) => {}
                _ => inside.between(out),
            }
            out.push_str(&part);
        }
        if let Some((indent, _)) = &self.lines {
            out.extend(["\n", indent]);
        }
        out.push(close);
    }

    /// What stands between two parts.
    fn between(&self, out: &mut String) {
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

/// The parts of a collection, old and new, in their new order.
#[derive(Default)]
pub(super) struct Parts(Vec<Part>);

enum Part {
    Keep(Range<usize>),
    Remove(Range<usize>),
    Insert(String),
}

impl Parts {
    pub(super) fn keep(&mut self, place: Range<usize>) {
        self.0.push(Part::Keep(place));
    }

    pub(super) fn remove(&mut self, place: Range<usize>) {
        self.0.push(Part::Remove(place));
    }

    pub(super) fn insert(&mut self, text: String) {
        self.0.push(Part::Insert(text));
    }

    /// The edits; `None` if nothing old stays. A part goes with the comma before it, the first one
    /// with the comma behind it.
    pub(super) fn edits(self, spacing: &Spacing) -> Option<Vec<(Range<usize>, String)>> {
        let first = self.0.iter().find_map(|part| match part {
            Part::Keep(place) => Some(place.start),
            _ => None,
        })?;
        let mut edits = Vec::new();
        let mut head = None;
        let mut kept: Option<usize> = None;
        for part in self.0 {
            match (part, kept) {
                (Part::Keep(place), _) => kept = Some(place.end),
                (Part::Remove(place), None) => head = head.or(Some(place.start)),
                (Part::Remove(place), Some(end)) => {
                    edits.push((end..place.end, String::new()));
                    kept = Some(place.end);
                }
                (Part::Insert(mut text), None) => {
                    spacing.between(&mut text);
                    edits.push((first..first, text));
                }
                (Part::Insert(text), Some(end)) => {
                    let mut new = String::new();
                    spacing.between(&mut new);
                    edits.push((end..end, new + &text));
                }
            }
        }
        if let Some(head) = head {
            edits.insert(0, (head..first, String::new()));
        }
        Some(edits)
    }
}
