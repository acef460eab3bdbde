//! Writes the index of a text.

use super::{Entry, Shape, Tape, unescaped};
use crate::json::{
    Parts, escapes,
    parts::{Part, PartId},
    scan,
};

/// Maximum nesting of lists and objects.
const MAX_DEPTH: usize = 127;
/// Maximum length of a number.
const MAX_DIGITS: usize = 18;
/// Bytes of text for each value of a usual object, for the first allocation.
const BYTES_PER_VALUE: usize = 10;
/// The same, if only parts are indexed.
const BYTES_PER_WANTED: usize = 64;

/// Maximum number of values and keys. An index of so many takes 8 MiB, and their evaluation hundreds of
/// megabytes, more than a server has for all of them; a text with more is read without an index.
pub(super) const MAX_VALUES: usize = 1 << 19;
/// The least bytes of text that a value takes, with its comma.
const LEAST_BYTES_PER_VALUE: usize = 2;

/// Indexes parts of the value at a byte of a text, and finds its end.
pub(super) fn written<'a>(
    text: &'a str,
    begin: usize,
    parts: &'a Parts,
) -> Option<(Tape<'a>, usize)> {
    u32::try_from(text.len()).ok()?;
    let bytes = text.len() - begin;
    let is_whole = parts.root == PartId::WHOLE;
    let usual = bytes / if is_whole { BYTES_PER_VALUE } else { BYTES_PER_WANTED };
    let entries = Vec::with_capacity(usual.min(MAX_VALUES));
    // Only long texts can have more values: shorter ones are read without a comparison for each.
    if bytes / LEAST_BYTES_PER_VALUE < MAX_VALUES {
        Writer::<false> { text, at: begin, entries, parts }.written()
    } else {
        Writer::<true> { text, at: begin, entries, parts }.written()
    }
}

/// Fails at more than [`MAX_VALUES`] values if `IS_LONG`.
struct Writer<'a, const IS_LONG: bool> {
    text: &'a str,
    at: usize,
    entries: Vec<Entry>,
    parts: &'a Parts,
}

#[expect(clippy::cast_possible_truncation, reason = "the text has less than 4 GiB")]
impl<'a, const IS_LONG: bool> Writer<'a, IS_LONG> {
    /// The index of the value, and its end.
    fn written(mut self) -> Option<(Tape<'a>, usize)> {
        self.part(self.parts.root, 0)?;
        Some((Tape { text: self.text, parts: self.parts, entries: self.entries }, self.at))
    }

    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Whether there may be one more value; its key may be one, too.
    fn has_room(&self) -> bool {
        !IS_LONG || self.entries.len() < MAX_VALUES - 1
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.has_room().then_some(())?;
        match self.peek()? {
            b'"' => self.string(),
            b'{' => self.container(Shape::Object, depth),
            b'[' => self.container(Shape::List, depth),
            b't' => self.word("true", Shape::Bool),
            b'f' => self.word("false", Shape::Bool),
            b'n' => self.word("null", Shape::Null),
            _ => self.number(),
        }
    }

    fn leaf(&mut self, end: usize, shape: Shape) {
        let next = self.entries.len() as u32 + 1;
        let begin = self.at as u32;
        let part = PartId::WHOLE;
        self.entries.push(Entry { begin, end: end as u32, next, shape, part });
        self.at = end;
    }

    fn word(&mut self, word: &str, shape: Shape) -> Option<()> {
        let rest = &self.text.as_bytes()[self.at..];
        rest.starts_with(word.as_bytes()).then_some(())?;
        self.leaf(self.at + word.len(), shape);
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = |from: usize| rest[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let sign = usize::from(rest.first() == Some(&b'-'));
        let whole = digits(sign);
        let is_padded = whole > 1 && rest.get(sign) == Some(&b'0');
        let mut end = sign + whole;
        let mut is_valid = whole > 0 && !is_padded;
        if rest.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            is_valid &= fraction > 0;
            end += 1 + fraction;
        }
        is_valid &= end <= MAX_DIGITS && !matches!(rest.get(end), Some(b'e' | b'E'));
        is_valid.then_some(())?;
        self.leaf(self.at + end, Shape::Number);
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let (text, begin) = (self.text.as_bytes(), self.at + 1);
        if let Some(end) = scan::plain_string_end(text, begin) {
            self.leaf(end + 1, Shape::Text);
            return Some(());
        }
        let mut at = begin;
        let mut shape = Shape::Text;
        loop {
            at += scan::plain_bytes(text.get(at..)?);
            match *text.get(at)? {
                b'"' => {
                    self.leaf(at + 1, shape);
                    return Some(());
                }
                b'\\' => {
                    shape = Shape::Escaped;
                    at += 1 + escapes::escape(&text[at + 1..])?.1;
                }
                ..b' ' => return None,
                _ => at += 1,
            }
        }
    }

