//! Changes a document in its text: only the places that differ are written, in the style around
//! them. Comments, quotes and order stay.

#![expect(clippy::disallowed_types, reason = "configuration, manifests and objects from files")]

use std::ops::Range;

use serde_json::{Map, Value};

use crate::{
    Format, Options, json,
    marks::{Entry, Item, Kind, Node, Style, marks},
    places::Source,
    tree,
    writer::{self, KUBERNETES, Layout, Writer},
};

mod align;
mod flow;

use self::{
    align::{Step, align},
    flow::Spacing,
};

/// The text of a document with its value changed from `before` to `after`; `None` if that is not
/// possible in place, as where an anchor repeats what changes. The text that is returned reads as
/// `after`.
#[must_use]
pub fn edit(text: &str, format: Format, before: &Value, after: &Value) -> Option<String> {
    let root = marks(text, format)?;
    let mut editor = Editor {
        text,
        format,
        newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
        layout: layout(text, &root),
        edits: Vec::new(),
    };
    editor.node(&root, (before, after), Place::Root)?;
    let edited = editor.apply();
    (read(&edited, format).as_ref() == Some(after)).then_some(edited)
}

/// The text of a document as its value is written anew; the comments before its first node stay.
#[must_use]
pub fn rewrite(text: &str, format: Format, after: &Value) -> String {
    match format {
        Format::Json => {
            let spacing = Spacing::lines(String::new(), "  ".to_owned());
            let mut out = String::new();
            spacing.write(&mut out, after);
            out
        }
        Format::Yaml => {
            let is_comment = |line: &&str| line.trim().is_empty() || line.starts_with('#');
            let head: String = text.split_inclusive('\n').take_while(is_comment).collect();
            head + &writer::write(after)
        }
    }
}

fn read(text: &str, format: Format) -> Option<Value> {
    let options = Options::default();
    match format {
        Format::Json => Some(json::first(text, options.duplicate_keys)?.ok()?.0),
        Format::Yaml => tree::read(Source { text, lines_before: 0, ends_line: true }, options).ok(),
    }
}

