//! Block style.

use std::fmt::Write as _;

use crate::generator::random::Random;
use serde_json::{Map, Value};

use super::flow;

/// A document in a style of its own.
pub(super) fn document(random: &mut Random, value: &Value) -> String {
    let step = random.pick(&[2, 2, 2, 4, 3, 1]);
    let style = Style {
        step,
        list_step: random.pick(&[0, 0, 2, step]),
        mixed: random.percent(10),
        comments: random.pick(&[0, 10, 40]),
        flow: random.pick(&[0, 10, 30]),
        anchors: random.percent(15),
    };
    let mut writer = Writer { random, style, out: String::new(), comments: 0, labels: None };
    if writer.random.percent(10) {
        writer.out.push('\u{feff}');
    }
    if writer.random.percent(30) {
        writer.comment_line(0);
        writer.comment_line(0);
    }
    let Value::Object(map) = value else { unreachable!("a manifest must be a mapping") };
    writer.map(map, 0, false);
    if writer.random.percent(20) {
        writer.out.push('\n');
        writer.comment_line(0);
    }
    writer.out
}

#[derive(Clone, Copy)]
struct Style {
    step: usize,
    list_step: usize,
    /// Each collection has its own indentation.
    mixed: bool,
    /// Comments, in percent of the lines.
    comments: usize,
    /// Collections in flow style, in percent.
    flow: usize,
    anchors: bool,
}

struct Writer<'r> {
    random: &'r mut Random,
    style: Style,
    out: String,
    comments: usize,
    /// The value of the anchor `labels`.
    labels: Option<Value>,
}

impl Writer<'_> {
    fn comment(&mut self) -> String {
        self.comments += 1;
        format!("# c{}", self.comments)
    }

    fn comment_line(&mut self, column: usize) {
        let comment = self.comment();
        writeln!(self.out, "{}{comment}", " ".repeat(column)).expect("a String must grow");
    }

    /// Comments and empty lines before a line at this column.
    fn between(&mut self, column: usize) {
        if self.random.percent(self.style.comments / 2) {
            let column = if self.random.percent(70) { column } else { self.random.below(9) };
            self.comment_line(column);
        }
        if self.random.percent(3) {
            self.out.push('\n');
        }
    }

    /// The end of a line.
    fn end(&mut self) {
        if self.random.percent(self.style.comments / 2) {
            let comment = self.comment();
            self.out += self.random.pick(&[" ", "  "]);
            self.out += &comment;
        } else if self.random.percent(3) {
            self.out += "  ";
        }
        self.out.push('\n');
    }

    fn pad(&mut self, column: usize) {
        self.out += &" ".repeat(column);
    }

    fn step(&mut self) -> usize {
        if self.style.mixed { self.random.between(1, 4) } else { self.style.step }
    }

    /// Entries at a column; the first one in the line that has begun, if it is open.
    fn map(&mut self, map: &Map<String, Value>, column: usize, mut open: bool) {
        let merged = self.merged(map);
        if !merged.is_empty() {
            if !std::mem::take(&mut open) {
                self.pad(column);
            }
            self.out += "<<: *labels";
            self.end();
        }
        for (key, value) in map.iter().filter(|(key, _)| !merged.contains(key)) {
            if !std::mem::take(&mut open) {
                self.between(column);
                self.pad(column);
            }
            self.out += &flow::scalar(self.random, &Value::from(key.as_str()));
            self.out.push(':');
            self.value(Some(key), value, column);
        }
    }

    /// The keys that the anchor `labels` brings, if not all.
    fn merged(&self, map: &Map<String, Value>) -> Vec<String> {
        let Some(Value::Object(labels)) = &self.labels else { return Vec::new() };
        let all = labels.iter().all(|(key, value)| map.get(key) == Some(value));
        let some = all && labels.len() < map.len();
        if some { labels.keys().cloned().collect() } else { Vec::new() }
    }

    /// What follows a colon or a dash.
    fn value(&mut self, key: Option<&str>, value: &Value, column: usize) {
        if self.style.anchors && matches!(key, Some("labels" | "matchLabels" | "env" | "ports")) {
            if self.labels.as_ref() == Some(value) {
                self.out += " *labels";
                return self.end();
            }
            if self.labels.is_none() && !value.is_null() {
                self.labels = Some(value.clone());
                self.out += " &labels";
            }
        }
        match value {
            Value::Object(map) if !map.is_empty() && !self.random.percent(self.style.flow) => {
                self.end();
                let step = self.step();
                self.map(map, column + step, false);
            }
            Value::Array(items) if !items.is_empty() && !self.random.percent(self.style.flow) => {
                self.end();
                let deeper =
                    if self.style.mixed { self.random.below(3) } else { self.style.list_step };
                // Only in a mapping may dashes stand at its column.
                let deeper = if key.is_none() { deeper.max(1) } else { deeper };
                self.list(items, column + deeper);
            }
            Value::Array(_) | Value::Object(_) => {
                let Self { random, comments, .. } = self;
                let mut comment = |_: &mut Random| {
                    *comments += 1;
                    format!("# c{comments}")
                };
                let text = flow::collection(random, value, column, &mut comment);
                self.out.push(' ');
                self.out += &text;
                self.end();
            }
            Value::Null if self.random.percent(50) => self.end(),
            Value::String(text) if text.contains('\n') && self.random.percent(70) => {
                self.block_scalar(text, column);
            }
            value => {
                self.out += self.random.pick(
                    &[" ", " ", " ", "  ", " !!str "][..if value.is_string() { 5 } else { 4 }],
                );
                self.out += &flow::scalar(self.random, value);
                self.end();
            }
        }
    }

    fn list(&mut self, items: &[Value], column: usize) {
        for item in items {
            self.between(column);
            self.pad(column);
            self.out.push('-');
            match item {
                Value::Object(map) if !map.is_empty() && !self.random.percent(self.style.flow) => {
                    if self.random.percent(5) {
                        self.end();
                        let step = self.step();
                        self.map(map, column + step, false);
                    } else {
                        let gap = self.random.pick(&[1, 1, 1, 1, 3]);
                        self.pad(gap);
                        self.map(map, column + 1 + gap, true);
                    }
                }
                item => self.value(None, item, column),
            }
        }
    }

    /// Lines of a text behind a header, deeper than the column.
    fn block_scalar(&mut self, text: &str, column: usize) {
        let breaks = text.len() - text.trim_end_matches('\n').len();
        let body = text.trim_end_matches('\n');
        let deeper = self.random.between(1, 4);
        let folds = !body.split('\n').any(|line| line.starts_with(' ') || line.is_empty());
        let (sign, body) = if self.random.percent(30) && folds {
            (">", body.replace('\n', "\n\n"))
        } else {
            ("|", body.to_owned())
        };
        let digit = if body.starts_with([' ', '\n']) || self.random.percent(10) {
            deeper.to_string()
        } else {
            String::new()
        };
        let chomp = match breaks {
            0 => "-",
            1 => self.random.pick(&["", "+"]),
            _ => "+",
        };
        self.out += " ";
        let digit_first = self.random.percent(50);
        let signs = if digit_first { [sign, &digit, chomp] } else { [sign, chomp, &digit] };
        self.out += &signs.concat();
        self.end();
        for line in body.split('\n') {
            if !line.is_empty() {
                self.pad(column + deeper);
            }
            self.out += line;
            self.out.push('\n');
        }
        let kept = if chomp == "+" { breaks - 1 } else { self.random.pick(&[0, 0, 0, 2]) };
        self.out += &"\n".repeat(kept);
    }
}
