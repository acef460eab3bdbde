//! The warnings of one answer; only the first ones are kept.

use std::{borrow::Cow, fmt};

use crate::text::printable;

/// Maximum number of warnings that are kept. An annotation may hold a million mistakes, and API
/// servers cut long lists of warnings.
pub const MAX_WARNINGS: usize = 10;

/// An annotation that was ignored, or applied in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The annotation's key; empty if the problem names it.
    pub annotation: &'static str,
    /// The problem with its value, and the consequence; one line, of printable characters.
    pub problem: String,
}

/// The first [`MAX_WARNINGS`] warnings and the number of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings {
    kept: Vec<Warning>,
    left_out: usize,
}

impl Warnings {
    /// Adds a warning; it is created only if it is kept. It may quote what others wrote, and clients
    /// print it on terminals: characters of its problem that are not printable are escaped.
    pub fn push(&mut self, warning: impl FnOnce() -> Warning) {
        if self.kept.len() < MAX_WARNINGS {
            let mut warning = warning();
            if let Cow::Owned(escaped) = printable(&warning.problem) {
                warning.problem = escaped;
            }
            self.kept.push(warning);
        } else {
            self.left_out += 1;
        }
    }

    /// The warnings that are kept.
    #[must_use]
    pub fn kept(&self) -> &[Warning] {
        &self.kept
    }

    /// The number of warnings that are not kept.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The number of all warnings.
    #[must_use]
    pub fn total(&self) -> usize {
        self.kept.len() + self.left_out
    }

    /// Whether there are no warnings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The line in place of the warnings that are not kept, if any.
    #[must_use]
    pub fn and_more(&self) -> Option<String> {
        match self.left_out {
            0 => None,
            1 => Some("and 1 more warning".to_owned()),
            count => Some(format!("and {count} more warnings")),
        }
    }

    /// The warnings as in answers and logs, a line each.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.kept.iter().map(Warning::to_string).chain(self.and_more())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.annotation.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.annotation, self.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(count: usize) -> (Warnings, usize) {
        let (mut warnings, mut written) = (Warnings::default(), 0);
        for index in 0..count {
            warnings.push(|| {
                written += 1;
                Warning { annotation: "a/b", problem: format!("item {index} is wrong") }
            });
        }
        (warnings, written)
    }

    #[test]
    fn ten_warnings_are_kept_and_the_others_counted() {
        let (found, written) = warnings(MAX_WARNINGS);
        assert_eq!((found.lines().count(), found.total(), written), (10, 10, 10));
        let (found, written) = warnings(MAX_WARNINGS + 1);
        assert_eq!((found.total(), found.left_out(), written), (11, 1, 10));
        assert_eq!(found.lines().last().as_deref(), Some("and 1 more warning"));
        let (found, written) = warnings(1_000_000);
        assert_eq!((found.total(), found.kept().len(), written), (1_000_000, 10, 10));
        let lines: Vec<_> = found.lines().collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], "a/b: item 0 is wrong");
        assert_eq!(lines[10], "and 999990 more warnings");
    }

    #[test]
    fn a_warning_is_one_line_of_printable_characters() {
        let mut warnings = Warnings::default();
        let problem = "a\u{1b}]0;x\u{7}\r\nb\u{9b}\u{202e}\u{2028}c".to_owned();
        warnings.push(|| Warning { annotation: "", problem });
        let line = warnings.lines().next().expect("a warning");
        assert_eq!(line, r"a\u{1b}]0;x\u{7}\r\nb\u{9b}\u{202e}\u{2028}c");
    }
}
