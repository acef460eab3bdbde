//! An index of parts against the index of all of a text.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::json::{Node, NotIndexed, Shape, Tape};

const KEYS: [&str; 6] = ["a", "b", "c", "{", "", "long key of an object"];

/// Keys as they are written: some with escapes, some with brackets in them.
fn written_key() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", "{", "", "long key of an object", r"\u0061", r"\u007b", "d"])
}

fn text() -> impl Strategy<Value = String> {
    let strings = vec!["", "x", "]}", r"\\", r#"\"]},\"b\":"#, "a text of more than sixteen bytes"];
    let scalar = prop_oneof![
        select(vec!["null", "true", "false", "0", "-1.5", "12345678901234567", "{}", "[]", "[ ]"])
            .prop_map(str::to_owned),
        select(strings).prop_map(|text| format!("\"{text}\"")),
    ];
    scalar.prop_recursive(5, 60, 6, |inner| {
        let blank = || select(vec!["", "", "", " ", "\n  "]);
        let member = (written_key(), blank(), inner.clone());
        let member = member.prop_map(|(key, blank, value)| format!("\"{key}\":{blank}{value}"));
        prop_oneof![
            (vec(inner, 0..6), blank())
                .prop_map(|(items, blank)| format!("[{blank}{}]", items.join(","))),
            (vec(member, 0..7), blank())
                .prop_map(|(members, blank)| format!("{{{blank}{}{blank}}}", members.join(", "))),
        ]
    })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let leaf = any::<bool>().prop_map(|is_whole| Wanted { is_whole, ..Wanted::default() });
    leaf.prop_recursive(4, 20, 3, |inner| {
        let members = vec((select(KEYS.to_vec()), inner.clone()), 0..4);
        (members, proptest::option::of(inner)).prop_map(|(members, each)| Wanted {
            is_whole: false,
            members: members.into_iter().map(|(key, wanted)| (key.into(), wanted)).collect(),
            each: each.map(Box::new),
        })
    })
}

/// A text in which a byte is replaced, inserted or missing.
fn mutated() -> impl Strategy<Value = String> {
    let byte = select(b"{}[],:\"\\ 0e-tnx\n".to_vec());
    (text(), any::<proptest::sample::Index>(), byte, 0..3_u8).prop_map(|(text, at, byte, how)| {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        match how {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
        String::from_utf8(bytes).expect("all of it is ASCII")
    })
}

/// The same with all keys of each object in which something is wanted.
fn with_all_keys(wanted: &Wanted) -> Wanted {
    let mut more = Wanted { is_whole: wanted.is_whole, ..Wanted::default() };
    if !wanted.members.is_empty() {
        more.each();
    }
    for (key, wanted) in &wanted.members {
        *more.member(key) = with_all_keys(wanted);
    }
    if let Some(each) = &wanted.each {
        *more.each() = with_all_keys(each);
    }
    more
}

/// A text without what is skipped in it.
fn cut(node: Node<'_, '_>, out: &mut String) {
    match node.shape() {
        Shape::List if node.is_complete() => {
            out.push('[');
            for (index, item) in node.items().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                cut(item, out);
            }
            out.push(']');
        }
        Shape::Object if node.is_complete() => {
            out.push('{');
            for (index, (key, value)) in node.indexed().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(key.raw());
                out.push(':');
                cut(value, out);
            }
            out.push('}');
        }
        Shape::List => out.push_str("[]"),
        Shape::Object => out.push_str("{}"),
        _ => out.push_str(node.raw()),
    }
}

/// Fails unless an index has of a value what one of more parts has.
fn compare(part: Node<'_, '_>, full: Node<'_, '_>, wanted: &Wanted) {
    assert_eq!((part.shape(), part.raw()), (full.shape(), full.raw()));
    assert_eq!((part.text(), part.is_empty()), (full.text(), full.is_empty()));
    let mut whole = Wanted::default();
    whole.whole();
    let each = if wanted.is_whole { Some(&whole) } else { wanted.each.as_deref() };
    for key in KEYS {
        let mut both = each.cloned();
        if let Some(member) = wanted.members.get(key) {
            both.get_or_insert_default().add(member);
        }
        match (part.find(key), both) {
            (Ok(found), Some(wanted)) => {
                assert_eq!(found.is_some(), full.get(key).is_some(), "{key}");
                if let (Some(part), Some(full)) = (found, full.get(key)) {
                    compare(part, full, &wanted);
                }
            }
            (Ok(found), None) => assert!(found.is_none() && full.shape() != Shape::Object),
            (Err(NotIndexed), both) => assert_eq!(both, None, "{key}"),
        }
    }
    let Some(each) = each else { return };
    assert!(part.is_complete());
    let keys = |node: Node<'_, '_>| node.members().map(|(key, _)| key.to_owned()).collect();
    let (found, expected): (Vec<String>, Vec<String>) = (keys(part), keys(full));
    assert_eq!((found, part.items().count()), (expected, full.items().count()));
    for (part, full) in part.items().zip(full.items()) {
        compare(part, full, each);
    }
}

