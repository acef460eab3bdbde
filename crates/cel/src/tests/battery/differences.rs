//! Where an answer may differ, and why.

use super::oracle::Answer;

/// The part of the answers that differs.
pub(super) fn part(ours: &Answer, go: &Answer) -> Option<&'static str> {
    if go.panics {
        return None;
    }
    if ours.problem.is_empty() != go.problem.is_empty() {
        return Some("compiles");
    }
    if !go.problem.is_empty() {
        return None;
    }
    let parts = [
        ("type", ours.r#type == go.r#type),
        ("fails", ours.error.is_empty() == go.error.is_empty()),
        ("value", ours.value == go.value),
        // The cost that is over the limit depends on when it is counted.
        ("cost", ours.cost == go.cost || go.error.contains("cost limit exceeded")),
    ];
    parts.into_iter().find(|(_, is_same)| !is_same).map(|(part, _)| part)
}

/// Why the answers differ; `None` if they should not. Each kind is a row of `docs/differences.md`.
pub(super) fn explained(_ours: &Answer, _go: &Answer) -> Option<&'static str> {
    None
}
