//! Keys of answers: what an object has of what is read.

use injectd_core::json::Node;

use crate::reading::{MAX_KEY_BYTES, Questions, Unusual, write_text};

/// The first byte of a first key, and that of a full one.
const FIRST: u8 = 0;
const FULL: u8 = 1;
/// Room for a key: most have some kilobytes.
const KEY_CAPACITY: usize = MAX_KEY_BYTES / 16;

/// The begin of a key: what an answer depends on besides its object.
#[derive(Debug)]
pub struct Head(Vec<u8>);

/// A key of an object.
#[derive(Debug)]
pub struct Key {
    pub(crate) bytes: Vec<u8>,
    /// How many bytes are before what the object answers.
    head: usize,
    /// A hash of the object's tenant.
    pub(crate) tenant: u64,
}

impl Head {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        let mut bytes = Vec::with_capacity(KEY_CAPACITY);
        bytes.push(FIRST);
        Self(bytes)
    }

    /// Adds a fact.
    pub fn flag(&mut self, is_so: bool) {
        self.0.push(is_so.into());
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        // Of a fixed width, so that no length has to stand before it.
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) {
        write_text(&mut self.0, text);
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::new()
    }
}

impl Key {
    /// The first key of an object: what is read of every object.
    pub(crate) fn first(
        head: Head,
        tenant: u64,
        fixed: &Questions,
        object: Node<'_, '_>,
    ) -> Result<Self, Unusual> {
        let Head(bytes) = head;
        Self { head: bytes.len(), bytes, tenant }.answered(fixed, object)
    }

    /// The key of an object of which the head says all.
    pub(crate) fn of_head(Head(bytes): Head, tenant: u64) -> Result<Self, Unusual> {
        if bytes.len() > MAX_KEY_BYTES {
            return Err(Unusual);
        }
        Ok(Self { head: bytes.len(), bytes, tenant })
    }

    /// The full key of the same object: what was read of objects with its first key. `number` is that of
    /// the reading.
    pub(crate) fn full(
        mut self,
        number: u64,
        questions: &Questions,
        object: Node<'_, '_>,
    ) -> Result<Self, Unusual> {
        // The full reading has all of the first one, so its answers need not be there twice.
        self.bytes.truncate(self.head);
        // A first key and a full one never are the same bytes, whatever the object answers.
        self.bytes[0] = FULL;
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.answered(questions, object)
    }

    fn answered(mut self, questions: &Questions, object: Node<'_, '_>) -> Result<Self, Unusual> {
        questions.answer(object, &mut self.bytes)?;
        // `answer` looks before each value: the last one may have gone beyond the limit.
        if self.bytes.len() > MAX_KEY_BYTES { Err(Unusual) } else { Ok(self) }
    }
}
