//! Keys and strings: borrowed from the text if they have no escapes.

use std::borrow::Cow;

use super::{Reader, Result, scan};
use crate::json::escapes::unescaped;

impl<'a> Reader<'a> {
    /// A key and its colon. Not inline: one place for all objects stays in the caches.
    #[inline(never)]
    pub(super) fn key(&mut self) -> Result<Cow<'a, str>> {
        match self.short_key() {
            Some(key) => Ok(Cow::Borrowed(key)),
            None => self.any_key(),
        }
    }

    /// A plain key of less than a lane, right before its colon: most keys are.
    #[inline]
    fn short_key(&mut self) -> Option<&'a str> {
        let text = self.text.as_bytes().get(self.at..)?;
        let length = scan::short_string(text)?;
        if *text.get(length + 2)? != b':' {
            return None;
        }
        let key = self.text.get(self.at + 1..self.at + 1 + length)?;
        self.at += length + 3;
        Some(key)
    }

    #[inline(never)]
    fn any_key(&mut self) -> Result<Cow<'a, str>> {
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
        // The end is searched only to name the mistake: a string that does not end, or a wrong
        // escape.
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
