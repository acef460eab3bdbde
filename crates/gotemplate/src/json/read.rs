//! Reads JSON into values, as `json.Unmarshal` reads it into an `interface {}`.

use injectd_gocompat::number::parse_float;

use super::MAX_NESTING;
use crate::{
    quote::quote_rune,
    runes::{REPLACEMENT, decode},
    text::Text,
    value::{Entries, List, Map, Value},
};

/// The value of a text. Errors are Go's. Numbers are `float64`; of equal keys the last one wins.
pub(crate) fn read(text: &[u8]) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    reader.space();
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.invalid("after top-level value")),
    }
}

/// Whether a text is JSON.
///
/// # Errors
/// It is not; the text of the error is Go's.
pub fn check(text: &[u8]) -> Result<(), String> {
    read(text).map(drop)
}

const END: &str = "unexpected end of JSON input";

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The error of the next byte; at the end: that of the end.
    fn invalid(&self, context: &str) -> String {
        match self.peek() {
            None => END.to_owned(),
            Some(_) => self.invalid_inside(context),
        }
    }

    /// The error of the next byte; the end counts as a blank.
    fn invalid_inside(&self, context: &str) -> String {
        let byte = self.peek().unwrap_or(b' ');
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => quote_rune(char::from(byte), false),
        };
        format!("invalid character {shown} {context}")
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_NESTING {
            return Err("exceeded max depth".to_owned());
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(self.string()?.into()),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.invalid("looking for beginning of value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for byte in word.bytes() {
            if self.peek() != Some(byte) {
                let expected = quote_rune(char::from(byte), false);
                return Err(
                    self.invalid_inside(&format!("in literal {word} (expecting {expected})"))
                );
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.invalid_inside("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.invalid_inside("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.invalid_inside("in exponent of numeric literal"));
            }
            self.digits();
        }
        let text = String::from_utf8_lossy(&self.text[start..self.at]);
        parse_float(&text).map(Value::Float).ok_or_else(|| {
            format!("json: cannot unmarshal number {text} into Go value of type float64")
        })
    }

    fn string(&mut self) -> Result<Text, String> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let (char, width) = decode(&self.text[self.at..]);
            match (char, self.peek()) {
                (_, None) => return Err(END.to_owned()),
                (_, Some(b'"')) => {
                    self.at += 1;
                    return Ok(out.into());
                }
                (_, Some(b'\\')) => {
                    self.at += 1;
                    let char = self.escape()?;
                    out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                (_, Some(0..=0x1f)) => return Err(self.invalid("in string literal")),
                // Go replaces bytes that are not UTF-8 instead of refusing the text.
                (None, _) => out.extend_from_slice("\u{fffd}".as_bytes()),
                (Some(_), _) => out.extend_from_slice(&self.text[self.at..self.at + width]),
            }
            self.at += width;
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let char = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let high = self.unit()?;
                return Ok(self.character(high));
            }
            _ => return Err(self.invalid_inside("in string escape code")),
        };
        self.at += 1;
        Ok(char)
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Result<u32, String> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.invalid_inside("in \\u hexadecimal character escape"));
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }

    /// The character of a unit and, if it is the first half of one, of the unit after it.
    fn character(&mut self, high: u32) -> char {
        if let Some(char) = char::from_u32(high) {
            return char;
        }
        let before = self.at;
        if (0xd800..0xdc00).contains(&high) && self.text[self.at..].starts_with(b"\\u") {
            self.at += 2;
            if let Ok(low @ 0xdc00..=0xdfff) = self.unit() {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return char::from_u32(code).unwrap_or(REPLACEMENT);
            }
        }
        // What follows is no second half: it is read again, as a character of its own.
        self.at = before;
        REPLACEMENT
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        self.space();
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(List::new(items).into());
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(List::new(items).into());
                }
                _ => return Err(self.invalid("after array element")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        self.space();
        let mut entries = Entries::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Map::new(entries).into());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.at += 1;
            self.space();
            entries.insert(key, self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Map::new(entries).into());
                }
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
    }
}
