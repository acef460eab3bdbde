//! Cuts long texts of a caller for answers and logs.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

use super::{MAX_DENIAL_BYTES, MAX_NAME_BYTES};
use crate::view::Text;

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

/// The reason of a denial, of at most [`MAX_DENIAL_BYTES`].
#[must_use]
pub fn bounded_denial(reason: Cow<'static, str>) -> Cow<'static, str> {
    match reason.len() {
        ..=MAX_DENIAL_BYTES => reason,
        _ => Cow::Owned(bounded(&reason, MAX_DENIAL_BYTES)),
    }
}

/// The name of an object for the log, of at most [`MAX_NAME_BYTES`].
#[must_use]
pub fn bounded_name<'a>(name: &Text<'a>) -> Text<'a> {
    match name.len() {
        ..=MAX_NAME_BYTES => name.clone(),
        _ => Text(Cow::Owned(bounded(&name.0, MAX_NAME_BYTES))),
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
