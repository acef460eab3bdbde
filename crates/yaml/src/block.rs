//! Reads the plain YAML that templates write, in a fifth of the parser's time: block mappings and
//! lists, one-line scalars, literal scalars (`|`, `|-`), flow mappings with a line for each entry, ASCII.
//!
//! Any other text is left to the parser. What is read here has the value that the parser would find:
//! `tests` compares both.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::{
    Limits, Problem,
    scalar::{self, Scalar},
};

/// Lists and mappings inside of one another that are read here.
// Each level is a call; a deeper text may be read by the parser, which has a stack of its own.
const MAX_DEPTH: usize = 50;

/// Bytes of a key. YAML has a limit, at 1,024 characters.
const MAX_KEY_BYTES: usize = 512;

/// Keys of a usual mapping, for the first allocation.
const USUAL_KEYS: usize = 4;

/// The value of a document; `None` if the parser has to read it. The error is that it has too many nodes.
pub(crate) fn read(text: &str, limits: Limits) -> Option<Result<Value, Problem>> {
    let is_plain = |byte: u8| matches!(byte, b'\n' | b' '..=b'~');
    if !text.bytes().all(is_plain) {
        return None;
    }
    let lines: Vec<_> = text.lines().map(Line::of).collect();
    // There may be a second document, which the parser knows to refuse or to leave.
    if lines.iter().any(|line| line.indent == 0 && is_marker(line.text)) {
        return None;
    }
    let mut reader =
        Reader { lines, at: 0, ends_line: text.ends_with('\n'), nodes_left: Some(limits.nodes) };
    let indent = reader.peek()?.indent;
    // The document and its root are counted.
    let value = reader.count(2).and_then(|()| reader.block(indent, 0));
    if reader.nodes_left.is_none() {
        return Some(Err(limits.too_many_nodes(reader.at + 1, 1)));
    }
    value.filter(|_| reader.peek().is_none()).map(Ok)
}

/// Whether a line may begin or end a document, or is a directive.
fn is_marker(line: &str) -> bool {
    line.starts_with("---") || line.starts_with("...") || line.starts_with('%')
}

#[derive(Clone, Copy)]
struct Line<'t> {
    /// How many spaces are before the text.
    indent: usize,
    /// The rest, with the spaces at its end.
    text: &'t str,
}

impl<'t> Line<'t> {
    fn of(line: &'t str) -> Self {
        let text = line.trim_start_matches(' ');
        Self { indent: line.len() - text.len(), text }
    }

    /// The text after the hyphen of an item of a list, and its indent.
    fn item(self) -> Option<Self> {
        let rest = self.text.strip_prefix('-')?;
        let text = rest.trim_start_matches(' ');
        let is_item = text.len() < rest.len() && !text.is_empty();
        is_item.then(|| Self { indent: self.indent + self.text.len() - text.len(), text })
    }
}

struct Reader<'t> {
    lines: Vec<Line<'t>>,
    at: usize,
    /// Whether a line break ends the text.
    ends_line: bool,
    /// How many nodes may still be read; `None` if there was one too many.
    nodes_left: Option<usize>,
}

impl<'t> Reader<'t> {
    /// Counts nodes as the parser does; `None` if there are too many.
    fn count(&mut self, nodes: usize) -> Option<()> {
        self.nodes_left = self.nodes_left?.checked_sub(nodes);
        self.nodes_left.map(|_| ())
    }