    fn key(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        self.string()?;
        self.byte(b':')
    }

    fn byte(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then_some(())?;
        self.at += 1;
        Some(())
    }

    fn container(&mut self, shape: Shape, depth: usize) -> Option<()> {
        let index = self.open(shape, depth, PartId::WHOLE)?;
        let close = closing(shape);
        if self.peek()? != close {
            loop {
                if shape == Shape::Object {
                    self.key()?;
                }
                self.value(depth + 1)?;
                if self.peek()? != b',' {
                    break;
                }
                self.at += 1;
            }
        }
        self.close(index, close)
    }

    /// The entry of a list or an object whose end is not known yet.
    fn open(&mut self, shape: Shape, depth: usize, part: PartId) -> Option<usize> {
        (depth < MAX_DEPTH).then_some(())?;
        let index = self.entries.len();
        self.entries.push(Entry { begin: self.at as u32, end: 0, next: 0, shape, part });
        self.at += 1;
        Some(index)
    }

    fn close(&mut self, index: usize, bracket: u8) -> Option<()> {
        self.byte(bracket)?;
        let next = self.entries.len() as u32;
        let entry = &mut self.entries[index];
        (entry.end, entry.next) = (self.at as u32, next);
        Some(())
    }

    /// The parts of a value that are wanted.
    fn part(&mut self, id: PartId, depth: usize) -> Option<()> {
        if id == PartId::WHOLE {
            return self.value(depth);
        }
        self.has_room().then_some(())?;
        let shape = match self.peek()? {
            b'{' => Shape::Object,
            b'[' => Shape::List,
            _ => return self.value(depth),
        };
        let parts = self.parts;
        match parts.get(id) {
            Some(part) if shape == Shape::Object => {
                let index = self.open(shape, depth, id)?;
                self.members(part, depth)?;
                self.close(index, b'}')
            }
            Some(Part { each: Some(each), .. }) => {
                let index = self.open(shape, depth, id)?;
                self.items(*each, depth)?;
                self.close(index, b']')
            }
            _ => self.skipped(shape, id),
        }
    }

    fn items(&mut self, each: PartId, depth: usize) -> Option<()> {
        if self.peek()? == b']' {
            return Some(());
        }
        loop {
            self.part(each, depth + 1)?;
            if self.peek()? != b',' {
                return Some(());
            }
            self.at += 1;
        }
    }

    fn members(&mut self, of: &Part, depth: usize) -> Option<()> {
        if self.peek()? == b'}' {
            return Some(());
        }
        loop {
            let before = self.entries.len();
            self.key()?;
            let wanted = self.wanted(of, before);
            self.part(wanted.unwrap_or(PartId::CLOSED), depth + 1)?;
            if wanted.is_none() {
                self.entries.truncate(before);
            }
            if self.peek()? != b',' {
                return Some(());
            }
            self.at += 1;
        }
    }

    /// What is wanted of the member with the key at a place.
    fn wanted(&self, of: &Part, key: usize) -> Option<PartId> {
        let Entry { begin, end, shape, .. } = self.entries[key];
        let written = &self.text[begin as usize + 1..end as usize - 1];
        if shape == Shape::Escaped {
            // The closing quote ends it.
            return of.member(&unescaped(&self.text[begin as usize + 1..]));
        }
        of.member(written)
    }

    /// A list or an object in which nothing is wanted.
    fn skipped(&mut self, shape: Shape, part: PartId) -> Option<()> {
        let text = self.text.as_bytes();
        let end = match shape {
            Shape::List => scan::list_end(text, self.at + 1),
            _ => scan::container_end(text, self.at + 1),
        }?;
        (text[end] == closing(shape)).then_some(())?;
        self.leaf(end + 1, shape);
        self.entries.last_mut()?.part = part;
        Some(())
    }
}

fn closing(shape: Shape) -> u8 {
    if shape == Shape::Object { b'}' } else { b']' }
}
