//! Lines of the text that is edited.

use super::Editor;
use crate::places::line_start;

const BYTE_ORDER_MARK: &str = "\u{feff}";

impl Editor<'_> {
    /// Removes whole lines, if nothing but blanks is before the first byte of content.
    pub(super) fn remove_lines(&mut self, start: usize, end: usize) -> Option<()> {
        if !self.begins_line(start) {
            return None;
        }
        self.edits.push((self.line_start(start)..self.line_end(end), String::new()));
        Some(())
    }

    /// Inserts whole lines at the beginning of a line, or at the end of the text.
    pub(super) fn insert_lines(&mut self, at: usize, mut lines: String) {
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
    pub(super) fn broken(&self, lines: String) -> String {
        if self.newline == "\n" { lines } else { lines.replace('\n', self.newline) }
    }

    /// Whether only blanks are before a byte in its line.
    pub(super) fn begins_line(&self, at: usize) -> bool {
        self.text[self.line_start(at)..at].bytes().all(|byte| byte == b' ')
    }

    pub(super) fn column(&self, at: usize) -> usize {
        at - self.line_start(at)
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        let mark = if self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        line_start(self.text, at).max(mark.min(at))
    }

    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |newline| at + newline + 1)
    }

    /// Where lines at a column may follow a node: behind its last line, and behind the comments that
    /// are deeper, since they are part of the node.
    pub(super) fn behind(&self, end: usize, column: usize) -> usize {
        let mut behind = self.line_end(end);
        let mut at = behind;
        while at < self.text.len() {
            let next = self.line_end(at);
            let line = &self.text[at..next];
            let content = line.trim_start_matches(' ');
            if content.starts_with('#') && line.len() - content.len() > column {
                behind = next;
            } else if !content.trim().is_empty() {
                break;
            }
            at = next;
        }
        behind
    }

    /// The text with all edits.
    pub(super) fn apply(mut self) -> String {
        // The sort is stable: insertions at one place stay in the order in which they were made.
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
