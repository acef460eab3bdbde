//! Splits a stream into JSON documents: one per line or pretty-printed, plain or compressed.
//!
//! The splitter looks at brackets and strings only; it does not check the JSON. Memory and error
//! output are bounded for documents of any length and any number of errors.

use std::io::{self, Read};

use injectd_core::{json::Nesting, review::MAX_BODY_BYTES};
use memchr::memchr;

use self::source::Source;

mod compressed;
mod source;

/// Errors that are printed. More lines would not help, and could be longer than the input.
const MAX_ERROR_LINES: usize = 100;

/// Splits a stream into documents.
pub(super) struct Documents {
    source: Source,
    /// Whether the last call returned `Step::Reads`.
    may_read: bool,
    /// Number of complete lines so far.
    lines: usize,
    is_at_line_begin: bool,
    /// Bytes up to the end of the line in memory; 0 if unknown. Cached, so that the end of a line
    /// with many documents is searched only once.
    line_rest: usize,
    /// Bytes searched for the end of a line.
    #[cfg(test)]
    searched: usize,
    under_way: UnderWay,
    /// Bytes of the current document, or of the last one.
    length: usize,
    /// Text of that document; empty if it is too large.
    text: Vec<u8>,
}

/// The current document, with the line on which it begins.
enum UnderWay {
    Nothing,
    /// Ends with its closing bracket, or before a line that begins with `{`.
    Json(usize, Nesting),
    /// Not JSON; ends with its line.
    Line(usize),
}

/// The next step in a stream.
pub(super) enum Step<'d> {
    /// No complete document is in memory: the next call reads, and may block.
    Reads,
    Document(Document<'d>),
    End,
}

/// A document, which may be too large to read.
pub(super) struct Document<'d> {
    /// The line on which it begins, counted from 1.
    pub(super) line: usize,
    pub(super) text: Result<&'d [u8], TooLarge>,
}

/// A document is larger than the webhook's limit. The message is the webhook's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is larger than {MAX_BODY_BYTES} bytes")]
pub(super) struct TooLarge;

/// Counts unreadable documents.
#[derive(Debug, Default)]
pub(super) struct Errors {
    pub(super) count: usize,
}

impl Errors {
    /// Counts one. Returns whether to print it.
    pub(super) fn add(&mut self) -> bool {
        self.count += 1;
        self.count <= MAX_ERROR_LINES
    }

    /// The text that follows the number of errors.
    pub(super) fn hint(&self) -> &'static str {
        const { assert!(MAX_ERROR_LINES == 100, "the hint must name the number") };
        if self.count > MAX_ERROR_LINES { " (only the first 100 are listed)" } else { "" }
    }
}

impl Documents {
    /// Splits a stream, which may be compressed with gzip or zstd. Reads its first bytes.
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
                // The read may wait for input for long: the caller shows how far it is before it.
                return Ok(Step::Reads);
            }
            self.may_read = false;
            self.line_rest = 0;
            self.source.fill()?;
        }
    }

    /// Looks for the end of a document in the bytes in memory. Returns the line on which the
    /// document begins.
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
                    // A document that was cut off, as a log is when its server is killed, ends
                    // where the next one begins. Only the broken one is lost.
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

    /// Bytes of the line in memory that can be scanned before the next read.
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

    /// Begins a document with this first byte.
    fn begin(&mut self, first: u8) {
        let line = self.lines + 1;
        self.under_way = match first {
            b'{' | b'[' => UnderWay::Json(line, Nesting::default()),
            _ => UnderWay::Line(line),
        };
        self.length = 0;
        self.text.clear();
    }

    /// Adds bytes of one line to the document.
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

/// The length of `piece` without a last backslash, which escapes a byte of the next piece.
fn unescaped(piece: &[u8]) -> usize {
    let backslashes = piece.iter().rev().take_while(|&&byte| byte == b'\\').count();
    piece.len() - backslashes % 2
}

#[cfg(test)]
mod tests;
