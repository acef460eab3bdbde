//! The parts of a collection in flow style, old and new. Comments stay with the part before them in
//! their line, or before the part that follows them.

use std::ops::Range;

use super::flow::Spacing;
use crate::{Format, marks::Node, places::line_start};

/// The parts in their new order.
pub(super) struct Parts<'t> {
    text: &'t str,
    /// Behind the bracket that opens, and before the one that closes.
    inside: Range<usize>,
    old: Vec<Range<usize>>,
    new: Vec<Part>,
}

enum Part {
    Keep(usize),
    Remove(usize),
    Insert(String),
}

type Edits = Vec<(Range<usize>, String)>;

impl<'t> Parts<'t> {
    /// Those of a collection with these places; `None` if it has no brackets.
    pub(super) fn of(text: &'t str, node: &Node, old: Vec<Range<usize>>) -> Option<Self> {
        let inside = node.start + 1..node.end.checked_sub(1)?;
        let brackets = text[node.start..].starts_with(['[', '{'])
            && text.get(inside.end..)?.starts_with([']', '}']);
        brackets.then_some(Self { text, inside, old, new: Vec::new() })
    }

    pub(super) fn keep(&mut self, index: usize) {
        self.new.push(Part::Keep(index));
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.new.push(Part::Remove(index));
    }

    pub(super) fn insert(&mut self, text: String) {
        self.new.push(Part::Insert(text));
    }

    /// What stands between the parts; in YAML, a blank is behind each colon.
    pub(super) fn spacing(&self, format: Format, wide_colons: bool) -> Spacing {
        let colon = format == Format::Yaml || wide_colons;
        let lines = self.lines();
        let comma = match self.old.get(1) {
            Some(second) => !self.text[..second.start].ends_with(','),
            None => colon,
        };
        Spacing::new(format, (colon, comma), lines)
    }

    fn lines(&self) -> Option<(String, String)> {
        let first = self.old.first()?.start;
        if !self.text[self.inside.start..first].contains('\n') {
            return None;
        }
        let (outer, inner) = (self.indent(self.inside.start), self.indent(first));
        let unit = inner.strip_prefix(outer).filter(|unit| !unit.is_empty()).unwrap_or("  ");
        Some((inner.to_owned(), unit.to_owned()))
    }

    fn indent(&self, at: usize) -> &'t str {
        let line = &self.text[line_start(self.text, at)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// The edits; `None` if nothing old stays.
    pub(super) fn edits(&self, spacing: &Spacing) -> Option<Edits> {
        let first = self.new.iter().find_map(|part| match part {
            Part::Keep(index) => Some(*index),
            _ => None,
        })?;
        let mut edits = Vec::new();
        let mut last = None;
        let mut kept = false;
        let mut comma = false;
        // The first of the parts that go together.
        let mut run = None;
        for (at, part) in self.new.iter().enumerate() {
            match part {
                Part::Keep(index) => {
                    kept = true;
                    last = Some(*index);
                    comma = false;
                }
                Part::Remove(index) => {
                    let first = *run.get_or_insert(*index);
                    if !matches!(self.new.get(at + 1), Some(Part::Remove(_))) {
                        self.cut(&mut edits, first, *index, kept);
                        run = None;
                    }
                    last = Some(*index);
                    comma = false;
                }
                Part::Insert(text) => match last.filter(|_| kept) {
                    Some(last) => {
                        edits.extend(self.insert_behind(last, text, spacing, comma));
                        comma = true;
                    }
                    None => edits.push(self.insert_before(first, last, text, spacing)),
                },
            }
        }
        Some(edits)
    }

    /// Parts go with the comma before them, and if none before them stays, with that behind them.
    fn cut(&self, edits: &mut Edits, first: usize, last: usize, kept: bool) {
        let place = self.old[first].start..self.old[last].end;
        let before = self.before(first);
        let after = place.end..self.next(last);
        let comment = |gap: &Range<usize>| self.text[gap.clone()].contains('#');
        if !comment(if kept { &before } else { &after }) {
            let cut = if kept { before.start..place.end } else { place.start..after.end };
            edits.push((cut, String::new()));
            return;
        }
        // Whole lines, with their comments and one comma; the comments before them stay.
        let start = self.text[..place.start].trim_end_matches([' ', '\t']).len();
        let start = match self.text[..start].strip_suffix('\n') {
            Some(lines) => lines.strip_suffix('\r').unwrap_or(lines).len(),
            None => place.start,
        };
        let line = self.line(after.clone());
        let comma = self.comma(line.clone());
        let end = if self.text[line.clone()].contains('#') {
            line.end
        } else {
            comma.map_or(place.end, |comma| comma + 1)
        };
        edits.push((start..end, String::new()));
        if let Some(comma) = comma.xor(self.comma(before)).filter(|comma| *comma < place.start) {
            edits.push((comma..comma + 1, String::new()));
        }
    }

    fn insert_before(
        &self,
        first: usize,
        removed: Option<usize>,
        text: &str,
        spacing: &Spacing,
    ) -> (Range<usize>, String) {
        let start = self.old[first].start;
        let gap = self.inside.start..start;
        if let Some(indent) = spacing.indent()
            && removed.is_none()
            && self.text[gap.clone()].contains('#')
        {
            let at = self.line(gap).end;
            return (at..at, format!("\n{indent}{text},"));
        }
        let mut text = text.to_owned();
        spacing.between(&mut text);
        (start..start, text)
    }

    /// Behind a part; behind the comment in its line if it has one. `comma` says whether a comma was
    /// put before that comment.
    fn insert_behind(&self, last: usize, text: &str, spacing: &Spacing, comma: bool) -> Edits {
        let end = self.old[last].end;
        let line = self.line(end..self.next(last));
        if !self.text[line.clone()].contains('#') {
            let mut new = String::new();
            spacing.between(&mut new);
            return vec![(end..end, new + text)];
        }
        let spaces = || " ".repeat(self.indent(end).len() + 2);
        let indent = spacing.indent().map_or_else(spaces, str::to_owned);
        let behind = line.end..line.end;
        if self.comma(line).is_some() {
            vec![(behind, format!("\n{indent}{text},"))]
        } else if comma {
            vec![(behind, format!(",\n{indent}{text}"))]
        } else {
            vec![(end..end, ",".to_owned()), (behind, format!("\n{indent}{text}"))]
        }
    }

    /// Between a part and the one before it.
    fn before(&self, index: usize) -> Range<usize> {
        let start = index.checked_sub(1).map_or(self.inside.start, |index| self.old[index].end);
        start..self.old[index].start
    }

    /// Where the next part begins, or the closing bracket is.
    fn next(&self, index: usize) -> usize {
        self.old.get(index + 1).map_or(self.inside.end, |next| next.start)
    }

    /// The gap up to the end of its first line.
    fn line(&self, gap: Range<usize>) -> Range<usize> {
        let text = &self.text[gap.clone()];
        let line = text.find('\n').map_or(text, |at| &text[..at]);
        gap.start..gap.start + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// The comma in a gap that is not in a comment.
    fn comma(&self, gap: Range<usize>) -> Option<usize> {
        let mut at = gap.start;
        for line in self.text[gap].split_inclusive('\n') {
            let code = line.find('#').map_or(line, |comment| &line[..comment]);
            if let Some(comma) = code.find(',') {
                return Some(at + comma);
            }
            at += line.len();
        }
        None
    }
}
