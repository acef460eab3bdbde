//! Cuts long texts of a caller for answers and logs.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

use super::{MAX_DENIAL_BYTES, MAX_SUBDOMAIN_BYTES};
use crate::{text::printable_lines, view::Text};

const MORE: char = '…';

/// A text of at most `max_bytes`; a longer one is cut and ends with `…`.
#[must_use]
pub fn bounded(text: &impl fmt::Display, max_bytes: usize) -> String {
    let mut out = Bounded { text: String::new(), room: max_bytes };
    if write!(out, "{text}").is_ok() {
        return out.text;
    }
    let Bounded { mut text, .. } = out;
    text.truncate(text.floor_char_boundary(max_bytes.saturating_sub(MORE.len_utf8())));
    text.push(MORE);
    text
}

/// The reason of a denial, of at most [`MAX_DENIAL_BYTES`] and without characters that a terminal would
/// follow: kubectl prints it, and it may quote the object.
#[must_use]
pub fn bounded_denial(reason: Cow<'static, str>) -> Cow<'static, str> {
    let cut = |text: Cow<'static, str>| match text.len() {
        ..=MAX_DENIAL_BYTES => text,
        _ => Cow::Owned(bounded(&text, MAX_DENIAL_BYTES)),
    };
    let reason = cut(reason);
    match printable_lines(&reason) {
        Cow::Borrowed(_) => reason,
        Cow::Owned(escaped) => cut(Cow::Owned(escaped)),
    }
}

/// The name of an object for the log, of at most [`MAX_SUBDOMAIN_BYTES`].
#[must_use]
pub fn bounded_name<'a>(name: &Text<'a>) -> Text<'a> {
    match name.len() {
        ..=MAX_SUBDOMAIN_BYTES => name.clone(),
        _ => Text(Cow::Owned(bounded(&name.0, MAX_SUBDOMAIN_BYTES))),
    }
}

struct Bounded {
    text: String,
    room: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let taken = &piece[..piece.floor_char_boundary(self.room)];
        self.text.push_str(taken);
        self.room -= taken.len();
        if taken.len() == piece.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_reaches_no_terminal_raw() {
        let denial = bounded_denial(Cow::Owned("1 error:\n\t* \u{1b}]0;x\u{7}\r".to_owned()));
        assert_eq!(denial, "1 error:\n\t* \\u{1b}]0;x\\u{7}\\r");
        let long = bounded_denial(Cow::Owned("\u{1b}".repeat(2 * MAX_DENIAL_BYTES)));
        assert!(long.len() <= MAX_DENIAL_BYTES);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (text, expected) in [
            ("", ""),
            ("12345678", "12345678"),
            ("123456789", "12345…"),
            ("1234ää", "1234ää"),
            ("1234ääx", "1234…"),
            ("äääää", "ää…"),
            ("…………", "……"),
        ] {
            let found = bounded(&text, 8);
            assert_eq!(found, expected, "{text}");
            assert!(found.len() <= 8, "{text}");
        }
    }
}
