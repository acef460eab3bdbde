//! A JSON text that is checked whole and indexed once, so that its values are found in any order
//! without a tree.
//!
//! Texts that need care have no tape: halves of surrogate pairs, numbers beyond eighteen digits or
//! with an exponent, and values that nest too deep. Callers parse them otherwise.

use std::borrow::Cow;

use super::{escapes, scan};

/// Maximum nesting of lists and objects.
const MAX_DEPTH: usize = 127;
/// Maximum length of a number.
const MAX_DIGITS: usize = 18;
/// Bytes of text for each value of a usual object, for the first allocation.
const BYTES_PER_VALUE: usize = 10;

/// Maximum number of values and keys. An index of so many takes 8 MiB, and their evaluation hundreds of
/// megabytes, more than a server has for all of them; a text with more is read without an index.
const MAX_VALUES: usize = 1 << 19;
/// The least bytes of text that a value takes, with its comma.
const LEAST_BYTES_PER_VALUE: usize = 2;

/// The values of a JSON text, each followed by the values in it.
#[derive(Debug)]
pub struct Tape<'a> {
    text: &'a str,
    entries: Vec<Entry>,
}

/// A value: where its text is, and the index of the next value that is not in it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    begin: u32,
    end: u32,
    next: u32,
    shape: Shape,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number of at most eighteen digits without an exponent.
    Number,
    /// A string without escapes.
    Text,
    /// A string with escapes.
    Escaped,
    /// A list.
    List,
    /// An object.
    Object,
}

/// A value of a tape.
#[derive(Debug, Clone, Copy)]
pub struct Node<'t, 'a> {
    tape: &'t Tape<'a>,
    index: u32,
}

impl<'a> Tape<'a> {
    /// Indexes a text that holds one value. `None` if it is not JSON, or needs care.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let (tape, end) = Self::at(text, 0)?;
        text[end..].trim_ascii_start().is_empty().then_some(tape)
    }

    /// Indexes the value at a byte of a text, and finds its end.
    pub(super) fn at(text: &'a str, begin: usize) -> Option<(Self, usize)> {
        u32::try_from(text.len()).ok()?;
        let bytes = text.len() - begin;
        let entries = Vec::with_capacity((bytes / BYTES_PER_VALUE).min(MAX_VALUES));
        // Only long texts can have more values: shorter ones are read without a comparison for each.
        if bytes / LEAST_BYTES_PER_VALUE < MAX_VALUES {
            Writer::<false> { text, at: begin, entries }.written()
        } else {
            Writer::<true> { text, at: begin, entries }.written()
        }
    }

    /// Bytes in memory, without the text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// How many values and keys the text has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The value at a place.
    ///
    /// # Panics
    /// When it is read, if it is not the place of one of the values.
    #[must_use]
    pub fn node(&self, place: u32) -> Node<'_, 'a> {
        Node { tape: self, index: place }
    }

    /// The outermost value.
    #[must_use]
    pub fn root(&self) -> Node<'_, 'a> {
        Node { tape: self, index: 0 }
    }
}

impl<'t, 'a> Node<'t, 'a> {
    fn entry(self) -> Entry {
        self.tape.entries[self.index as usize]
    }

    /// The place of the value in its tape.
    #[must_use]
    pub fn place(self) -> u32 {
        self.index
    }

    /// What the value is.
    #[must_use]
    pub fn shape(self) -> Shape {
        self.entry().shape
    }

    /// The text of the value as it was written, with quotes.
    #[must_use]
    pub fn raw(self) -> &'a str {
        let entry = self.entry();
        &self.tape.text[entry.begin as usize..entry.end as usize]
    }

    /// A string without its escapes; `None` for other values.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        let raw = self.raw();
        match self.shape() {
            Shape::Text => Some(Cow::Borrowed(&raw[1..raw.len() - 1])),
            Shape::Escaped => escapes::unescaped(raw, 1).map(|(text, _)| Cow::Owned(text)),
            _ => None,
        }
    }

    /// The keys and values of an object, in their order; none for other values. Keys are as they are
    /// written, with escapes and without quotes.
    pub fn members(self) -> impl Iterator<Item = (&'a str, Self)> + Clone + use<'t, 'a> {
        let mut inside = self.inside(Shape::Object);
        std::iter::from_fn(move || {
            let (key, value) = (inside.next()?.raw(), inside.next()?);
            Some((&key[1..key.len() - 1], value))
        })
    }

    /// The items of a list; none for other values.
    pub fn items(self) -> impl Iterator<Item = Self> + use<'t, 'a> {
        self.inside(Shape::List)
    }

    /// The value of a key: the last one, if the key is repeated.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Self> {
        let mut inside = self.inside(Shape::Object);
        let mut found = None;
        while let (Some(name), Some(value)) = (inside.next(), inside.next()) {
            if name.is_key(key) {
                found = Some(value);
            }
        }
        found
    }

    /// Whether a written key is this key.
    fn is_key(self, key: &str) -> bool {
        let Entry { begin, end, shape, .. } = self.entry();
        let bytes = (end - begin) as usize - 2;
        if shape == Shape::Escaped {
            return bytes > key.len() && unescaped(&self.raw()[1..]) == key;
        }
        bytes == key.len() && self.raw().as_bytes()[1..=bytes] == *key.as_bytes()
    }

    fn inside(self, shape: Shape) -> impl Iterator<Item = Self> + Clone + use<'t, 'a> {
        let entry = self.entry();
        let (tape, end) = (self.tape, if entry.shape == shape { entry.next } else { 0 });
        let mut index = self.index + 1;
        std::iter::from_fn(move || {
            if index >= end {
                return None;
            }
            let node = Self { tape, index };
            index = node.entry().next;
            Some(node)
        })
    }
}

