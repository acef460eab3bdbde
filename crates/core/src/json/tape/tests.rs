#![expect(clippy::disallowed_types, reason = "trees are what tapes are compared with")]

use serde_json::Value;

use super::{writer::MAX_VALUES, *};

/// The value as a tree.
fn tree(node: Node<'_, '_>) -> Value {
    match node.shape() {
        Shape::List => node.items().map(tree).collect(),
        Shape::Object => {
            let members = node.members().map(|(key, value)| (key.to_owned(), tree(value)));
            Value::Object(members.collect())
        }
        Shape::Text | Shape::Escaped => node.text().expect("a string").into(),
        _ => serde_json::from_str(node.raw()).expect("a scalar"),
    }
}

#[test]
fn a_tape_has_the_values_of_the_text() {
    for text in [
        "{}",
        "[]",
        " [ 1 , -2.5 , 0 , true , false , null ] ",
        r#"{"a":{"b":[{},[],""]},"c":"\"é\n\u00e9\ud83d\ude00","a":1}"#,
        r#"{"long":"0123456789012345678901234567890123456789\\","end":"x"}"#,
    ] {
        let tape = Tape::of(text).expect(text);
        let expected: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(tree(tape.root()), expected, "{text}");
    }
    let tape = Tape::of(r#"{"a":1,"b":[2],"a":3}"#).expect("a tape");
    let root = tape.root();
    assert_eq!(root.get("a").map(Node::raw), Some("3"));
    assert_eq!(root.get("b").map(Node::raw), Some("[2]"));
    assert!(root.get("c").is_none());
    let tape = Tape::of(r#"{"\u0061":1,"k:{\"b\"}":2}"#).expect("a tape");
    let root = tape.root();
    assert_eq!(root.get("a").map(Node::raw), Some("1"));
    assert_eq!(root.get("k:{\"b\"}").map(Node::raw), Some("2"));
}

#[test]
fn a_text_with_too_many_values_has_no_tape() {
    let list = |count: usize| format!("[{}0]", "0,".repeat(count - 2));
    assert_eq!(Tape::of(&list(MAX_VALUES - 1)).map(|tape| tape.count()), Some(MAX_VALUES - 1));
    assert!(Tape::of(&list(MAX_VALUES + 1)).is_none());
    let object = format!("{{{}\"k\":0}}", "\"k\":0,".repeat(MAX_VALUES / 2));
    assert!(Tape::of(&object).is_none());
}

#[test]
fn texts_that_are_not_json_or_need_care_have_no_tape() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    for text in [
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        "nul",
        "nulla",
        "tru",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e5",
        "1E5",
        "1234567890123456789",
        "\"",
        "\"a\nb\"",
        r#""\x""#,
        r#""\ud83d""#,
        r#""\u12""#,
        "[] []",
        "'a'",
        &deep,
    ] {
        assert!(Tape::of(text).is_none(), "{text}");
    }
}
