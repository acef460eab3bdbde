//! An error with its causes, as one text.

use std::{error::Error, fmt::Write as _};

/// An error and the chain of its causes.
///
/// # Panics
/// Never: a string takes text.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    texts_of(error, |_| None)
}

/// The same with a text in place of some errors: it includes that of their causes.
///
/// # Panics
/// Never: a string takes text.
#[must_use]
pub fn texts_of(
    error: &(dyn Error + 'static),
    in_place: impl Fn(&(dyn Error + 'static)) -> Option<String>,
) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let whole = in_place(error);
        next = if whole.is_some() { None } else { error.source() };
        let message = whole.unwrap_or_else(|| error.to_string());
        // Some errors include the text of their cause.
        if text.is_empty() {
            text = message;
        } else if !text.contains(&message) {
            write!(text, ": {message}").expect("a string must take text");
        }
    }
    text
}
