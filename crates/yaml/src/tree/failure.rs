//! Why a text cannot be read: for good, or before a quoted scalar is repaired.

use granit_parser::{ErrorKind, ScanError};

use crate::{Problem, places::Source, repair::Flaw};

/// A text that cannot be read, or not yet.
pub(super) enum Failure {
    Problem(Problem),
    /// The parser rejects a quoted scalar that YAML 1.1 allows.
    Quoted {
        flaw: Flaw,
        problem: Problem,
    },
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// `after` is the end of the last node.
pub(super) fn scan_failure(source: Source<'_>, error: &ScanError, after: usize) -> Failure {
    let problem = source.scan_problem(error);
    let Some(place) = error.marker().byte_offset() else { return Failure::Problem(problem) };
    let flaw = match error.kind() {
        ErrorKind::UnknownQuotedScalarEscape => Flaw::Escape(place),
        ErrorKind::InvalidQuotedScalarIndent | ErrorKind::TabInIndentation => {
            Flaw::Indent(after, place)
        }
        _ => return Failure::Problem(problem),
    };
    Failure::Quoted { flaw, problem }
}
