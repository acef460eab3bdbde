//! YAML as Kubernetes reads it: version 1.1's booleans and octal numbers.

#![expect(clippy::disallowed_types, reason = "configuration, manifests and objects from files")]

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Error, Options, options};

/// Parses the documents of a text; empty ones are passed over. Repeated keys are an error.
///
/// # Errors
/// What is wrong with the text and where, in one line.
pub fn parse_all(text: &str) -> Result<Vec<Value>, String> {
    let documents: Result<Vec<Value>, _> =
        serde_saphyr::from_multiple_with_options(text, as_kubernetes(DuplicateKeyPolicy::Error));
    let documents = documents.map_err(|error| problem(&error))?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Parses one document. Of repeated keys the last one counts, as for upstream's configuration.
///
/// # Errors
/// What is wrong with the text and where, in one line.
pub fn parse(text: &str) -> Result<Value, String> {
    serde_saphyr::from_str_with_options(text, as_kubernetes(DuplicateKeyPolicy::LastWins))
        .map_err(|error| problem(&error))
}

fn as_kubernetes(duplicate_keys: DuplicateKeyPolicy) -> Options {
    options! { legacy_octal_numbers: true, duplicate_keys: duplicate_keys }
}

/// The first line of the parser's message, which goes on to quote the text.
fn problem(error: &Error) -> String {
    let message = error.to_string();
    let line = message.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    line.split(", set DuplicateKeyPolicy").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_in_one_line() {
        let told = parse("a: [b").expect_err("must be refused");
        assert!(told.starts_with("line 1 column 4") && !told.contains('\n'), "{told}");
        let told = parse_all("a: 1\na: 2").expect_err("must be refused");
        assert!(told.ends_with("duplicate mapping key: a"), "{told}");
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