#[cold]
fn unescaped(written: &str) -> String {
    escapes::unescaped(written, 0).map(|(text, _)| text).unwrap_or_default()
}

/// Fails at more than [`MAX_VALUES`] values if `IS_LONG`.
struct Writer<'a, const IS_LONG: bool> {
    text: &'a str,
    at: usize,
    entries: Vec<Entry>,
}

#[expect(clippy::cast_possible_truncation, reason = "the text has less than 4 GiB")]
impl<'a, const IS_LONG: bool> Writer<'a, IS_LONG> {
    /// The index of the value, and its end.
    fn written(mut self) -> Option<(Tape<'a>, usize)> {
        self.value(0)?;
        Some((Tape { text: self.text, entries: self.entries }, self.at))
    }

    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        // The key of a value may be one more.
        if IS_LONG && self.entries.len() >= MAX_VALUES - 1 {
            return None;
        }
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
        self.entries.push(Entry { begin: self.at as u32, end: end as u32, next, shape });
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
        (depth < MAX_DEPTH).then_some(())?;
        let is_object = shape == Shape::Object;
        let close = if is_object { b'}' } else { b']' };
        let (index, begin) = (self.entries.len(), self.at as u32);
        self.entries.push(Entry { begin, end: 0, next: 0, shape });
        self.at += 1;
        if self.peek()? != close {
            loop {
                if is_object {
                    self.key()?;
                }
                self.value(depth + 1)?;
                if self.peek()? != b',' {
                    break;
                }
                self.at += 1;
            }
        }
        self.byte(close)?;
        let (end, next) = (self.at as u32, self.entries.len() as u32);
        self.entries[index] = Entry { begin, end, next, shape };
        Some(())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "trees are what tapes are compared with")]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The value as a tree.
    fn tree(node: Node<'_, '_>) -> Value {
        match node.shape() {
            Shape::List => node.items().map(tree).collect(),
            Shape::Object => {
                let members = node.members().map(|(key, value)| (key.to_owned(), tree(value)));
                Value::Object(members.collect())
            }
            Shape::Text | Shape::Escaped => node.text().expect("a string").into(),
            _ => serde_json::from_str(node.raw()).expect("a scalar"),
        }
    }

    #[test]
    fn a_tape_has_the_values_of_the_text() {
        for text in [
            "{}",
            "[]",
            " [ 1 , -2.5 , 0 , true , false , null ] ",
            r#"{"a":{"b":[{},[],""]},"c":"\"é\n\u00e9\ud83d\ude00","a":1}"#,
            r#"{"long":"0123456789012345678901234567890123456789\\","end":"x"}"#,
        ] {
            let tape = Tape::of(text).expect(text);
            let expected: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(tree(tape.root()), expected, "{text}");
        }
        let tape = Tape::of(r#"{"a":1,"b":[2],"a":3}"#).expect("a tape");
        let root = tape.root();
        assert_eq!(root.get("a").map(Node::raw), Some("3"));
        assert_eq!(root.get("b").map(Node::raw), Some("[2]"));
        assert!(root.get("c").is_none());
        let tape = Tape::of(r#"{"\u0061":1,"k:{\"b\"}":2}"#).expect("a tape");
        let root = tape.root();
        assert_eq!(root.get("a").map(Node::raw), Some("1"));
        assert_eq!(root.get("k:{\"b\"}").map(Node::raw), Some("2"));
    }

    #[test]
    fn a_text_with_too_many_values_has_no_tape() {
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
        assert_eq!(Tape::of(&list(MAX_VALUES - 1)).map(|tape| tape.count()), Some(MAX_VALUES - 1));
        assert!(Tape::of(&list(MAX_VALUES + 1)).is_none());
        let object = format!("{{{}\"k\":0}}", "\"k\":0,".repeat(MAX_VALUES / 2));
        assert!(Tape::of(&object).is_none());
    }

    #[test]
    fn texts_that_are_not_json_or_need_care_have_no_tape() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in [
            "",
            " ",
            "{",
            "[",
            "[1",
            "[1,]",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            "nul",
            "nulla",
            "tru",
            "01",
            "-",
            "1.",
            ".5",
            "+1",
            "1e5",
            "1E5",
            "1234567890123456789",
            "\"",
            "\"a\nb\"",
            r#""\x""#,
            r#""\ud83d""#,
            r#""\u12""#,
            "[] []",
            "'a'",
            &deep,
        ] {
            assert!(Tape::of(text).is_none(), "{text}");
        }
    }
}
