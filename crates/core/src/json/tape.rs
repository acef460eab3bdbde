//! A JSON text that is checked and indexed once, so that its values are found in any order without a
//! tree: all of it, or the parts that somebody wants.
//!
//! Texts that need care have no tape: halves of surrogate pairs, numbers beyond eighteen digits or
//! with an exponent, and values that nest too deep. Callers parse them otherwise.
//!
//! Lists and objects in which nothing is wanted are skipped: only their end is found. What is in them may
//! need care, and need not even be JSON; an API server sends no such text. The rest of the text is checked,
//! and what is found there is what an index of all of it has.

use std::borrow::Cow;

use super::{Parts, escapes, parts::PartId};

mod writer;

/// The values of a JSON text, each followed by the values in it.
#[derive(Debug)]
pub struct Tape<'a> {
    text: &'a str,
    parts: &'a Parts,
    entries: Vec<Entry>,
}

/// A value: where its text is, and the index of the next value that is not in it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    begin: u32,
    end: u32,
    next: u32,
    shape: Shape,
    /// What is indexed in it.
    part: PartId,
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

/// A value that is read was not wanted when the text was indexed: a mistake of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotIndexed;

impl<'a> Tape<'a> {
    /// Indexes a text that holds one value. `None` if it is not JSON, or needs care.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        Self::parts(text, Parts::WHOLE)
    }

    /// Indexes these parts of a text that holds one value. `None` if it is not JSON or needs care, as far
    /// as it is not skipped.
    #[must_use]
    pub fn parts(text: &'a str, parts: &'a Parts) -> Option<Self> {
        let (tape, end) = writer::written(text, 0, parts)?;
        text[end..].trim_ascii_start().is_empty().then_some(tape)
    }

    /// Indexes parts of the value at a byte of a text, and finds its end.
    pub(super) fn at(text: &'a str, begin: usize, parts: &'a Parts) -> Option<(Self, usize)> {
        writer::written(text, begin, parts)
    }

    /// Bytes in memory, without the text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// How many values and keys are indexed.
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

    /// Another value of the tape.
    fn at(self, index: u32) -> Self {
        Self { index, ..self }
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

    /// Whether a list or an object has nothing in it. Other values have nothing in them.
    #[must_use]
    pub fn is_empty(self) -> bool {
        match self.shape() {
            Shape::List | Shape::Object => {
                let inside = &self.raw().as_bytes()[1..];
                // The text is asked, not the index: of a list in which nothing is wanted, no item
                // is indexed.
                inside.trim_ascii_start().len() == 1
            }
            _ => true,
        }
    }

    /// The keys and values of an object, in their order; none for other values. Keys are as they are
    /// written, with escapes and without quotes.
    ///
    /// # Panics
    /// Some of them are not indexed.
    pub fn members(self) -> impl Iterator<Item = (&'a str, Self)> + Clone + use<'t, 'a> {
        self.must_be_complete(Shape::Object);
        self.indexed().map(|(key, value)| (key.written(), value))
    }

    /// The items of a list; none for other values.
    ///
    /// # Panics
    /// They are not indexed.
    pub fn items(self) -> impl Iterator<Item = Self> + use<'t, 'a> {
        self.must_be_complete(Shape::List);
        self.inside(Shape::List)
    }

    /// The keys and values of an object that are indexed, in their order; none for other values.
    pub fn indexed(self) -> impl Iterator<Item = (Self, Self)> + Clone + use<'t, 'a> {
        let Entry { next, shape, .. } = self.entry();
        let end = if shape == Shape::Object { next } else { 0 };
        let mut index = self.index + 1;
        std::iter::from_fn(move || {
            if index >= end {
                return None;
            }
            let (key, value) = (self.at(index), self.at(index + 1));
            index = value.entry().next;
            Some((key, value))
        })
    }

    /// A key or a string as it is written, without its quotes.
    #[must_use]
    pub fn written(self) -> &'a str {
        let entry = self.entry();
        &self.tape.text[entry.begin as usize + 1..entry.end as usize - 1]
    }

    /// The value of a key: the last one, if the key is repeated.
    ///
    /// # Panics
    /// As [`Self::find`] fails.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Self> {
        self.find(key).expect("the key must be one of the parts that are indexed")
    }

    /// The value of a key: the last one, if the key is repeated.
    ///
    /// # Errors
    /// The value has other keys than those that are indexed, and this may be one of them.
    pub fn find(self, key: &str) -> Result<Option<Self>, NotIndexed> {
        let Entry { next, shape, .. } = self.entry();
        let end = if shape == Shape::Object { next as usize } else { 0 };
        let entries = &self.tape.entries;
        let mut found = None;
        let mut index = self.index as usize + 1;
        while index < end {
            let (name, value) = (&entries[index], &entries[index + 1]);
            // Most keys differ in their length, which the entries have: the text need not be read.
            let is_as_long = (name.end - name.begin) as usize == key.len() + 2;
            if (is_as_long || name.shape == Shape::Escaped) && self.is_key(name, key) {
                // The search goes on: of a repeated key the last value counts.
                found = Some(index + 1);
            }
            index = value.next as usize;
        }
        if found.is_none() && !self.has_indexed(key) {
            return Err(NotIndexed);
        }
        // The writer stops long before an index needs more than 32 bits.
        let at = |index| Self { index: u32::try_from(index).unwrap_or(u32::MAX), ..self };
        Ok(found.map(at))
    }

    /// Whether all items of a list and all keys of an object are indexed; so it is for other values.
    #[must_use]
    pub fn is_complete(self) -> bool {
        let part = self.entry().part;
        let has_all = || self.tape.parts.get(part).is_some_and(|part| part.each.is_some());
        part == PartId::WHOLE || has_all()
    }

    fn must_be_complete(self, shape: Shape) {
        // An empty answer would be a wrong decision without any sign of it; a panic shows in the
        // first test.
        assert!(self.shape() != shape || self.is_complete(), "what is in it must be indexed");
    }

    /// Whether a key that is not found is not there.
    #[inline]
    fn has_indexed(self, key: &str) -> bool {
        let Entry { part, shape, .. } = self.entry();
        let key = key.as_bytes();
        let is_wanted = || self.tape.parts.get(part).is_some_and(|part| part.member(key).is_some());
        part == PartId::WHOLE || shape != Shape::Object || is_wanted()
    }

    /// Whether a key of the same length, or one with escapes, is this key.
    fn is_key(self, name: &Entry, key: &str) -> bool {
        let begin = name.begin as usize + 1;
        if name.shape == Shape::Escaped {
            return *unescaped(&self.tape.text[begin..]) == *key;
        }
        self.tape.text.as_bytes()[begin..][..key.len()] == *key.as_bytes()
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

/// A key without escapes, from the text behind its opening quote.
#[cold]
fn unescaped(written: &str) -> String {
    escapes::unescaped(written, 0).map(|(text, _)| text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
