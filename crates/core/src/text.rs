//! Text from outside, such as names and annotations, as terminals and line readers may have it.
//!
//! Escapes what is not printable: a terminal would follow ESC and U+009B, order text by U+202E, and
//! begin a line at CR, U+2028 and LF. Not for data that programs read back; JSON has
//! [`printable_json`].

use std::{borrow::Cow, fmt::Write as _};

use injectd_gocompat::text::is_print;

/// The text on one line, with an escape such as `\n`, `\u{1b}` or `\u{202e}` for each character that
/// is not printable. Text without such characters stays as it is, backslashes too.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_print, |letter, out| out.extend(letter.escape_debug()))
}

/// The same, but line breaks and tabs stay: for text of several lines.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let is_kept = |letter| matches!(letter, '\n' | '\t') || is_print(letter);
    escaped(text, is_kept, |letter, out| out.extend(letter.escape_debug()))
}

/// Text of JSON with the escape `\uXXXX` for each character of a string that is not printable. JSON
/// itself allows U+009B, U+202E and U+2028 in strings.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    // Between strings there are only ASCII characters, and in strings no raw ASCII controls but DEL.
    let is_kept = |letter| matches!(letter, '\0'..='~') || is_print(letter);
    escaped(json, is_kept, |letter, out| {
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing into a String cannot fail.
            _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// The first of some names, and how many more there are: `a, b and 3 more`. `count` is that of all, of
/// which the iterator may have only the first.
#[must_use]
pub fn first_names<'n>(
    names: impl IntoIterator<Item = &'n str>,
    count: usize,
    most: usize,
) -> String {
    let first: Vec<_> = names.into_iter().take(most).collect();
    match count.saturating_sub(first.len()) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The text with an escape for each character that is not kept.
fn escaped(
    text: &str,
    is_kept: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
    if text.as_bytes().iter().all(is_plain) || text.chars().all(&is_kept) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_kept(letter) {
            out.push(letter);
        } else {
            escape(letter, &mut out);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_printable_is_escaped_and_nothing_else() {
        for (text, expected) in [
            ("", ""),
            ("web-1 \"x\" \\ 'y'", "web-1 \"x\" \\ 'y'"),
            ("ü 中 e\u{301} 🚀", "ü 中 e\u{301} 🚀"),
            ("a\tb\r\nc\0\u{1b}[31m\u{7f}", r"a\tb\r\nc\0\u{1b}[31m\u{7f}"),
            ("\u{9b}\u{202e}\u{2066}\u{200b}", r"\u{9b}\u{202e}\u{2066}\u{200b}"),
            ("\u{2028}\u{2029}\u{e0001}", r"\u{2028}\u{2029}\u{e0001}"),
        ] {
            let printed = printable(text);
            assert_eq!(printed, expected);
            assert_eq!(printable(&printed), printed);
        }
    }

    #[test]
    fn lines_stay_lines() {
        let printed = printable_lines("1 error:\n\t* \u{1b}[31mx\r\u{202e}\u{2028}");
        assert_eq!(printed, "1 error:\n\t* \\u{1b}[31mx\\r\\u{202e}\\u{2028}");
    }

    #[test]
    fn json_stays_the_same_value() {
        for (text, expected) in [
            ("a\tb\u{1b}\"\\ü", r#""a\tb\u001b\"\\ü""#),
            ("\u{7f}\u{9b}[31m\u{202e}\u{2028}", r#""\u007f\u009b[31m\u202e\u2028""#),
            ("\u{e0001}ü🚀", r#""\udb40\udc01ü🚀""#),
        ] {
            let json = serde_json::to_string_pretty(&[text]).expect("JSON");
            let printed = printable_json(&json);
            assert_eq!(printed, format!("[\n  {expected}\n]"));
            assert_eq!(serde_json::from_str::<[String; 1]>(&printed).expect("JSON"), [text]);
        }
    }
}
