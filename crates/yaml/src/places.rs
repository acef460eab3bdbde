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
        }
    }

    /// A problem at a byte of the text.
    pub(crate) fn problem_at(&self, offset: usize, message: impl Into<String>) -> Problem {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Problem {
            line: self.lines_before + before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
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
            ErrorKind::InputSlicingUnavailable | ErrorKind::InputOffsetsWithoutSlice => {
                "not valid YAML".to_owned()
            }
            kind => kind.to_string(),
        };
        self.problem(*error.marker(), message)
    }
}

pub(crate) fn too_deep() -> String {
    format!("more than {MAX_NESTING} lists and mappings inside of one another")
}
