//! Why a template could not be rendered.

use crate::quote::quote;

/// Why a template could not be rendered, and where.
///
/// It prints as in Go: `template: NAME:LINE:COLUMN: executing "NAME" at <EXPRESSION>: MESSAGE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecError {
    /// The name of the template that was executed: the text's own or one that it defines.
    pub template: String,
    /// Where in the text, if the error has a place.
    pub location: Option<Location>,
    /// One line of English.
    pub message: String,
}

/// A place in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name of the text.
    pub text: String,
    /// Counted from 1.
    pub line: usize,
    /// Bytes before the place in its line.
    pub column: usize,
    /// The expression there.
    pub expression: String,
}

impl std::error::Error for ExecError {}

impl std::fmt::Display for ExecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { template, location, message } = self;
        let Some(Location { text, line, column, expression }) = location else {
            return write!(f, "template: {template}: {message}");
        };
        let template = quote(template.as_bytes(), false);
        write!(f, "template: {text}:{line}:{column}: executing {template} at ")?;
        write!(f, "<{expression}>: {message}")
    }
}
