//! YAML as Kubernetes reads it, with what this program adds: nothing is dropped in silence.

#![expect(clippy::disallowed_types, reason = "configuration, manifests and objects from files")]

use injectd_gocompat::number::format_float;
use injectd_yaml::{Document, DuplicateKeys, Limits, MoreDocuments, Options, Problem, WholeFloats};
use serde_json::Value;

/// Manifests: of a key that is written twice the last one counts, as for kubectl, and the document
/// says so.
const MANIFESTS: Options = Options {
    duplicate_keys: DuplicateKeys::Noted,
    more_documents: MoreDocuments::Error,
    whole_floats: WholeFloats::Integers,
    limits: Limits::FILES,
};

/// Objects that configure this program: repeated keys are an error.
const OBJECTS: Options = Options { duplicate_keys: DuplicateKeys::Error, ..MANIFESTS };

/// What templates of Helm and others have, and objects hardly: `{{`.
const TEMPLATE: &str = "{{";

/// Parses the documents of a text one after another, with their places. The last of repeated keys
/// wins, and its document notes it.
pub fn stream(text: &str) -> impl Iterator<Item = Result<Document, Problem>> {
    read(text, MANIFESTS)
}

fn read(text: &str, options: Options) -> impl Iterator<Item = Result<Document, Problem>> {
    let documents = injectd_yaml::stream(text, options);
    documents.map(|document| document.map_err(|problem| with_hint(text, problem)))
}

/// The problem, and what to do if its line is that of a template. A template's line for itself may
/// end the line before.
fn with_hint(text: &str, mut problem: Problem) -> Problem {
    let (mut before, mut last) = ("", "");
    for line in text.lines().take(problem.line) {
        if !last.trim().is_empty() {
            before = last;
        }
        last = line;
    }
    if last.contains(TEMPLATE) || before.trim_start().starts_with(TEMPLATE) {
        problem.message.push_str("; it looks like a template: render it first");
    }
    problem
}

/// Parses the documents of a text and skips empty ones. Repeated keys are an error.
///
/// # Errors
/// The problem and its position, in one line.
pub fn parse_all(text: &str) -> Result<Vec<Value>, String> {
    let documents: Result<Vec<Value>, Problem> =
        read(text, OBJECTS).map(|document| document.map(|document| document.value)).collect();
    let documents = documents.map_err(|problem| problem.to_string())?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Parses one document. The last of repeated keys wins, as in upstream's configuration, and `1e6`
/// stays a float, which upstream prints as `1e+06` where it wants text.
///
/// # Errors
/// The problem and its position, in one line.
pub fn parse(text: &str) -> Result<Value, String> {
    let options = Options {
        duplicate_keys: DuplicateKeys::LastWins,
        more_documents: MoreDocuments::Error,
        whole_floats: WholeFloats::Floats,
        limits: Limits::FILES,
    };
    injectd_yaml::parse(text, options).map_err(|problem| problem.to_string())
}

/// A scalar as a string, with numbers as Go prints them.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) if number.is_f64() => number.as_f64().map(format_float),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line() {
        let problem = parse("a: [b").expect_err("must be rejected");
        assert!(problem.starts_with("line 1 column 4") && !problem.contains('\n'), "{problem}");
        let problem = parse_all("a: 1\na: 2").expect_err("must be rejected");
        assert!(problem.ends_with("duplicate mapping key: a"), "{problem}");
        let problem = parse_all("a:\n  b: {{ .Values.b }}\n").expect_err("must be rejected");
        assert!(problem.ends_with("it looks like a template: render it first"), "{problem}");
        let problem = parse("a: 1\n---\nb: 2").expect_err("must be rejected");
        assert!(problem.contains("a second document begins here"), "{problem}");
        let problem = parse("null: 1").expect_err("must be rejected");
        assert!(problem.contains("expected a string as key, found null"), "{problem}");
    }

    #[test]
    fn scalars_are_typed_as_in_version_1_1() {
        let tree =
            parse("a: off\nb: 0777\nc: 1_000\nd: y\ne: 1:30\nf: '0777'\ng: 1\ng: 2").expect("YAML");
        let expected = serde_json::json!({"a": false, "b": 511, "c": 1000, "d": true, "e": "1:30",
            "f": "0777", "g": 2});
        assert_eq!(tree, expected);
    }
}
