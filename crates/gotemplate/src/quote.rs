//! String and character literals as Go's `strconv` writes and reads them.

use injectd_gocompat::text::push_escaped;

use crate::runes::{REPLACEMENT, decode, runes};

/// A string literal in double quotes. Go: `strconv.Quote`, or `QuoteToASCII` if only ASCII is wanted.
pub(crate) fn quote(bytes: &[u8], ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for (at, char, _) in runes(bytes) {
        match char {
            Some(char) => push_escaped(char, '"', ascii, &mut out),
            None => out.push_str(&format!("\\x{:02x}", bytes[at])),
        }
    }
    out.push('"');
    out
}

/// A character literal in single quotes. Go: `strconv.QuoteRune`.
pub(crate) fn quote_rune(char: char, ascii: bool) -> String {
    let mut out = String::from("'");
    push_escaped(char, '\'', ascii, &mut out);
    out.push('\'');
    out
}

/// Whether the string may stand between backquotes in one line. Go: `strconv.CanBackquote`.
pub(crate) fn can_backquote(bytes: &[u8]) -> bool {
    runes(bytes).all(|(_, char, _)| match char {
        None | Some('\u{feff}' | '`' | '\u{7f}') => false,
        Some(char) => char == '\t' || char >= ' ',
    })
}

/// The bytes of a literal in double quotes or backquotes. Go: `strconv.Unquote`.
pub(crate) fn unquote(literal: &[u8]) -> Option<Vec<u8>> {
    let [open, body @ .., close] = literal else { return None };
    match (open, close) {
        (b'`', b'`') => Some(body.iter().copied().filter(|byte| *byte != b'\r').collect()),
        (b'"', b'"') => {
            let mut out = Vec::with_capacity(body.len());
            let mut rest = body;
            while !rest.is_empty() {
                let (unit, after) = unit(rest, b'"')?;
                unit.append_to(&mut out);
                rest = after;
            }
            Some(out)
        }
        _ => None,
    }
}

/// The character of a literal in single quotes; `None` if there is more in it. Go:
/// `strconv.UnquoteChar`.
pub(crate) fn unquote_char(literal: &[u8]) -> Result<Option<u32>, String> {
    let body = literal.strip_prefix(b"'").unwrap_or_default();
    let (unit, rest) = unit(body, b'\'').ok_or("invalid syntax")?;
    let code = match unit {
        Unit::Byte(byte) => u32::from(byte),
        Unit::Char(char) => u32::from(char),
    };
    Ok((rest == b"'").then_some(code))
}

enum Unit {
    Byte(u8),
    Char(char),
}

impl Unit {
    fn append_to(self, out: &mut Vec<u8>) {
        match self {
            Self::Byte(byte) => out.push(byte),
            Self::Char(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// The first byte or character of a literal's body, and the rest.
fn unit(body: &[u8], quote: u8) -> Option<(Unit, &[u8])> {
    let [first, rest @ ..] = body else { return None };
    if *first == quote || *first == b'\n' {
        return None;
    }
    if *first != b'\\' {
        let (char, width) = decode(body);
        return Some((Unit::Char(char.unwrap_or(REPLACEMENT)), &body[width..]));
    }
    let [kind, rest @ ..] = rest else { return None };
    let number = |digits: usize, base: u32, rest: &'_ [u8]| {
        let text = std::str::from_utf8(rest.get(..digits)?).ok()?;
        let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then(|| u32::from_str_radix(text, base).ok()).flatten()
    };
    let unit = match kind {
        b'a' => Unit::Byte(7),
        b'b' => Unit::Byte(8),
        b'f' => Unit::Byte(0xc),
        b'n' => Unit::Byte(b'\n'),
        b'r' => Unit::Byte(b'\r'),
        b't' => Unit::Byte(b'\t'),
        b'v' => Unit::Byte(0xb),
        b'\\' => Unit::Byte(b'\\'),
        b'\'' | b'"' if *kind == quote => Unit::Byte(quote),
        b'x' => return Some((Unit::Byte(u8::try_from(number(2, 16, rest)?).ok()?), &rest[2..])),
        b'u' => return Some((Unit::Char(char::from_u32(number(4, 16, rest)?)?), &rest[4..])),
        b'U' => return Some((Unit::Char(char::from_u32(number(8, 16, rest)?)?), &rest[8..])),
        b'0'..=b'7' => {
            let rest = &body[1..];
            return Some((Unit::Byte(u8::try_from(number(3, 8, rest)?).ok()?), &rest[3..]));
        }
        _ => return None,
    };
    Some((unit, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printable_is_escaped() {
        assert_eq!(quote("é😀\u{7}\u{200b}\"\\".as_bytes(), false), r#""é😀\a\u200b\"\\""#);
        assert_eq!(quote("é😀".as_bytes(), true), r#""\u00e9\U0001f600""#);
        assert_eq!(quote(b"\xc3\x01", false), r#""\xc3\x01""#);
    }

    #[test]
    fn literals_are_read_back() {
        let literal = br#""tab\there\u00e9\x41\101\xff""#;
        assert_eq!(unquote(literal), Some(b"tab\there\xc3\xa9AA\xff".to_vec()));
        assert_eq!(unquote(br#""\'""#), None);
        assert_eq!(unquote(br#""\400""#), None);
        assert_eq!(unquote_char(b"'a'"), Ok(Some(97)));
        assert_eq!(unquote_char(b"'ab'"), Ok(None));
        assert_eq!(unquote_char(br"'\''"), Ok(Some(39)));
        assert!(unquote_char(b"''").is_err());
    }
}
