//! Keys, flow collections and keys that are written twice.

use super::*;

const A: &str = "example.org/a";

/// A template whose container has these lines.
fn revision(lines: &[&str]) -> Revision {
    let lines = lines.iter().fold(String::new(), |all, line| all + "\n        " + line);
    let config = format!(
        "policy: enabled\ntemplates:\n  sidecar: |\n    spec:\n      containers:\n      - name: \
         istio-proxy{lines}\n"
    );
    revision_of(&config, "{}", "").with_tainted_values(TaintedValues::Deny)
}

fn is_denied(revision: &Revision, annotations: &Value) -> bool {
    let denial = inject(revision, &pod(annotations)).err();
    let is_of_taint = |denial: &String| denial.contains("than a value: as text in the template");
    let is_denied = denial.as_ref().is_some_and(is_of_taint);
    assert_eq!(denial.is_some(), is_denied, "{denial:?}");
    is_denied
}

#[test]
fn json_without_texts_is_found_in_a_flow_list() {
    let value = "{{ index .ObjectMeta.Annotations `example.org/a` }}";
    for line in [format!("args: [{value}]"), format!("args: [\"a\", {value}, \"b\"]")] {
        let revision = revision(&[&line]);
        for own in
            ["[1,2]", "[]", "{}", "[[],{}]", r#"{"privileged":true}"#, r#"{"a":{}}"#, "[true]"]
        {
            assert!(is_denied(&revision, &json!({A: own})), "{line} {own}");
        }
        assert!(!is_denied(&revision, &json!({A: "a b"})), "{line}");
    }
}

#[test]
fn json_without_texts_passes_where_a_template_reads_it() {
    let read = "fromJSON (index .ObjectMeta.Annotations `example.org/a`)";
    let range = format!("{{{{- range {read} }}}}");
    let revision = revision(&["ports:", &range, "- containerPort: {{ . }}", "{{- end }}"]);
    for own in ["[80,443]", "[ 80 ]"] {
        assert!(!is_denied(&revision, &json!({A: own})), "{own}");
    }
    let literal = revision_literal();
    for own in ["[1,2]", r#"{"a":{}}"#, r#"{"a":"b"}"#] {
        assert!(!is_denied(&literal, &json!({A: own})), "{own}");
    }
}

/// A template that pastes a value into a literal scalar, and into a quoted one.
fn revision_literal() -> Revision {
    revision(&[
        "args:",
        "- |",
        "  {{ index .ObjectMeta.Annotations `example.org/a` }}",
        "- {{ index .ObjectMeta.Annotations `example.org/a` | quote }}",
    ])
}

#[test]
fn a_key_that_hides_another_is_found_beside_keys_that_the_template_repeats() {
    let value = "{{ index .ObjectMeta.Annotations `example.org/a` }}";
    let args = format!("args: [\"{value}\"]");
    let hides = json!({A: "x\"]\n    args: [\"y"});
    for lines in [&[&*args][..], &["image: a", "image: b", &args], &["image: a", &args, "image: b"]]
    {
        let revision = revision(lines);
        assert!(is_denied(&revision, &hides), "{lines:?}");
        assert!(!is_denied(&revision, &json!({A: "a b"})), "{lines:?}");
    }
}

/// A template that makes a label of each annotation.
fn of_all_annotations() -> Revision {
    let config = "policy: enabled\ntemplates:\n  sidecar: |\n    metadata:\n      labels:\n        \
                  a: b\n        {{- range $key, $value := .ObjectMeta.Annotations }}\n        \
                  {{ $key }}: {{ $value | quote }}\n        {{- end }}\n";
    revision_of(config, "{}", "").with_tainted_values(TaintedValues::Deny)
}

#[test]
fn keys_stay_different_although_their_neutral_ones_are_the_same() {
    let revision = of_all_annotations();
    for plain in [json!({"a\tb": "1", "a b": "2"}), json!({"x": "1", "y  z": "2", "y z": "3"})] {
        assert!(!is_denied(&revision, &plain), "{plain}");
    }
    for hidden in [json!({"a b": "1", "a b ": "2"}), json!({"c d": "1", " c d": "2", "e": "3"})] {
        assert!(is_denied(&revision, &hidden), "{hidden}");
    }
    assert!(is_denied(&revision, &json!({"c d": "1", "c: d": "2"})));
}
