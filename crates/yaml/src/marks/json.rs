//! Marks of a value of JSON.

use super::{Entry, Item, Kind, Node, Style};

/// The marks of a text that is one valid value; `None` if it is not.
pub(super) fn marks(text: &str) -> Option<Node> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.blanks();
    scanner.value()
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self) -> Option<Node> {
        self.blanks();
        let start = self.at;
        let kind = match self.peek()? {
            b'{' => Kind::Map(Style::Flow, self.list(b'}', Self::entry)?),
            b'[' => Kind::List(Style::Flow, self.list(b']', Self::item)?),
            b'"' => {
                self.string()?;
                Kind::Scalar
            }
            _ => {
                let rest = &self.text[start..];
                let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']);
                self.at += end.unwrap_or(rest.len());
                Kind::Scalar
            }
        };
        Some(Node { start, end: self.at, has_properties: false, kind })
    }

    fn list<T>(&mut self, close: u8, part: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut parts = Vec::new();
        self.blanks();
        if self.peek()? == close {
            self.at += 1;
            return Some(parts);
        }
        loop {
            parts.push(part(self)?);
            self.blanks();
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b',' => {}
                byte if byte == close => return Some(parts),
                _ => return None,
            }
        }
    }

    fn entry(&mut self) -> Option<Entry> {
        self.blanks();
        let start = self.at;
        let key = serde_json::from_str(self.string()?).ok()?;
        self.skip(b':')?;
        let after_colon = self.at;
        Some(Entry { key: Some(key), start, after_colon, value: self.value()? })
    }

    fn item(&mut self) -> Option<Item> {
        let value = self.value()?;
        Some(Item { start: value.start, value })
    }

    /// The string with its quotes.
    fn string(&mut self) -> Option<&str> {
        let start = self.at;
        // The first quote does not end the string.
        let mut escaped = true;
        for (at, byte) in self.text.as_bytes()[start..].iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.at = start + at + 1;
                    return Some(&self.text[start..self.at]);
                }
                _ => {}
            }
        }
        None
    }
}
