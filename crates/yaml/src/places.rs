//! Places in a text, for problems.

use granit_parser::{ErrorKind, Marker, ScanError};

use crate::{MAX_NESTING, Problem};

/// A part of a text, and the number of lines before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'t> {
    pub(crate) text: &'t str,
    pub(crate) lines_before: usize,
    /// The last line is read as if a line break ended it.
    pub(crate) ends_line: bool,
}

impl Source<'_> {
    pub(crate) fn problem(&self, mark: Marker, message: impl Into<String>) -> Problem {
        Problem {
            line: self.lines_before + mark.line(),
            column: mark.col() + 1,
            message: message.into(),
            is_over_limit: false,
            is_duplicate_key: false,
        }
    }

    /// A problem at a byte of the text.
    pub(crate) fn problem_at(&self, offset: usize, message: impl Into<String>) -> Problem {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = line_start(before, before.len());
        Problem {
            line: self.lines_before + before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
            is_over_limit: false,
            is_duplicate_key: false,
        }
    }

    /// The problem that the parser found.
    pub(crate) fn scan_problem(&self, error: &ScanError) -> Problem {
        let message = match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(),
            ErrorKind::UnknownAnchor => "the alias has no anchor before it".to_owned(),
            ErrorKind::UndeclaredTagHandle => "the handle of the tag is not declared".to_owned(),
            ErrorKind::UnexpectedEof => "the text ends too early".to_owned(),
            ErrorKind::UnexpectedCharacter { .. } => {
                "this character cannot begin a value; quote the text".to_owned()
            }
            ErrorKind::InvalidQuotedScalarIndent | ErrorKind::UnclosedQuotedScalar => {
                "this quoted text does not end, or its next line is not indented".to_owned()
            }
            ErrorKind::UnknownQuotedScalarEscape => {
                "an escape that YAML does not have; write \\\\ for a backslash".to_owned()
            }
            ErrorKind::ExpectedDocumentStart => "expected --- after a directive".to_owned(),
            ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
                "expected a colon after this key".to_owned()
            }
            ErrorKind::InvalidColonPlacement | ErrorKind::MappingValueNotAllowed => {
                "a colon and a blank are not allowed here; quote the text".to_owned()
            }
            ErrorKind::InvalidBlockScalarHeader | ErrorKind::ZeroBlockScalarIndent => {
                "after | or >, only a digit, + or - and a comment are allowed".to_owned()
            }
            ErrorKind::InvalidBlockScalarIndent => {
                "the lines of this text are not indented alike".to_owned()
            }
            ErrorKind::InputSlicingUnavailable | ErrorKind::InputOffsetsWithoutSlice => {
                "not valid YAML".to_owned()
            }
            kind => kind.to_string(),
        };
        self.problem(*error.marker(), message)
    }
}

/// Where the line of a byte begins.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |newline| newline + 1)
}

pub(crate) fn too_deep() -> String {
    format!("more than {MAX_NESTING} lists and mappings inside of one another")
}
