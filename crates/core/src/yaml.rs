//! YAML as Kubernetes reads it: version 1.1's booleans and octal numbers.

#![expect(clippy::disallowed_types, reason = "configuration, manifests and objects from files")]

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Error, Options, options};

/// Parses the documents of a text and skips empty ones. Repeated keys are an error.
///
/// # Errors
/// The problem and its position, in one line.
pub fn parse_all(text: &str) -> Result<Vec<Value>, String> {
    let documents: Result<Vec<Value>, _> =
        serde_saphyr::from_multiple_with_options(text, as_kubernetes(DuplicateKeyPolicy::Error));
    let documents = documents.map_err(|error| problem(&error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Parses one document. The last of repeated keys wins, as in upstream's configuration.
///
/// # Errors
/// The problem and its position, in one line.
pub fn parse(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str_with_options(text, as_kubernetes(DuplicateKeyPolicy::LastWins))
        .map_err(|error| problem(&error))
}

fn as_kubernetes(duplicate_keys: DuplicateKeyPolicy) -> Options {
    options! { legacy_octal_numbers: true, duplicate_keys: duplicate_keys }
}

/// The first line of the parser's message; the other lines quote the text.
fn problem(error: &Error) -> String {
    let message = error.to_string();
    let line = message.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    // The parser advises its callers on Rust types and options.
    let line = line.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
    let line = line.split("; use ").next().unwrap_or_default();
    line.replace("cannot deserialize null into string", "expected a string, found null")
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
        let problem = parse("a: 1\n---\nb: 2").expect_err("must be rejected");
        assert!(problem.ends_with("multiple YAML documents detected"), "{problem}");
        let problem = parse("null: 1").expect_err("must be rejected");
        assert!(problem.ends_with("expected a string, found null"), "{problem}");
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
