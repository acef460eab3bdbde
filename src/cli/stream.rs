//! A stream of JSON documents: on one line each, or pretty-printed; plain or compressed.
//!
//! Not for what documents mean: only brackets and strings are looked at. However long a document
//! is, and however many are broken, what is held and printed is bounded.

use std::io::{self, Read};

use memchr::memchr;

use self::source::Source;
use crate::{json::Nesting, webhook::MAX_BODY_BYTES};

mod compressed;
mod source;

/// Unreadable documents that get a line of their own. More lines say nothing new, and could be
/// longer than the input.
const MAX_ERROR_LINES: usize = 100;

/// Cuts a stream into documents.
pub(super) struct Documents {
    source: Source,
    /// Whether the caller knows that the next call reads.
    may_read: bool,
    /// Lines that ended so far.
    lines: usize,
    is_at_line_begin: bool,
    /// Bytes of the line in memory that can be taken; 0 if they are not known. However many
    /// documents and blanks a line holds, its end is searched for once.
    line_rest: usize,
    /// Bytes that were searched for the end of a line.
    #[cfg(test)]
    searched: usize,
    under_way: UnderWay,
    /// Bytes of the document under way, or of the last one.
    length: usize,
    /// Its text; empty once it is too large.
    text: Vec<u8>,
}

/// A document that has begun; each has the line it begins on.
enum UnderWay {
    Nothing,
    /// Ends where its brackets close, or where a line opens the next document.
    Json(usize, Nesting),
    /// Not JSON; ends with the line.
    Line(usize),
}

/// What comes next in a stream.
pub(super) enum Step<'d> {
    /// Memory holds no whole document: the next call reads, and may wait.
    Reads,
    Document(Document<'d>),
    End,
}

/// A document, readable or not.
pub(super) struct Document<'d> {
    /// The line it begins on, counted from 1.
    pub(super) line: usize,
    pub(super) text: Result<&'d [u8], TooLarge>,
}

/// A document is larger than the webhook takes; in the webhook's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is larger than {MAX_BODY_BYTES} bytes")]
pub(super) struct TooLarge;

/// Counts unreadable documents.
#[derive(Debug, Default)]
pub(super) struct Errors {
    pub(super) count: usize,
}

impl Errors {
    /// Counts one. Returns whether it gets a line of its own.
    pub(super) fn add(&mut self) -> bool {
        self.count += 1;
        self.count <= MAX_ERROR_LINES
    }

    /// What to say behind the number of errors.
    pub(super) fn hint(&self) -> &'static str {
        const { assert!(MAX_ERROR_LINES == 100, "the hint must name the number") };
        if self.count > MAX_ERROR_LINES { " (only the first 100 are listed)" } else { "" }
    }
}

impl Documents {
    /// Cuts a stream, which may be compressed with gzip or zstd. Reads its first bytes.
    pub(super) fn new(reader: impl Read + 'static) -> io::Result<Self> {
        Ok(Self {
            source: Source::new(reader)?,
            may_read: false,
            lines: 0,
            is_at_line_begin: true,
            line_rest: 0,
            #[cfg(test)]
            searched: 0,
            under_way: UnderWay::Nothing,
            length: 0,
            text: Vec::new(),
        })
    }

    /// Finds the next document.
    pub(super) fn next(&mut self) -> io::Result<Step<'_>> {
        loop {
            if let Some(line) = self.scan() {
                let is_too_large = self.length > MAX_BODY_BYTES;
                let text = if is_too_large { Err(TooLarge) } else { Ok(&*self.text) };
                return Ok(Step::Document(Document { line, text }));
            }
            if self.source.is_at_end {
                return Ok(Step::End);
            }
            if !self.may_read {
                self.may_read = true;
                return Ok(Step::Reads);
            }
            self.may_read = false;
            self.line_rest = 0;
            self.source.fill()?;
        }
    }

    /// Looks for the end of a document in what was read; returns the line the document begins on.
    fn scan(&mut self) -> Option<usize> {
        loop {
            let length = self.line_rest();
            let line = &self.source.rest()[..length];
            let Some(&first) = line.first() else { break };
            match &mut self.under_way {
                UnderWay::Nothing if first.is_ascii_whitespace() => {
                    let blank = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                    self.take(blank);
                }
                UnderWay::Nothing => self.begin(first),
                UnderWay::Line(begin) => {
                    let begin = *begin;
                    self.take(length);
                    if self.is_at_line_begin {
                        return Some(self.end(begin));
                    }
                }
                UnderWay::Json(begin, nesting) => {
                    let begin = *begin;
                    if first == b'{' && self.is_at_line_begin && self.length > 0 {
                        return Some(self.end(begin));
                    }
                    let closed = nesting.end_in(line);
                    self.take(closed.map_or(length, |at| at + 1));
                    if closed.is_some() {
                        return Some(self.end(begin));
                    }
                }
            }
        }
        match self.under_way {
            UnderWay::Json(begin, _) | UnderWay::Line(begin) if self.source.is_at_end => {
                Some(self.end(begin))
            }
            _ => None,
        }
    }

    /// The length of the line in memory, up to its end or up to where more has to be read.
    fn line_rest(&mut self) -> usize {
        if self.line_rest == 0 {
            let rest = self.source.rest();
            let end = memchr(b'\n', rest).map(|end| end + 1);
            self.line_rest = match end {
                Some(length) => length,
                None if self.source.is_at_end => rest.len(),
                None => unescaped(rest),
            };
            #[cfg(test)]
            {
                self.searched += end.unwrap_or(rest.len());
            }
        }
        self.line_rest
    }

    /// Begins a document at its first byte.
    fn begin(&mut self, first: u8) {
        let line = self.lines + 1;
        self.under_way = match first {
            b'{' | b'[' => UnderWay::Json(line, Nesting::default()),
            _ => UnderWay::Line(line),
        };
        self.length = 0;
        self.text.clear();
    }

    /// Takes bytes of one line into the document.
    fn take(&mut self, length: usize) {
        let piece = &self.source.rest()[..length];
        self.is_at_line_begin = piece.ends_with(b"\n");
        self.lines += usize::from(self.is_at_line_begin);
        self.length += length;
        if self.length > MAX_BODY_BYTES {
            self.text.clear();
        } else {
            self.text.extend_from_slice(piece);
        }
        self.source.consume(length);
        self.line_rest -= length;
    }

    fn end(&mut self, begin: usize) -> usize {
        self.under_way = UnderWay::Nothing;
        begin
    }
}

/// The length of a piece of text without a last backslash that reaches into the next piece.
fn unescaped(piece: &[u8]) -> usize {
    let backslashes = piece.iter().rev().take_while(|&&byte| byte == b'\\').count();
    piece.len() - backslashes % 2
}

#[cfg(test)]
mod tests;