fn check(text: &str, wanted: &Wanted) {
    let parts = wanted.parts();
    let (part, full) = (Tape::parts(text, &parts), Tape::of(text));
    if let (Some(part), Some(full)) = (&part, &full) {
        compare(part.root(), full.root(), wanted);
    }
    assert!(part.is_some() || full.is_none(), "only the full index exists");
    // With all keys, the index has all that is not skipped: that is JSON if what is skipped is.
    let more = with_all_keys(wanted).parts();
    let Some(more) = Tape::parts(text, &more) else { return };
    let part = part.expect("what needs no care with more parts needs none with fewer");
    compare(part.root(), more.root(), wanted);
    let mut rest = String::new();
    cut(more.root(), &mut rest);
    assert!(Tape::of(&rest).is_some(), "{rest}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn parts_have_the_values_of_the_full_index(text in text(), wanted in wanted()) {
        prop_assert!(Tape::of(&text).is_some());
        check(&text, &wanted);
    }

    #[test]
    fn only_what_is_skipped_can_be_wrong_unnoticed(text in mutated(), wanted in wanted()) {
        check(&text, &wanted);
    }
}

#[test]
fn what_is_not_wanted_is_skipped_and_no_read_of_it_is_answered() {
    let mut wanted = Wanted::default();
    wanted.member("metadata").member("labels").whole();
    wanted.member("spec").member("containers").each().member("name");
    let parts = wanted.parts();
    let text = r#"{"metadata":{"labels":{"a":{"b":1}},"managedFields":[{"x":1e9}],"n\u0061me":"x"},
                   "spec":{"containers":[{"image":"i","name":"c"},{"name":"d"}],"volumes":[1]}}"#;
    assert!(Tape::of(text).is_none(), "the number needs care");
    let tape = Tape::parts(text, &parts).expect("an index");
    let [metadata, spec] = ["metadata", "spec"].map(|key| tape.root().get(key).expect(key));
    let label = metadata.get("labels").and_then(|labels| labels.get("a")?.get("b"));
    assert_eq!(label.map(Node::raw), Some("1"));
    let containers = spec.get("containers").expect("the containers");
    let names: Vec<_> = containers.items().filter_map(|item| item.get("name")?.text()).collect();
    assert_eq!(names, ["c", "d"]);
    for (node, key) in [(tape.root(), "status"), (metadata, "name"), (spec, "volumes")] {
        assert_eq!(node.find(key).map(|_| ()), Err(NotIndexed), "{key}");
    }
    let volumes = Tape::parts(r#"{"metadata":[]}"#, &parts).expect("an index");
    let labels = volumes.root().get("metadata").and_then(|metadata| metadata.get("labels"));
    assert!(labels.is_none(), "a list has no keys");
}

#[test]
#[should_panic(expected = "must be indexed")]
fn items_that_are_not_indexed_are_not_gone_through() {
    let parts = Wanted::default().parts();
    let tape = Tape::parts("[1]", &parts).expect("an index");
    drop(tape.root().items());
}

#[test]
fn too_many_parts_are_all_of_a_text() {
    let mut wanted = Wanted::default();
    for key in 0..2 * MAX_PARTS {
        wanted.member(&format!("k{key}")).member("a");
    }
    let parts = wanted.parts();
    let text = format!(r#"{{"k{}":{{"a":1,"b":[2]}}}}"#, 2 * MAX_PARTS - 1);
    let tape = Tape::parts(&text, &parts).expect("an index");
    let last = tape.root().get(&format!("k{}", 2 * MAX_PARTS - 1));
    assert!(last.is_some_and(Node::is_complete));
    assert!(parts.open.len() <= MAX_PARTS);
}

#[test]
fn all_is_indexed_but_what_is_at_a_path() {
    let parts = Parts::without(&["a", "b", "*", "c"]);
    let text =
        r#"{"a":{"b":[{"c":{"d":[1e5]},"e":{"c":2}},{"c":[1,2]}],"c":[3]},"b":[{"c":[4]}],"c":5}"#;
    let tape = Tape::parts(text, &parts).expect("JSON");
    let at = |path: &[&str]| path.iter().try_fold(tape.root(), |node, key| node.get(key));
    let items: Vec<_> = at(&["a", "b"]).into_iter().flat_map(Node::items).collect();
    let [first, second] = items[..] else { panic!("two items") };
    for (item, raw) in [(first, r#"{"d":[1e5]}"#), (second, "[1,2]")] {
        let skipped = item.get("c").expect("the value is there");
        assert_eq!((skipped.raw(), skipped.is_complete()), (raw, false));
    }
    assert_eq!(first.get("c").expect("an object").find("d").map(drop), Err(NotIndexed));
    assert_eq!(first.get("e").and_then(|e| e.get("c")).map(Node::raw), Some("2"));
    for list in [&["a", "c"][..], &["b"]] {
        assert_eq!(at(list).expect("a list").items().count(), 1, "{list:?}");
    }
    assert!(tape.root().is_complete() && at(&["a"]).is_some_and(Node::is_complete));
    assert_eq!(tape.root().members().count(), 3);
    let whole = Tape::of(&text.replace("1e5", "1")).expect("JSON").count();
    assert_eq!(whole - tape.count(), 5, "values that are not indexed");
}
