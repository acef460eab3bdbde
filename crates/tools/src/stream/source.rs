//! A buffered reader for a stream, plain or compressed.

use std::io::{self, Read};

use super::compressed;

/// Size of the buffer.
// A pipe of Linux holds as much: one read can take all that waits in it.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes at the start of a stream that are checked for binary data, as grep does.
const BINARY_CHECK_BYTES: usize = 8 << 10;
/// First byte of the mark that some editors write before UTF-8 text.
const BYTE_ORDER_MARK: u8 = 0xef;

/// A stream, with the bytes that were read but are not consumed yet.
pub(super) struct Source {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    used: usize,
    /// Bytes read so far.
    read: usize,
    pub(super) is_at_end: bool,
}

impl Source {
    pub(super) fn new(reader: impl Read + 'static) -> io::Result<Self> {
        let reader = compressed::plain(reader)?;
        Ok(Self { reader, buffer: Vec::new(), used: 0, read: 0, is_at_end: false })
    }

    /// The bytes that are not consumed yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Consumes bytes from the beginning of the rest.
    pub(super) fn consume(&mut self, length: usize) {
        self.used += length;
    }

    /// Reads more bytes after the rest; may block.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let kept = self.buffer.len();
        // At most one byte is kept, a backslash at the end: there is always room to read.
        self.buffer.resize(BUFFER_BYTES, 0);
        let read = loop {
            match self.reader.read(&mut self.buffer[kept..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(kept + *read.as_ref().unwrap_or(&0));
        self.is_at_end = read? == 0;
        if self.read < BINARY_CHECK_BYTES && self.is_binary(&self.buffer[kept..]) {
            let text = "binary data; expected JSON, plain or compressed with gzip or zstd";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.read += self.buffer.len() - kept;
        Ok(())
    }

    /// Whether bytes just read are binary: text contains no NUL, and JSON begins with ASCII.
    fn is_binary(&self, fresh: &[u8]) -> bool {
        let is_text = |byte: u8| matches!(byte, b'\t'..=b'\r' | b' '..=b'~' | BYTE_ORDER_MARK);
        let begins_binary = self.read == 0 && fresh.first().is_some_and(|&byte| !is_text(byte));
        begins_binary || fresh.contains(&0)
    }
}
