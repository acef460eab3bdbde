//! Keys and strings: borrowed from the text if they have no escapes.

use std::borrow::Cow;

use super::{Reader, Result, scan};

impl<'a> Reader<'a> {
    /// A key and its colon. Not inline: one place for all objects stays in the caches.
    #[inline(never)]
    pub(super) fn key(&mut self) -> Result<Cow<'a, str>> {
        match self.plain_string() {
            Some(key) if self.text.as_bytes().get(self.at) == Some(&b':') => {
                self.at += 1;
                Ok(Cow::Borrowed(key))
            }
            Some(key) => self.late_colon(key.into()),
            None => self.rare_key(),
        }
    }

    /// A key with escapes.
    #[cold]
    fn rare_key(&mut self) -> Result<Cow<'a, str>> {
        match self.peek() {
            Some(b'"') => self.rare_string().and_then(|key| self.late_colon(key)),
            _ => Err(self.mismatch("a key")),
        }
    }

    /// A colon after its key and blanks.
    #[cold]
    fn late_colon(&mut self, key: Cow<'a, str>) -> Result<Cow<'a, str>> {
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(key)
            }
            _ => Err(self.mismatch("a colon")),
        }
    }

    /// Reads a string; `None` for `null`.
    ///
    /// # Errors
    /// When the value is of another type.
    pub fn string(&mut self) -> Result<Option<Cow<'a, str>>> {
        if let Some(text) = self.plain_string() {
            return Ok(Some(Cow::Borrowed(text)));
        }
        match self.peek() {
            Some(b'"') => self.rare_string().map(Some),
            Some(b'n') => self.null().map(|()| None),
            _ => Err(self.mismatch("a string")),
        }
    }

    /// Reads the next string if it has no escapes and does not end close to the end of the text.
    #[expect(
        clippy::inline_always,
        reason = "runs for each of the two hundred strings of a review"
    )]
    #[inline(always)]
    fn plain_string(&mut self) -> Option<&'a str> {
        if self.peek()? != b'"' {
            return None;
        }
        let bytes = self.text.as_bytes();
        let end = scan::plain_string_end(bytes, self.at + 1)?;
        let text = self.text.get(self.at + 1..end)?;
        self.at = end + 1;
        Some(text)
    }

    /// Reads any string; its opening quote is next.
    #[cold]
    fn rare_string(&mut self) -> Result<Cow<'a, str>> {
        let begin = self.at + 1;
        if let Some((text, end)) = unescaped(self.text, begin) {
            self.at = end + 1;
            return Ok(Cow::Owned(text));
        }
        let end = scan::string_end(self.text.as_bytes(), begin);
        self.at = end.ok_or_else(|| self.mismatch("a string with an end"))? + 1;
        Err(self.mismatch("a string that is well-formed"))
    }

    #[expect(
        clippy::inline_always,
        reason = "runs for each of the two hundred strings of a review"
    )]
    #[inline(always)]
    pub(super) fn skip_string(&mut self) -> Result<()> {
        let (text, begin) = (self.text.as_bytes(), self.at + 1);
        let end = scan::plain_string_end(text, begin).or_else(|| scan::string_end(text, begin));
        self.at = end.ok_or_else(|| self.mismatch("a string with an end"))? + 1;
        Ok(())
    }
}

/// The string whose opening quote is just before `begin`, without escapes, and the index of its closing
/// quote; `None` if it does not end or is not well-formed.
pub(in crate::json) fn unescaped(text: &str, begin: usize) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let (mut out, mut plain, mut at) = (String::new(), begin, begin);
    loop {
        match *bytes.get(at)? {
            b'"' => {
                out.push_str(&text[plain..at]);
                return Some((out, at));
            }
            b'\\' => {
                if plain < at {
                    out.push_str(&text[plain..at]);
                }
                let (character, length) = escape(&bytes[at + 1..])?;
                out.push(character);
                at += 1 + length;
                plain = at;
            }
            ..b' ' => return None,
            _ => at += 1 + scan::plain_bytes(&bytes[at + 1..]),
        }
    }
}

/// The character of an escape and its length; `bytes` begin after the backslash.
pub(in crate::json) fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let character = match *bytes.first()? {
        byte @ (b'"' | b'\\' | b'/') => byte.into(),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return escaped_unit(bytes),
        _ => return None,
    };
    Some((character, 1))
}

/// `uXXXX`, or two of them that make a surrogate pair.
fn escaped_unit(bytes: &[u8]) -> Option<(char, usize)> {
    const LENGTH: usize = "uXXXX".len();
    let unit = |bytes: &[u8]| {
        let digits = bytes.get(..LENGTH)?.strip_prefix(b"u")?;
        digits
            .iter()
            .try_fold(0, |unit: u32, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
    };
    let first = unit(bytes)?;
    if !(0xD800..0xDC00).contains(&first) {
        // Half a pair is not a character.
        return Some((char::from_u32(first)?, LENGTH));
    }
    let second = unit(bytes.get(LENGTH..)?.strip_prefix(b"\\")?)?;
    let low = (0xDC00..0xE000).contains(&second).then(|| second - 0xDC00)?;
    let character = char::from_u32(0x1_0000 + ((first - 0xD800) << 10 | low))?;
    Some((character, 2 * LENGTH + 1))
}