/// Where a node hangs.
#[derive(Clone, Copy)]
enum Place<'n> {
    Root,
    /// In an entry of a mapping in block style, with the mapping's column.
    Entry(&'n Entry, usize),
    /// In an item of a list in block style, with the column of the dashes.
    Item(&'n Item, usize),
    /// In a collection in flow style.
    Flow(&'n Spacing),
}

struct Editor<'t> {
    text: &'t str,
    format: Format,
    newline: &'static str,
    layout: Layout,
    edits: Vec<(Range<usize>, String)>,
}

impl Editor<'_> {
    fn node(
        &mut self,
        node: &Node,
        (before, after): (&Value, &Value),
        place: Place<'_>,
    ) -> Option<()> {
        if before == after {
            return Some(());
        }
        match (&node.kind, before, after) {
            (Kind::Map(style, entries), Value::Object(before), Value::Object(after))
                if !entries.is_empty() && !after.is_empty() =>
            {
                match style {
                    Style::Block => self.map(entries, before, after),
                    Style::Flow => self.flow_map(node, entries, before, after),
                }
            }
            (Kind::List(style, items), Value::Array(before), Value::Array(after))
                if !items.is_empty() && !after.is_empty() =>
            {
                match style {
                    Style::Block => self.list(items, before, after, place),
                    Style::Flow => self.flow_list(node, items, before, after),
                }
            }
            _ => self.replace(node, after, place),
        }
    }

    fn map(
        &mut self,
        entries: &[Entry],
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Option<()> {
        let column = self.column(entries.first()?.start);
        for entry in entries {
            let Some(key) = &entry.key else { continue };
            match (before.get(key), after.get(key)) {
                (Some(before), Some(after)) => {
                    self.node(&entry.value, (before, after), Place::Entry(entry, column))?;
                }
                _ => self.remove_lines(entry.start, entry.value.end)?,
            }
        }
        let end = entries.last()?.value.end;
        let added = after.iter().filter(|(key, _)| !before.contains_key(*key));
        let mut lines = String::new();
        for (key, value) in added {
            self.writer(&mut lines).entry(key, value, column);
        }
        self.insert_lines(self.line_end(end), lines);
        Some(())
    }

    fn list(
        &mut self,
        items: &[Item],
        before: &[Value],
        after: &[Value],
        place: Place<'_>,
    ) -> Option<()> {
        let first = items.first()?;
        let column = self.column(first.start);
        // New items stand between the line of the key and the comments of the first item.
        let mut at = match place {
            Place::Entry(entry, _) => self.line_end(entry.after_colon),
            Place::Root => self.line_start(first.start),
            Place::Item(..) | Place::Flow(_) => return None,
        };
        if at > first.start || items.len() != before.len() {
            return None;
        }
        for step in align(before, after) {
            match step {
                Step::Keep(old, new) => {
                    let item = &items[old];
                    let values = (&before[old], &after[new]);
                    self.node(&item.value, values, Place::Item(item, column))?;
                    at = self.line_end(item.value.end);
                }
                Step::Remove(old) => {
                    let item = &items[old];
                    self.remove_lines(item.start, item.value.end)?;
                    at = self.line_end(item.value.end);
                }
                Step::Insert(new) => {
                    let mut lines = String::new();
                    self.writer(&mut lines).item(&after[new], column);
                    self.insert_lines(at, lines);
                }
            }
        }
        Some(())
    }

    /// Writes a node anew: a scalar, or a collection that becomes or stops being empty.
    fn replace(&mut self, node: &Node, after: &Value, place: Place<'_>) -> Option<()> {
        if node.has_properties {
            return None;
        }
        match place {
            Place::Root => return None,
            Place::Flow(spacing) => {
                let mut text = String::new();
                spacing.write(&mut text, after);
                self.edits.push((node.start..node.end, self.broken(text)));
            }
            Place::Entry(entry, column) => {
                let old = entry.after_colon..node.end;
                let mut text = String::new();
                if writer::is_nested(after) {
                    self.writer(&mut text).nested(after, column);
                    self.edits.push((old, String::new()));
                    self.insert_lines(self.line_end(node.end), text);
                } else {
                    text.push(' ');
                    self.writer(&mut text).inline(after);
                    self.edits.push((old, text));
                }
            }
            Place::Item(item, column) => {
                self.remove_lines(item.start, node.end)?;
                let mut lines = String::new();
                self.writer(&mut lines).item(after, column);
                self.insert_lines(self.line_end(node.end), lines);
            }
        }
        Some(())
    }

    fn flow_map(
        &mut self,
        node: &Node,
        entries: &[Entry],
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Option<()> {
        let spacing = self.spacing(node, entries.first()?.start);
        let mut parts = flow::Parts::default();
        for entry in entries {
            let place = entry.start..entry.value.end;
            match entry.key.as_ref().map(|key| (before.get(key), after.get(key))) {
                Some((Some(before), Some(after))) => {
                    self.node(&entry.value, (before, after), Place::Flow(&spacing))?;
                    parts.keep(place);
                }
                Some(_) => parts.remove(place),
                None => parts.keep(place),
            }
        }
        for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
            parts.insert(spacing.entry(key, value));
        }
        self.flow_edits(parts, &spacing)
    }

    fn flow_list(
        &mut self,
        node: &Node,
        items: &[Item],
        before: &[Value],
        after: &[Value],
    ) -> Option<()> {
        if items.len() != before.len() {
            return None;
        }
        let spacing = self.spacing(node, items.first()?.start);
        let mut parts = flow::Parts::default();
        for step in align(before, after) {
            match step {
                Step::Keep(old, new) => {
                    let value = &items[old].value;
                    self.node(value, (&before[old], &after[new]), Place::Flow(&spacing))?;
                    parts.keep(value.start..value.end);
                }
                Step::Remove(old) => parts.remove(items[old].start..items[old].value.end),
                Step::Insert(new) => parts.insert(spacing.item(&after[new])),
            }
        }
        self.flow_edits(parts, &spacing)
    }

    fn flow_edits(&mut self, parts: flow::Parts, spacing: &Spacing) -> Option<()> {
        for (place, text) in parts.edits(spacing)? {
            self.edits.push((place, self.broken(text)));
        }
        Some(())
    }

    fn spacing(&self, node: &Node, first: usize) -> Spacing {
        Spacing::of(self.text, self.format, node.start, first)
    }

    fn writer<'o>(&self, out: &'o mut String) -> Writer<'o> {
        Writer { out, layout: self.layout }
    }

    /// Removes whole lines, if nothing but blanks is before the first byte of content.
    fn remove_lines(&mut self, start: usize, end: usize) -> Option<()> {
        let place = self.line_start(start)..self.line_end(end);
        if !self.text[place.start..start].trim_matches(' ').is_empty() {
            return None;
        }
        self.edits.push((place, String::new()));
        Some(())
    }

    /// Inserts whole lines at the beginning of a line, or at the end of the text.
    fn insert_lines(&mut self, at: usize, mut lines: String) {
        if lines.is_empty() {
            return;
        }
        if at == self.text.len() && !self.text.ends_with('\n') {
            lines.pop();
            lines.insert(0, '\n');
        }
        self.edits.push((at..at, self.broken(lines)));
    }

    /// The lines with the line breaks of the document.
    fn broken(&self, lines: String) -> String {
        if self.newline == "\n" { lines } else { lines.replace('\n', self.newline) }
    }

    fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline + 1)
    }

    fn apply(mut self) -> String {
        self.edits.sort_by_key(|(place, _)| place.start);
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for (place, text) in &self.edits {
            out.push_str(self.text.get(at..place.start).unwrap_or_default());
            out.push_str(text);
            at = at.max(place.end);
        }
        out.push_str(&self.text[at..]);
        if !self.text.ends_with('\n') && out.ends_with(self.newline) {
            out.truncate(out.len() - self.newline.len());
        }
        out
    }
}

/// The layout of a document: that of its first mapping in a mapping and its first list in a mapping.
fn layout(text: &str, root: &Node) -> Layout {
    let mut found = Found::default();
    found.search(text, root);
    let step = found.step.unwrap_or(KUBERNETES.step);
    Layout { step, list_step: found.list_step.unwrap_or(KUBERNETES.list_step) }
}

#[derive(Default)]
struct Found {
    step: Option<usize>,
    list_step: Option<usize>,
}

impl Found {
    fn search(&mut self, text: &str, node: &Node) {
        if self.step.is_some() && self.list_step.is_some() {
            return;
        }
        match &node.kind {
            Kind::Map(Style::Block, entries) => {
                for entry in entries {
                    self.measure(text, entry);
                    self.search(text, &entry.value);
                }
            }
            Kind::List(Style::Block, items) => {
                for item in items {
                    self.search(text, &item.value);
                }
            }
            _ => {}
        }
    }

    fn measure(&mut self, text: &str, entry: &Entry) {
        let column = |at: usize| at - text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let (step, inside) = match &entry.value.kind {
            Kind::Map(Style::Block, entries) => {
                (&mut self.step, entries.first().map(|it| it.start))
            }
            Kind::List(Style::Block, items) => {
                (&mut self.list_step, items.first().map(|it| it.start))
            }
            _ => return,
        };
        let depth = inside.and_then(|inside| column(inside).checked_sub(column(entry.start)));
        *step = step.or(depth);
    }
}

#[cfg(test)]
mod tests;
