//! An error with its causes, as one text.

use std::{error::Error, fmt::Write as _};

/// An error and the chain of its causes.
///
/// # Panics
/// Never: a string takes text.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Some errors include the text of their cause.
        let message = error.to_string();
        if !text.contains(&message) {
            write!(text, ": {message}").expect("a string must take text");
        }
        cause = error.source();
    }
    text
}
