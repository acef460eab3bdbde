//! Go's `string`: bytes, usually but not always UTF-8.

use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

/// A string of Go. It holds any bytes, since `trunc` may cut a character; clones share the bytes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<[u8]>);

impl Text {
    /// The text if it is UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text with U+FFFD in place of what is not UTF-8.
    #[must_use]
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::borrow::Borrow<[u8]> for Text {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<&[u8]> for Text {
    fn from(text: &[u8]) -> Self {
        Self(text.into())
    }
}

impl From<Vec<u8>> for Text {
    fn from(text: Vec<u8>) -> Self {
        Self(text.into())
    }
}

impl From<Cow<'_, str>> for Text {
    fn from(text: Cow<'_, str>) -> Self {
        text.as_ref().into()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.lossy(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.lossy(), f)
    }
}
