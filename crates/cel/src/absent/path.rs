//! Where a value is.

use std::{fmt::Write as _, sync::Arc};

/// A step to a field or an element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// A field, or an entry of a map.
    Field(Arc<str>),
    /// The first element, or the one that a macro has.
    Element,
    /// Another element.
    Index(u64),
    /// A field or element that is not known, by how its key is made.
    Any(u64),
}

/// Where something is: a variable and the steps to it.
pub type Path = Arc<[Step]>;

/// A path with one more step.
pub(super) fn join(path: &Path, step: Step) -> Path {
    path.iter().cloned().chain([step]).collect()
}

/// A path as people write it.
#[must_use]
pub fn display(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        let written = match step {
            Step::Field(name) if is_name(name) && text.is_empty() => write!(text, "{name}"),
            Step::Field(name) if is_name(name) => write!(text, ".{name}"),
            Step::Field(name) => write!(text, "['{name}']"),
            Step::Element => write!(text, "[]"),
            Step::Index(index) => write!(text, "[{index}]"),
            Step::Any(_) => write!(text, "[…]"),
        };
        // A String takes everything.
        debug_assert!(written.is_ok());
    }
    text
}

/// Whether a field is written behind a dot.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
