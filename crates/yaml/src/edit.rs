//! Changes a document in its text: only the places that differ are written, in the style around
//! them. Comments, quotes and order stay.

use std::{collections::HashMap, ops::Range};

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::{
    Format, Options, json,
    marks::{Entry, Item, Kind, Node, Style, marks},
    places::Source,
    stream::stream,
    tree,
    writer::{self, Layout, Writer},
};

mod align;
mod flow;
mod items;
mod layout;
mod lines;
mod parts;

pub use self::items::ItemEditor;
use self::{
    align::{Step, align},
    flow::Spacing,
    layout::layout,
    parts::Parts,
};

/// The text of a document with its value changed from `before` to `after`; `None` if that is not
/// possible in place, as where an anchor repeats what changes. The text that is returned reads as
/// `after`.
#[must_use]
pub fn edit(text: &str, format: Format, before: &Value, after: &Value) -> Option<String> {
    if format == Format::Json && json::is_too_deep(text) {
        return None;
    }
    if let Some(place) = json_in(text).filter(|_| format == Format::Yaml) {
        let edited = edit(&text[place.clone()], Format::Json, before, after)?;
        let edited = [&text[..place.start], &edited, &text[place.end..]].concat();
        return (read(&edited, format).as_ref() == Some(after)).then_some(edited);
    }
    let root = marks(text, format)?;
    let mut editor = Editor {
        text,
        format,
        newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
        layout: layout(text, &root),
        wide_colons: match &root.kind {
            Kind::Map(_, entries) => {
                entries.first().is_some_and(|entry| text[entry.after_colon..].starts_with(' '))
            }
            _ => false,
        },
        edits: Vec::new(),
    };
    editor.node(&root, before, after, Place::Root)?;
    let edited = editor.apply();
    (read(&edited, format).as_ref() == Some(after)).then_some(edited)
}

/// The place of the value, if a document of YAML is JSON.
pub(crate) fn json_in(text: &str) -> Option<Range<usize>> {
    let content = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let start = text.len() - content.len();
    let content = content.trim_end();
    let is_json = content.starts_with('{') && serde_json::from_str::<IgnoredAny>(content).is_ok();
    is_json.then_some(start..start + content.len())
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
        // Where a stream begins, it may be JSON now, with text after it that YAML ignores.
        Format::Yaml if text.trim_start().starts_with('{') => {
            let mut documents = stream(text, options);
            let first = documents.next()?.ok()?;
            documents.next().is_none().then_some(first.value)
        }
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
    /// In JSON, whether a blank follows a colon.
    wide_colons: bool,
    edits: Vec<(Range<usize>, String)>,
}

