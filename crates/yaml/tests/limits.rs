//! Limits, and the places of problems.

use injectd_yaml::{
    DuplicateKeys, Format, Limits, MAX_NESTING, MoreDocuments, Options, documents, parse,
};
use serde_json::json;

const ALL: Options = Options {
    duplicate_keys: DuplicateKeys::Error,
    more_documents: MoreDocuments::Error,
    whole_floats: injectd_yaml::WholeFloats::Integers,
    limits: Limits::FILES,
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
fn aliases_and_anchors_stop_before_they_fill_the_memory() {
    let copies = "anchors and aliases copy more than 2000000 values or 268435456 bytes of text";
    let texts = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(300));
    // Each anchor copies all that is inside of it.
    let anchors = (0..MAX_NESTING - 1).map(|at| format!("&a{at} ["));
    let anchors = anchors.fold(String::new(), |all, anchor| all + &anchor);
    let nested = format!("{anchors}{}{}", "1,".repeat(10_000), "]".repeat(MAX_NESTING - 1));
    for text in [texts, nested] {
        assert!(problem(&text).contains(copies), "{}", problem(&text));
        assert!(documents(&text, ALL).expect_err("must be rejected").is_over_limit);
    }
}

#[test]
fn a_text_of_a_stranger_is_not_read_again_and_again() {
    let text = format!("[{}]", "\"a\\'b\", ".repeat(1_000));
    let limits = Limits { bytes_read_again: 16 * text.len(), ..Limits::FILES };
    let problem = parse(&text, Options { limits, ..ALL }).expect_err("must be rejected");
    assert!(problem.is_over_limit, "{problem}");
    assert!(parse(&text, ALL).is_ok());
}

#[test]
fn reading_stops_at_the_node_that_is_too_many() {
    let options = |nodes| Options { limits: Limits { nodes, ..Limits::FILES }, ..ALL };
    // The first text is read by the reader of plain blocks, the others by the parser.
    for (text, nodes) in [
        ("a: 1\nb:\n- c: x\n- y\n", 10),
        ("{a: 1, b: [{c: x}, y]}", 10),
        ("a: &a [x, y]\nb: *a\nc: {<<: {d: e}}\n", 16),
    ] {
        assert!(parse(text, options(nodes)).is_ok(), "{text}");
        let problem = parse(text, options(3)).expect_err("must be rejected");
        assert!(problem.is_over_limit, "{text}: {problem}");
        assert!(problem.message.contains("more than 3 values and keys"), "{problem}");
    }
    // What comes after it is not looked at.
    let text = format!("{}[", "- a\n".repeat(10));
    assert!(parse(&text, options(5)).expect_err("must be rejected").is_over_limit);
}

#[test]
fn keys_that_are_written_again_may_stay() {
    let options = Options { duplicate_keys: DuplicateKeys::Kept, ..ALL };
    let kept = parse("a: 1\nb: 2\na: 3\nc: {d: 4, d: 5}\n", options).expect("a document");
    let expected = json!({"a": 1, "b": 2, "a\u{0}2": 3, "c": {"d": 4, "d\u{0}1": 5}});
    assert_eq!(kept, expected);
    let merged = parse("a: &a {x: 1}\nb: {<<: *a, x: 2}\n", options).expect("a document");
    assert_eq!(merged["b"], json!({"x": 2}));
}

#[test]
fn problems_name_their_place_in_the_whole_text() {
    let text = "a: 1\n---\n\u{e9}: 1\n\u{e9}: 2\n";
    assert_eq!(problem(text), "line 4 column 1: duplicate mapping key: \u{e9}");
    assert!(problem("a: 1\n---\nb: [\n").starts_with("line 3 column 4: "));
    assert!(problem("a: 1\n...\nb: 1\n").starts_with("line 3 column 1: a second document"));
    assert!(
        problem("{\"a\":1}\n{\"a\":1}\n  {\"a\" 1}\n")
            .starts_with("line 3 column 8: not valid JSON")
    );
}

#[test]
fn long_lines_are_edited_in_linear_time() {
    let labels = |count: usize| {
        let item = |at| json!({"kind": "A", "metadata": {"name": format!("a{at}"), "labels": {}}});
        json!({"items": (0..count).map(item).collect::<Vec<_>>()})
    };
    let before = labels(5000);
    let mut after = before.clone();
    for item in after["items"].as_array_mut().expect("a list") {
        item["metadata"]["labels"]["b"] = json!("c");
        item["spec"] = json!([1]);
    }
    // Quadratic, this takes minutes.
    let json = before.to_string();
    for (text, format) in [
        (json.clone(), Format::Json),
        (format!("# c\n{json}\n"), Format::Yaml),
        (injectd_yaml::write(&before), Format::Yaml),
    ] {
        assert!(injectd_yaml::edit(&text, format, &before, &after).is_some());
    }
}

#[test]
fn a_quoted_text_is_not_mended_twice() {
    // Found by fuzzing. Mended again and again, it took more than ten seconds.
    let text = "metadata:\n\
\x20 labels:\n\
\x20   service.istio.io/c                                 anonical-name: \"shop#\n\
\x20 annotations: {istio.io/rev:rur.ininfecseoas{t :fecse c ~{<<t - 2 'default'}\n\
spec:\n\
\x20 $setElementOrder/containers: [{name: is0 c ~{<<tio-proxy}, {name: web}]\n\
\x20 initContainers:\n\
\x20 - name: istio-init\n\
\x20t - 20%YAML 1.1\n\
01-01-   image: pro0\rxyv2\n\
\x20   args: [--1 \n\
%YAML 1.1\n\
01-01-0\r-1 \n\
-oasx{tp,  \"15001\", -z, !!str 15006]\n\
\x20   securityContext: {runAsUser: 0, capabilities: {add: [NET_ADMIN], drop: [ALL]}}\n\
\x20 containers:\n\
\x20 - name: web\n\
\x20   $patch: delete\n\
\x20 - name: istio-proxy\n\
\x20   image: \"proxyv2\"\n\
\x20   env:\n\
\x20   - name: PRO\n\
:XY_CONFIG\n\
\x20     va";
    assert!(problem(text).starts_with("line "));
}

#[test]
fn quoted_texts_of_yaml_1_1_have_no_limit_of_their_own() {
    let lines = (0..100).map(|at| format!("a{at}: \"x\ny\"\nb{at}: \"it\\'s\"\n"));
    let text: String = lines.collect();
    let value = injectd_yaml::parse(&text, injectd_yaml::Options::default()).expect("must be read");
    assert_eq!((&value["a99"], &value["b99"]), (&"x y".into(), &"it's".into()));
}
