//! What is wrong in a template.

use std::fmt;

/// A problem of a template, and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The path of the field, such as `spec.steps[1].overlay.spec.containers[0].image`.
    pub field: String,
    /// Line and column in the text of the field, both from 1, if the problem is in an expression.
    pub place: Option<(usize, usize)>,
    /// What was found, and what was expected.
    pub text: String,
}

impl Problem {
    /// A problem of a whole field.
    #[must_use]
    pub fn new(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self { field: field.into(), place: None, text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.field)?;
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.text)
    }
}
