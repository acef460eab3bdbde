//! Strings with escapes.

use super::scan;

/// The string whose opening quote is just before `begin`, without escapes, and the index of its closing
/// quote; `None` if it does not end or is not well-formed.
pub(super) fn unescaped(text: &str, begin: usize) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let (mut out, mut plain, mut at) = (String::new(), begin, begin);
    loop {
        match *bytes.get(at)? {
            b'"' => {
                out.push_str(&text[plain..at]);
                return Some((out, at));
            }
            b'\\' => {
                if plain < at {
                    out.push_str(&text[plain..at]);
                }
                let (character, length) = escape(&bytes[at + 1..])?;
                out.push(character);
                at += 1 + length;
                plain = at;
            }
            ..b' ' => return None,
            _ => at += 1 + scan::plain_bytes(&bytes[at + 1..]),
        }
    }
}

/// The character of an escape and its length; `bytes` begin after the backslash.
pub(super) fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let character = match *bytes.first()? {
        byte @ (b'"' | b'\\' | b'/') => byte.into(),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return escaped_unit(bytes),
        _ => return None,
    };
    Some((character, 1))
}

/// `uXXXX`, or two of them that make a surrogate pair.
fn escaped_unit(bytes: &[u8]) -> Option<(char, usize)> {
    const LENGTH: usize = "uXXXX".len();
    let unit = |bytes: &[u8]| {
        let digits = bytes.get(..LENGTH)?.strip_prefix(b"u")?;
        digits
            .iter()
            .try_fold(0, |unit: u32, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
    };
    let first = unit(bytes)?;
    if !(0xD800..0xDC00).contains(&first) {
        // Half a pair is not a character.
        return Some((char::from_u32(first)?, LENGTH));
    }
    let second = unit(bytes.get(LENGTH..)?.strip_prefix(b"\\")?)?;
    let low = (0xDC00..0xE000).contains(&second).then(|| second - 0xDC00)?;
    let character = char::from_u32(0x1_0000 + ((first - 0xD800) << 10 | low))?;
    Some((character, 2 * LENGTH + 1))
}
