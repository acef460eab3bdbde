//! Reads JSON text in place: the caller reads the values it expects and skips the others.
//!
//! Skipped values are not validated: only their end is found.

use std::borrow::Cow;

use super::{Parts, Tape, scan};

mod error;
mod strings;

pub use error::ReadError;
use error::Step;

/// Maximum nesting of values that are read; skipped values may nest to any depth.
// Reading recurses, and the text is a client's: without a bound it could exhaust the stack.
// serde_json has the same order of depth, and no object of Kubernetes comes near it.
const MAX_DEPTH: u8 = 128;

/// A position in a JSON text.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
}

/// A value that is read from JSON into its default.
pub trait Read<'a>: Default {
    /// Reads one value. `null` keeps the default.
    ///
    /// # Errors
    /// When the value is of another type, or the text is not JSON.
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError>;
}

type Result<T, E = ReadError> = std::result::Result<T, E>;

/// Reads a text that holds one value.
///
/// # Errors
/// When the value is of another type, or the text is not JSON.
pub fn read<'a, T: Read<'a>>(text: &'a str) -> Result<T> {
    let mut reader = Reader::new(text);
    let mut value = T::default();
    value.read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

impl<'a> Reader<'a> {
    /// Reads from the beginning of a text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    /// The text that was read since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> &'a str {
        &self.text[earlier.at..self.at]
    }

    /// Indexes the next value, and skips it; `None` if it is not JSON, or has no [`Tape`].
    pub fn tape(&mut self) -> Option<Tape<'a>> {
        self.parts(Parts::WHOLE)
    }

    /// Indexes parts of the next value, and skips it; `None` if it has no [`Tape`] of them.
    pub fn parts(&mut self, parts: &'a Parts) -> Option<Tape<'a>> {
        let (tape, end) = Tape::at(self.text, self.at, parts)?;
        self.at = end;
        Some(tape)
    }

    /// Reads an object: `member` is called with each key and reads its value. Returns `false` for
    /// `null`.
    ///
    /// # Errors
    /// When the value is neither an object nor `null`.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<()>,
    ) -> Result<bool> {
        if !self.open(b'{', "an object")? {
            return Ok(false);
        }
        let mut key = self.first_key()?;
        while let Some(found) = key {
            member(self, found)?;
            key = self.next_key()?;
        }
        Ok(self.close())
    }

    /// The first key of an opened object, or `None` before its end.
    fn first_key(&mut self) -> Result<Option<Cow<'a, str>>> {
        match self.peek() {
            Some(b'}') => Ok(None),
            _ => self.key().map(Some),
        }
    }

    /// The key of the next member, or `None` before the end of the object.
    fn next_key(&mut self) -> Result<Option<Cow<'a, str>>> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.key().map(Some)
            }
            Some(b'}') => Ok(None),
            _ => Err(self.mismatch("a comma or the end of the object")),
        }
    }

    /// Reads a list: `item` is called to read each item. Returns `false` for `null`.
    ///
    /// # Errors
    /// When the value is neither a list nor `null`.
    pub fn list(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<bool> {
        if !self.open(b'[', "a list")? {
            return Ok(false);
        }
        if self.peek() == Some(b']') {
            return Ok(self.close());
        }
        for index in 0.. {
            item(self).map_err(|error| error.within(Step::Item(index)))?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.mismatch("a comma or the end of the list")),
            }
        }
        Ok(self.close())
    }

    /// Reads the value of the member `key`. Unless `is_first`, clears `field` before: the last of
    /// repeated keys wins.
    ///
    /// # Errors
    /// When the value is of another type.
    #[inline]
    pub fn member<T: Read<'a>>(&mut self, field: &mut T, key: &str, is_first: bool) -> Result<()> {
        if !is_first {
            clear(field);
        }
        field.read(self).map_err(|error| error.within(Step::member(key)))
    }

    /// Reads a boolean; `None` for `null`.
    ///
    /// # Errors
    /// When the value is of another type.
    pub fn boolean(&mut self) -> Result<Option<bool>> {
        let mut ahead = self.clone();
        // The position moves on success only: an error then names this value, and not what follows
        // it.
        let value = match ahead.scalar() {
            "true" => Some(true),
            "false" => Some(false),
            "null" => None,
            _ => return Err(self.mismatch("a boolean")),
        };
        *self = ahead;
        Ok(value)
    }

    /// Reads an integer; `None` for `null`.
    ///
    /// # Errors
    /// When the value is of another type, or an integer of more than 32 bits.
    pub fn integer(&mut self) -> Result<Option<i32>> {
        if self.is_null() {
            return self.null().map(|()| None);
        }
        let mut ahead = self.clone();
        let number = match ahead.peek() {
            Some(b'-' | b'0'..=b'9') => {
                let number = ahead.scalar();
                let digits = number.strip_prefix('-').unwrap_or(number);
                // `parse` takes leading zeros, JSON and Go do not.
                let is_padded = digits.len() > 1 && digits.starts_with('0');
                number.parse().ok().filter(|_| !is_padded)
            }
            _ => None,
        };
        let number = number.ok_or_else(|| self.mismatch("a 32-bit integer"))?;
        *self = ahead;
        Ok(Some(number))
    }

    /// Skips a value and returns whether it differs from Go's zero value of its type. Lists and
    /// objects do, even empty ones.
    ///
    /// # Errors
    /// When there is no value, or it does not end.
    pub fn is_set(&mut self) -> Result<bool> {
        self.peek();
        let begin = self.clone();
        self.skip()?;
        // Go reads `-0` as its zero integer, too.
        Ok(!matches!(self.since(&begin), "null" | "false" | "0" | "-0" | r#""""#))
    }

    /// A reader at the next value, past the blanks before it: [`Self::since`] it, a text begins with the value.
    #[inline]
    #[must_use]
    pub fn at_value(&mut self) -> Self {
        self.peek();
        self.clone()
    }

    /// Whether the next value is `null`.
    #[inline]
    pub fn is_null(&mut self) -> bool {
        self.peek() == Some(b'n')
    }

    /// Whether the next value is an object.
    #[inline]
    pub fn is_object(&mut self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Whether the next value is a list.
    #[inline]
    pub fn is_list(&mut self) -> bool {
        self.peek() == Some(b'[')
    }

    /// Whether the next value is a string.
    #[inline]
    pub fn is_string(&mut self) -> bool {
        self.peek() == Some(b'"')
    }

    /// Skips the remaining items of the list that is being read.
    ///
    /// # Errors
    /// When it does not end.
    pub fn skip_items(&mut self) -> Result<()> {
        self.at = self.closing(b'[')?;
        Ok(())
    }

    /// Skips a list and returns whether it has any items.
    ///
    /// # Errors
    /// When the value is neither a list nor `null`.
    pub fn has_items(&mut self) -> Result<bool> {
        if !self.open(b'[', "a list")? {
            return Ok(false);
        }
        let is_filled = self.peek() != Some(b']');
        self.skip_items()?;
        self.close();
        Ok(is_filled)
    }

    /// Skips a value of any type.
    ///
    /// # Errors
    /// When there is no value, or it does not end.
    pub fn skip(&mut self) -> Result<()> {
        match self.peek() {
            Some(b'"') => self.skip_string()?,
            Some(bracket @ (b'{' | b'[')) => {
                self.at += 1;
                self.at = self.closing(bracket)? + 1;
            }
            _ if self.scalar().is_empty() => return Err(self.mismatch("a value")),
            _ => {}
        }
        Ok(())
    }

    /// Checks that the text ends here.
    ///
    /// # Errors
    /// When the text continues.
    pub fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.mismatch("the end of the text")),
        }
    }

    /// Reads `null`.
    fn null(&mut self) -> Result<()> {
        let mut ahead = self.clone();
        if ahead.scalar() != "null" {
            return Err(self.mismatch("null"));
        }
        *self = ahead;
        Ok(())
    }

    /// Reads an opening bracket; `false` for `null`.
    #[inline]
    fn open(&mut self, bracket: u8, expected: &'static str) -> Result<bool> {
        match self.peek() {
            Some(found) if found == bracket && self.depth < MAX_DEPTH => {
                self.at += 1;
                self.depth += 1;
                Ok(true)
            }
            Some(b'n') => self.null().map(|()| false),
            _ => Err(self.mismatch(expected)),
        }
    }

    /// Reads the closing bracket that is next. Always returns `true`: the value was not `null`.
    #[inline]
    fn close(&mut self) -> bool {
        self.at += 1;
        self.depth -= 1;
        true
    }

    /// The next byte that is not blank.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                // The blanks of JSON. Unicode and ASCII have more, at which Go's decoder fails.
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Index of the bracket that closes the list or object that `opening` opened.
    fn closing(&self, opening: u8) -> Result<usize> {
        let text = self.text.as_bytes();
        let end = match opening {
            b'[' => scan::list_end(text, self.at),
            _ => scan::container_end(text, self.at),
        };
        end.ok_or_else(|| self.mismatch("a bracket that is closed"))
    }

    /// Reads up to the next delimiter; may be empty.
    fn scalar(&mut self) -> &'a str {
        self.peek();
        let begin = self.at;
        self.at += scan::scalar_len(&self.text.as_bytes()[begin..]);
        &self.text[begin..self.at]
    }

    /// An error at this position: the expected value, and the found one.
    #[cold]
    #[must_use]
    pub fn mismatch(&self, expected: &'static str) -> ReadError {
        let found = match self.clone().peek() {
            None => "the end of the text",
            Some(b'"') => "a string",
            Some(b'{') if self.depth == MAX_DEPTH => "an object that is nested too deeply",
            Some(b'{') => "an object",
            Some(b'[') if self.depth == MAX_DEPTH => "a list that is nested too deeply",
            Some(b'[') => "a list",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(_) => "other text",
        };
        ReadError::new(expected, found)
    }
}

#[cold]
#[inline(never)]
fn clear<T: Default>(field: &mut T) {
    // API servers write no key twice: the call stays out of the loop over members.
    *field = T::default();
}

impl<'a, T: Read<'a>> Read<'a> for Box<T> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        T::read(self, reader)
    }
}

/// `None` for `null`.
impl<'a, T: Read<'a>> Read<'a> for Option<T> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<()> {
        if reader.is_null() {
            return reader.null();
        }
        self.insert(T::default()).read(reader)
    }
}

#[cfg(test)]
mod tests;