impl Editor<'_> {
    fn node(&mut self, node: &Node, before: &Value, after: &Value, place: Place<'_>) -> Option<()> {
        if before == after {
            return Some(());
        }
        let edits = self.edits.len();
        let inside = match (&node.kind, before, after) {
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
            _ => None,
        };
        inside.or_else(|| {
            self.edits.truncate(edits);
            // It may have comments that would go with it.
            let parts = matches!(node.kind, Kind::Map(..) | Kind::List(..));
            let may = parts && self.text[node.start..node.end].contains('#');
            if may && writer::is_nested(after) { None } else { self.replace(node, after, place) }
        })
    }

    fn map(
        &mut self,
        entries: &[Entry],
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Option<()> {
        let first = entries.first()?.start;
        let column = self.column(first);
        let mut rest = entries;
        if !self.begins_line(first) {
            // The first entry is behind a dash: the first one that stays comes there.
            let stays =
                |entry: &Entry| entry.key.as_ref().is_none_or(|key| after.contains_key(key));
            let gone = entries.iter().position(stays)?;
            if gone > 0 {
                self.edits.push((first..entries[gone].start, String::new()));
            }
            rest = &entries[gone..];
        }
        let last = last_of_each_key(entries);
        for entry in rest {
            let Some(key) = &entry.key else { continue };
            match (before.get(key), after.get(key)) {
                (Some(_), Some(_)) if last[key.as_str()] != entry.start => {}
                (Some(before), Some(after)) => {
                    self.node(&entry.value, before, after, Place::Entry(entry, column))?;
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
        self.insert_lines(self.behind(end, column), lines);
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
            Place::Entry(entry, _) => Some(self.line_end(entry.after_colon)),
            Place::Root => Some(self.line_start(first.start)),
            Place::Item(..) | Place::Flow(_) => None,
        };
        at = at.filter(|&at| at <= first.start);
        if items.len() != before.len() {
            return None;
        }
        for step in align(before, after) {
            match step {
                Step::Keep(old, new) => {
                    let item = &items[old];
                    let place = Place::Item(item, column);
                    self.node(&item.value, &before[old], &after[new], place)?;
                    at = Some(self.behind(item.value.end, column));
                }
                Step::Remove(old) => {
                    let item = &items[old];
                    self.remove_lines(item.start, item.value.end)?;
                    at = Some(self.line_end(item.value.end));
                }
                Step::Insert(new) => {
                    let mut lines = String::new();
                    self.writer(&mut lines).item(&after[new], column);
                    self.insert_lines(at?, lines);
                }
            }
        }
        Some(())
    }

    /// Writes a node anew: a scalar, or a collection that becomes or stops being empty.
    fn replace(&mut self, node: &Node, after: &Value, place: Place<'_>) -> Option<()> {
        match place {
            Place::Root => return None,
            _ if node.has_properties => {
                // Behind its anchor or tag.
                let old = &self.text[node.start..node.end];
                if old.is_empty() || old.starts_with(['|', '>']) {
                    return None;
                }
                let mut text = String::new();
                Spacing::new(self.format, (true, true), None).write(&mut text, after);
                self.edits.push((node.start..node.end, text));
            }
            Place::Flow(spacing) => {
                let mut text = String::new();
                spacing.write(&mut text, after);
                self.edits.push((node.start..node.end, self.broken(text)));
            }
            Place::Entry(entry, column) => {
                // A comment may be between the key and the value.
                let comment = self.text[entry.after_colon..node.start].contains('#');
                let start = if comment { node.start } else { entry.after_colon };
                let mut text = String::new();
                if writer::is_nested(after) {
                    self.writer(&mut text).nested(after, column);
                    self.edits.push((start..node.end, String::new()));
                    self.insert_lines(self.line_end(node.end), text);
                } else {
                    text.push_str(if comment { "" } else { " " });
                    self.writer(&mut text).inline(after);
                    self.edits.push((start..node.end, text));
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
        let places = entries.iter().map(|entry| entry.start..entry.value.end).collect();
        let mut parts = Parts::of(self.text, node, places)?;
        let colon = self.text[entries.first()?.after_colon..].starts_with([' ', '\n', '\r']);
        let spacing = parts.spacing(self.format, colon);
        let last = last_of_each_key(entries);
        for (index, entry) in entries.iter().enumerate() {
            let Some(key) = &entry.key else {
                parts.keep(index);
                continue;
            };
            match (before.get(key), after.get(key)) {
                (Some(before), Some(after)) => {
                    if last[key.as_str()] == entry.start {
                        self.node(&entry.value, before, after, Place::Flow(&spacing))?;
                    }
                    parts.keep(index);
                }
                _ => parts.remove(index),
            }
        }
        for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
            parts.insert(spacing.entry(key, value));
        }
        self.flow_edits(&parts, &spacing)
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
        let places = items.iter().map(|item| item.start..item.value.end).collect();
        let mut parts = Parts::of(self.text, node, places)?;
        let spacing = parts.spacing(self.format, self.wide_colons);
        for step in align(before, after) {
            match step {
                Step::Keep(old, new) => {
                    let value = &items[old].value;
                    self.node(value, &before[old], &after[new], Place::Flow(&spacing))?;
                    parts.keep(old);
                }
                Step::Remove(old) => parts.remove(old),
                Step::Insert(new) => parts.insert(spacing.item(&after[new])),
            }
        }
        self.flow_edits(&parts, &spacing)
    }

    fn flow_edits(&mut self, parts: &Parts<'_>, spacing: &Spacing) -> Option<()> {
        for (place, text) in parts.edits(spacing)? {
            self.edits.push((place, self.broken(text)));
        }
        Some(())
    }

    fn writer<'o>(&self, out: &'o mut String) -> Writer<'o> {
        Writer { out, layout: self.layout }
    }
}

/// Where the last entry of each key is: if a key is written twice, the last one counts.
fn last_of_each_key(entries: &[Entry]) -> HashMap<&str, usize> {
    entries.iter().filter_map(|entry| Some((entry.key.as_deref()?, entry.start))).collect()
}

#[cfg(test)]
mod tests;
