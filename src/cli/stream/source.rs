//! The bytes of a stream, some at a time.

use std::io::{self, Read};

use super::compressed;

/// Bytes that are held at most.
const BUFFER_BYTES: usize = 64 << 10;
/// How much of a stream is searched for binary data, as grep does.
const BINARY_CHECK_BYTES: usize = 8 << 10;
/// What some editors put before UTF-8.
const BYTE_ORDER_MARK: u8 = 0xef;

/// A stream with the bytes that were read and not used yet.
pub(super) struct Source {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    used: usize,
    /// Bytes that were ever read.
    read: usize,
    pub(super) is_at_end: bool,
}

impl Source {
    pub(super) fn new(reader: impl Read + 'static) -> io::Result<Self> {
        let reader = compressed::plain(reader)?;
        Ok(Self { reader, buffer: Vec::new(), used: 0, read: 0, is_at_end: false })
    }

    /// The bytes that are not used yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Marks the first bytes of the rest as used.
    pub(super) fn consume(&mut self, length: usize) {
        self.used += length;
    }

    /// Reads more bytes behind the rest; may wait.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let kept = self.buffer.len();
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
            let text = "binary data; give JSON, plain or compressed with gzip or zstd";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.read += self.buffer.len() - kept;
        Ok(())
    }

    /// Whether bytes that were just read are no text: no text holds a NUL, and JSON begins in ASCII.
    fn is_binary(&self, fresh: &[u8]) -> bool {
        let is_text = |byte: u8| matches!(byte, b'\t'..=b'\r' | b' '..=b'~' | BYTE_ORDER_MARK);
        let begins_binary = self.read == 0 && fresh.first().is_some_and(|&byte| !is_text(byte));
        begins_binary || fresh.contains(&0)
    }
}
