//! Text that Go prints: which characters are printable, and literals in quotes.

use std::fmt::Write as _;

/// Whether a character may stand in text that a terminal or a line reader interprets: letters, marks,
/// numbers, punctuation, symbols and the ASCII space. Not so: controls, format characters such as
/// U+202E, separators of lines and other spaces, private and unassigned characters.
///
/// Go: `strconv.IsPrint`. The tables are those of Rust's standard library.
#[must_use]
pub fn is_print(letter: char) -> bool {
    if letter.is_ascii() {
        return matches!(letter, ' '..='~');
    }
    // Rust escapes the same characters, but marks only at the beginning.
    let mut bytes = [b'a'; 5];
    let length = letter.encode_utf8(&mut bytes[1..]).len();
    str::from_utf8(&bytes[..=length]).is_ok_and(|text| text.escape_debug().nth(2).is_none())
}

/// A string literal in double quotes. Go: `strconv.Quote`, `%q`.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        push_escaped(letter, '"', false, &mut out);
    }
    out.push('"');
    out
}

/// Appends a character as it stands in a literal with these quotes; if `ascii`, with an escape for each
/// character that is not ASCII. Go: `appendEscapedRune` of `strconv`.
pub fn push_escaped(letter: char, quote: char, ascii: bool, out: &mut String) {
    let short = match letter {
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{b}' => 'v',
        '\\' => '\\',
        _ if letter == quote => quote,
        _ if is_print(letter) && (letter.is_ascii() || !ascii) => return out.push(letter),
        _ => {
            let code = u32::from(letter);
            // Writing into a String cannot fail.
            _ = match code {
                0..=0x1f | 0x7f => write!(out, "\\x{code:02x}"),
                0..=0xffff => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
            return;
        }
    };
    out.extend(['\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_printed_and_format_characters_are_not() {
        for letter in ['a', ' ', '~', 'é', '\u{301}', '中', '😀', '\u{fffd}'] {
            assert!(is_print(letter), "{letter:?}");
        }
        let others = "\0\t\n\r\u{1b}\u{7f}\u{85}\u{9b}\u{a0}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\
            \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}\u{e000}\
            \u{e0001}\u{e007f}\u{10ffff}";
        for letter in others.chars() {
            assert!(!is_print(letter), "{letter:?}");
        }
    }

    #[test]
    fn literals_are_those_of_go() {
        for (text, expected) in [
            ("a", r#""a""#),
            ("a\"b\\'", r#""a\"b\\'""#),
            ("\u{7}\t\n\0\u{7f}\u{1b}", r#""\a\t\n\x00\x7f\x1b""#),
            ("é\u{85}😀\u{301}", "\"é\\u0085😀\u{301}\""),
            ("\u{202e}\u{2028}\u{e0001}", r#""\u202e\u2028\U000e0001""#),
        ] {
            assert_eq!(quote(text), expected);
        }
    }
}