    /// The next line that is neither blank nor a comment.
    fn peek(&mut self) -> Option<Line<'t>> {
        let is_text = |line: &Line<'_>| !line.text.is_empty() && !line.text.starts_with('#');
        while !is_text(self.lines.get(self.at)?) {
            self.at += 1;
        }
        self.lines.get(self.at).copied()
    }

    /// A list or mapping whose lines have this indent.
    fn block(&mut self, indent: usize, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()?.item() {
            Some(_) => self.list(indent, depth),
            None => self.mapping(indent, depth),
        }
    }

    fn list(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent) {
            let Some(item) = line.item() else { break };
            self.count(1)?;
            if item.item().is_some() || split_key(item.text)?.is_some() {
                *self.lines.get_mut(self.at)? = item;
                items.push(self.block(item.indent, depth + 1)?);
            } else {
                self.at += 1;
                items.push(self.scalar(item.text, indent)?);
            }
        }
        self.must_leave(indent)?;
        Some(Value::Array(items))
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut map = Map::with_capacity(USUAL_KEYS);
        while let Some(line) = self.peek().filter(|line| line.indent == indent) {
            // A list at the indent of its key belongs to the mapping around it.
            if line.text.starts_with("- ") && !map.is_empty() {
                break;
            }
            let (key, value) = split_key(line.text)??;
            self.count(2)?;
            self.at += 1;
            let value = match value {
                "" => self.nested(indent, depth)?,
                "|" => Value::String(self.literal(indent)? + "\n"),
                "|-" => Value::String(self.literal(indent)?),
                "{" => self.flow(indent)?,
                text => self.scalar(text, indent)?,
            };
            // A duplicate key is left to the parser, which has the words and the place of the
            // problem.
            if map.insert(key.to_owned(), value).is_some() {
                return None;
            }
        }
        self.must_leave(indent)?;
        Some(Value::Object(map))
    }

    /// The value of a key with nothing behind it.
    fn nested(&mut self, indent: usize, depth: usize) -> Option<Value> {
        match self.peek() {
            Some(line) if line.indent > indent => self.block(line.indent, depth + 1),
            Some(line) if line.indent == indent && line.item().is_some() => {
                self.list(indent, depth + 1)
            }
            _ => Some(Value::Null),
        }
    }

    /// No line after a block is deeper than it.
    fn must_leave(&mut self, indent: usize) -> Option<()> {
        self.peek().is_none_or(|line| line.indent <= indent).then_some(())
    }

    /// A scalar of one line, in a block of this indent.
    fn scalar(&mut self, text: &str, indent: usize) -> Option<Value> {
        self.must_leave(indent)?;
        let text = text.trim_end_matches(' ');
        match text.chars().next()? {
            quote @ ('"' | '\'') => quoted(text, quote),
            '{' if text == "{}" => Some(Value::Object(Map::new())),
            '[' if text == "[]" => Some(Value::Array(Vec::new())),
            first if begins_plain(first) => plain(text),
            _ => None,
        }
    }

    /// A flow mapping of scalars with an entry in each line, after the line with its brace.
    fn flow(&mut self, indent: usize) -> Option<Value> {
        let mut map = Map::new();
        let mut is_separated = true;
        loop {
            let line = self.peek()?;
            self.at += 1;
            let text = line.text.trim_end_matches(' ');
            // The brace that closes may stand at the indent of its key.
            if text == "}" && line.indent >= indent {
                self.must_leave(indent)?;
                return Some(Value::Object(map));
            }
            let entry = text.strip_suffix(',');
            (is_separated && line.indent > indent).then_some(())?;
            is_separated = entry.is_some();
            let (key, value) = split_key(entry.unwrap_or(text))??;
            self.count(2)?;
            let value = match value.strip_prefix('"') {
                Some(_) => quoted(value, '"')?,
                None if value.bytes().all(is_plain_in_flow) => plain(value)?,
                None => return None,
            };
            if map.insert(key.to_owned(), value).is_some() {
                return None;
            }
        }
    }

    /// The lines of a literal scalar without the last line break.
    fn literal(&mut self, indent: usize) -> Option<String> {
        let first = *self.lines.get(self.at)?;
        if first.indent <= indent || first.text.is_empty() {
            return None;
        }
        let mut literal = String::new();
        let mut breaks = 0;
        while let Some(line) = self.lines.get(self.at) {
            if line.text.is_empty() {
                // Spaces beyond the indent are text.
                (line.indent <= first.indent).then_some(())?;
            } else if line.indent < first.indent {
                break;
            } else {
                literal.extend(std::iter::repeat_n('\n', breaks));
                literal.extend(std::iter::repeat_n(' ', line.indent - first.indent));
                literal.push_str(line.text);
                breaks = 0;
            }
            breaks += 1;
            self.at += 1;
        }
        // Without a line break at its end, the last line has rules of its own.
        let is_ended = self.ends_line || self.at < self.lines.len();
        self.must_leave(indent)?;
        is_ended.then_some(literal)
    }
}

/// The key of a line and what is behind it; `None` inside if the line has no key. `None` if the parser
/// has to read the line.
#[expect(clippy::option_option, reason = "the outer one leaves the text to the parser")]
fn split_key(line: &str) -> Option<Option<(&str, &str)>> {
    let line = line.trim_end_matches(' ');
    if line.starts_with(['"', '\'']) {
        // A quoted key, or a quoted text that may hold a colon.
        return end_of_key(line).is_none().then_some(None);
    }
    let end = end_of_key(line);
    let Some(end) = end else { return Some(None) };
    let (key, rest) = line.split_at(end);
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let is_key = key.len() <= MAX_KEY_BYTES
        && key.starts_with(|c: char| c.is_ascii_alphanumeric())
        && key.chars().all(is_word)
        && matches!(scalar::plain(key), Scalar::Text(_));
    is_key.then(|| Some((key, rest[1..].trim_start_matches(' '))))
}

/// Where the colon after a key is: before a space or at the end.
fn end_of_key(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let colons = bytes.iter().enumerate().filter(|(_, byte)| **byte == b':');
    let mut ends = colons.map(|(at, _)| at);
    ends.find(|at| matches!(bytes.get(at + 1), None | Some(b' ')))
}

/// A quoted text without escapes.
fn quoted(text: &str, quote: char) -> Option<Value> {
    let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.contains([quote, '\\'])).then(|| Value::from(inside))
}

fn is_plain_in_flow(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./".contains(&byte)
}

fn begins_plain(first: char) -> bool {
    first.is_ascii_alphanumeric() || "/._$(-".contains(first)
}

fn plain(text: &str) -> Option<Value> {
    let is_other = text == "-"
        || text.starts_with("- ")
        || end_of_key(text).is_some()
        || text.as_bytes().array_windows().any(|pair| pair == b" #");
    if is_other {
        return None;
    }
    match scalar::plain(text) {
        Scalar::Null => Some(Value::Null),
        Scalar::Bool(flag) => Some(flag.into()),
        Scalar::Int(number) => Some(number.into()),
        Scalar::Text(_) => Some(text.into()),
        // Their text in JSON depends on Go's rules, which the other way has.
        Scalar::Uint(_) | Scalar::Float(_) => None,
    }
}
