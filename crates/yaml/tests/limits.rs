//! Limits, and the places of problems.

use injectd_yaml::{DuplicateKeys, MAX_NESTING, MoreDocuments, Options, documents, parse};

const ALL: Options = Options {
    duplicate_keys: DuplicateKeys::Error,
    more_documents: MoreDocuments::Error,
    whole_floats: injectd_yaml::WholeFloats::Integers,
};

fn problem(text: &str) -> String {
    documents(text, ALL).expect_err("must be rejected").to_string()
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&nested(MAX_NESTING), ALL).is_ok());
    assert!(documents(&format!("{{\"a\":{}}}", nested(MAX_NESTING - 1)), ALL).is_ok());
    for text in [
        nested(MAX_NESTING + 1),
        format!("{{\"a\":{}}}", nested(MAX_NESTING)),
        "- ".repeat(MAX_NESTING + 1),
    ] {
        assert!(problem(&text).contains("more than 300 lists and mappings"));
    }
}

#[test]
fn aliases_stop_before_they_fill_the_memory() {
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(300));
    assert!(problem(&long).contains("aliases make too much of the document"));
}

#[test]
fn problems_name_their_place_in_the_whole_text() {
    let text = "a: 1\n---\n\u{e9}: 1\n\u{e9}: 2\n";
    assert_eq!(problem(text), "line 4 column 4: duplicate mapping key: \u{e9}");
    assert!(problem("a: 1\n---\nb: [\n").starts_with("line 3 column 4: "));
    assert!(problem("a: 1\n...\nb: 1\n").starts_with("line 3 column 1: a second document"));
    assert!(
        problem("{\"a\":1}\n{\"a\":1}\n  {\"a\" 1}\n")
            .starts_with("line 3 column 8: not valid JSON")
    );
}
