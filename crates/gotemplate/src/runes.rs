//! Characters in bytes, and their classes, as Go's `unicode/utf8` and `unicode` have them.
//!
//! Rust has no general categories of characters. Letters are Rust's alphabetic characters, which
//! are a few combining marks more.

/// What Go puts in place of bytes that are not UTF-8.
pub(crate) const REPLACEMENT: char = '\u{fffd}';

/// The first character and how many bytes it has; `None` for one byte that is not UTF-8.
///
/// Go: `utf8.DecodeRune`. No bytes are `(None, 0)`.
pub(crate) fn decode(bytes: &[u8]) -> (Option<char>, usize) {
    let Some(first) = bytes.first() else { return (None, 0) };
    let width = match first {
        0..=0x7f => return (Some(char::from(*first)), 1),
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (None, 1),
    };
    let text = bytes.get(..width).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(char) => (Some(char), width),
        None => (None, 1),
    }
}

/// The characters of bytes, each with its place and width; `None` for a byte that is not UTF-8.
pub(crate) fn runes(bytes: &[u8]) -> impl Iterator<Item = (usize, Option<char>, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (char, width) = decode(bytes.get(at..)?);
        if width == 0 {
            return None;
        }
        at += width;
        Some((at - width, char, width))
    })
}

/// How many characters the bytes have. Go: `utf8.RuneCount`.
pub(crate) fn count(bytes: &[u8]) -> usize {
    runes(bytes).count()
}

/// The bytes with another character for each one; bytes that are not UTF-8 become U+FFFD.
///
/// Go: `strings.Map`.
pub(crate) fn map(bytes: &[u8], mut other: impl FnMut(char) -> char) -> Vec<u8> {
    let mut out = String::with_capacity(bytes.len());
    out.extend(runes(bytes).map(|(_, char, _)| other(char.unwrap_or(REPLACEMENT))));
    out.into_bytes()
}

/// Go: `unicode.IsSpace`.
pub(crate) fn is_space(char: char) -> bool {
    char.is_whitespace()
}

/// Go: `strings.TrimSpace`.
pub(crate) fn trim_space(bytes: &[u8]) -> &[u8] {
    let is_solid =
        |&(_, char, _): &(usize, Option<char>, usize)| char.is_none_or(|char| !is_space(char));
    let Some((start, ..)) = runes(bytes).find(is_solid) else { return &[] };
    let end = runes(bytes).filter(is_solid).last().map_or(start, |(at, _, width)| at + width);
    &bytes[start..end]
}

/// Go: `unicode.IsLetter`.
pub(crate) fn is_letter(char: char) -> bool {
    char.is_alphabetic()
}

/// Go: `unicode.IsDigit`: decimal digits of any script. Of other scripts only the common ones.
pub(crate) fn is_digit(char: char) -> bool {
    char.is_ascii_digit() || !char.is_ascii() && char.is_numeric() && !char.is_alphabetic()
}

/// The one upper-case character of this one. Go: `unicode.ToUpper`.
pub(crate) fn upper(char: char) -> char {
    let with_iota = match char {
        '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => 8,
        '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => 9,
        _ => return only(char.to_uppercase()).unwrap_or(char),
    };
    char::from_u32(u32::from(char) + with_iota).unwrap_or(char)
}

/// The one lower-case character of this one. Go: `unicode.ToLower`.
pub(crate) fn lower(char: char) -> char {
    if char == '\u{130}' { 'i' } else { only(char.to_lowercase()).unwrap_or(char) }
}

/// The one title-case character of this one. Go: `unicode.ToTitle`.
pub(crate) fn title(char: char) -> char {
    match char {
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        '\u{10d0}'..='\u{10fa}' | '\u{10fd}'..='\u{10ff}' => char,
        _ => upper(char),
    }
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_not_utf8_is_one_character() {
        let found: Vec<_> = runes(b"a\xc3\xff\xc3\xa9").collect();
        assert_eq!(found, [(0, Some('a'), 1), (1, None, 1), (2, None, 1), (3, Some('é'), 2)]);
        assert_eq!(map(b"a\xff", upper), "A\u{fffd}".as_bytes());
    }

    #[test]
    fn one_character_becomes_one_character() {
        assert_eq!(upper('ß'), 'ß');
        assert_eq!(lower('İ'), 'i');
        assert_eq!(title('ǆ'), 'ǅ');
        assert_eq!(upper('ᾳ'), 'ᾼ');
    }
}
