//! Errors of reading JSON: the field, and the expected and the found value.

use std::fmt;

/// Maximum length of a key in an error: Kubernetes' keys have at most 317 bytes.
const MAX_KEY_BYTES: usize = 320;

/// A field with another value than the expected one.
#[derive(Debug)]
pub struct ReadError(Box<Problem>);

#[derive(Debug)]
struct Problem {
    /// The field, its innermost part first.
    path: Vec<Step>,
    expected: &'static str,
    found: &'static str,
}

#[derive(Debug)]
pub(super) enum Step {
    Member(String),
    Item(usize),
}

impl ReadError {
    #[cold]
    pub(super) fn new(expected: &'static str, found: &'static str) -> Self {
        Self(Box::new(Problem { path: Vec::new(), expected, found }))
    }

    #[cold]
    pub(super) fn within(mut self, step: Step) -> Self {
        self.0.path.push(step);
        self
    }

    /// Path of the field; empty for the whole text.
    #[must_use]
    pub fn field(&self) -> String {
        let mut field = String::new();
        for step in self.0.path.iter().rev() {
            let dot = if field.is_empty() { "" } else { "." };
            match step {
                Step::Member(key) => field.extend([dot, key]),
                Step::Item(index) => field.extend(["[", &index.to_string(), "]"]),
            }
        }
        field
    }

    /// The problem with the field.
    #[must_use]
    pub fn problem(&self) -> String {
        format!("expected {}, found {}", self.0.expected, self.0.found)
    }
}

impl Step {
    /// A member; a key that is too long is cut.
    #[cold]
    pub(super) fn member(key: &str) -> Self {
        match key.len() {
            ..=MAX_KEY_BYTES => Self::Member(key.to_owned()),
            _ => Self::Member([&key[..key.floor_char_boundary(MAX_KEY_BYTES)], "…"].concat()),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, problem) = (self.field(), self.problem());
        if field.is_empty() { f.write_str(&problem) } else { write!(f, "{field}: {problem}") }
    }
}

impl std::error::Error for ReadError {}
