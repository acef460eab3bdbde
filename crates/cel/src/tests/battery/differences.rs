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
    let rows: [(&str, Row); 8] = [
        ("panic-in-function", panic_in_function),
        ("optional-quantity", optional_quantity),
        ("least-number", least_number),
        ("year-10000", year_10000),
        ("negative-depth", negative_depth),
        ("texts-of-formats", texts_of_formats),
        ("large-quantity", large_quantity),
        ("several-mistakes", several_mistakes),
    ];
    rows.into_iter().find(|(_, explains)| explains(ours, go)).map(|(row, _)| row)
}

type Row = fn(&Answer, &Answer) -> bool;

fn panic_in_function(ours: &Answer, go: &Answer) -> bool {
    let is_lookup = go.error.contains("hash of unhashable type");
    go.error.starts_with("internal error: ") && (!ours.error.is_empty() || is_lookup)
}

fn optional_quantity(_: &Answer, go: &Answer) -> bool {
    go.error.starts_with("unsupported conversion to ref.Val: (*resource.Quantity)")
}

/// The least number has no opposite in 64 bits.
fn least_number(_: &Answer, go: &Answer) -> bool {
    let expression = &go.question.expression;
    expression.contains(".sub(") && expression.contains("-9223372036854775808")
}

/// Both name a place, and Kubernetes the one that comes first, or that of the literals of times.
fn several_mistakes(ours: &Answer, go: &Answer) -> bool {
    let is_other = ["invalid duration argument", "invalid timestamp argument"]
        .iter()
        .any(|text| go.problem.contains(text) && !ours.problem.contains(text));
    go.line > 0 && (is_other || (go.line, go.column) < (ours.line, ours.column))
}

fn year_10000(ours: &Answer, _: &Answer) -> bool {
    ours.error.contains("after the year 9999")
}

/// Go's cost of a negative number of lists is that of the processor: less than nothing, or nothing.
fn negative_depth(ours: &Answer, go: &Answer) -> bool {
    let is_it = go.question.expression.contains(".flatten(");
    is_it && !ours.error.is_empty() && !go.error.is_empty() && go.cost < ours.cost
}

fn large_quantity(ours: &Answer, _: &Answer) -> bool {
    ours.error.contains("a quantity is too large")
}

/// Whether a text fits is the same.
fn texts_of_formats(ours: &Answer, go: &Answer) -> bool {
    let is_list = |answer: &Answer| answer.value.starts_with("optional([\"");
    go.question.expression.contains(".validate(") && is_list(ours) && is_list(go)
}
