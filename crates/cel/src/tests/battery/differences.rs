//! Where an answer may differ, and why.

use super::oracle::Answer;

/// The part of the answers that differs.
pub(super) fn part(ours: &Answer, go: &Answer) -> Option<&'static str> {
    if go.panics || go.varies {
        return None;
    }
    if ours.problem.is_empty() != go.problem.is_empty() {
        return Some("compiles");
    }
    if !go.problem.is_empty() {
        let is_same = (ours.line, ours.column) == (go.line, go.column);
        // Literals of functions have no place.
        return (ours.line > 0 && go.line > 0 && !is_same).then_some("place");
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

/// Why the answers differ; `None` if they should not. Each is a row of `docs/differences.md`.
pub(super) fn explained(ours: &Answer, go: &Answer) -> Option<&'static str> {
    let rows: [(&str, Row); 5] = [
        ("panic-in-function", panic_in_function),
        ("optional-quantity", optional_quantity),
        ("least-number", least_number),
        ("year-10000", year_10000),
        ("several-mistakes", several_mistakes),
    ];
    rows.into_iter().find(|(_, explains)| explains(ours, go)).map(|(row, _)| row)
}

type Row = fn(&Answer, &Answer) -> bool;

fn panic_in_function(ours: &Answer, go: &Answer) -> bool {
    go.error.starts_with("internal error: ") && !ours.error.is_empty()
}

fn optional_quantity(_: &Answer, go: &Answer) -> bool {
    go.error.starts_with("unsupported conversion to ref.Val: (*resource.Quantity)")
}

/// The least number has no opposite in 64 bits.
fn least_number(_: &Answer, go: &Answer) -> bool {
    go.question.expression.contains(".sub(-9223372036854775808)")
}

/// Both name a place, and Kubernetes the one that comes first.
fn several_mistakes(ours: &Answer, go: &Answer) -> bool {
    go.line > 0 && (go.line, go.column) < (ours.line, ours.column)
}

fn year_10000(ours: &Answer, _: &Answer) -> bool {
    ours.error.contains("after the year 9999")
}
