#![expect(clippy::unwrap_used, reason = "tests")]

pub(crate) mod random;

use injectd_core::json::Tape;
use serde_json::{Value, json};

use random::Random;

use super::{Operation, encode, patch};

/// Checks that the patch works and is that of the text, and gives it.
pub(crate) fn patched(old: &Value, new: &Value) -> Value {
    let text = old.to_string();
    let of_tree = patch(old, new);
    // Numbers with an exponent, and documents nested too deep, are read as trees alone.
    if let Some(tape) = Tape::of(&text) {
        assert_eq!(of_tree, patch(tape.root(), new), "{old}");
    }
    let patch: Value = serde_json::from_slice(&encode(&of_tree)).unwrap();
    let operations: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
    let mut pod = old.clone();
    json_patch::patch(&mut pod, &operations).unwrap();
    assert_eq!(&pod, new, "{old}\n{patch}");
    patch
}

fn containers(names: &[&str]) -> Value {
    let containers: Vec<_> =
        names.iter().map(|name| json!({"name": name, "image": "i", "extra": [name]})).collect();
    json!({"spec": {"containers": containers}})
}

#[test]
fn equal_pods_need_no_patch() {
    let pod = containers(&["a", "b"]);
    assert_eq!(patched(&pod, &pod), json!([]));
}

#[test]
fn a_new_element_is_inserted_at_its_index() {
    let patch = patched(&containers(&["app"]), &containers(&["istio-proxy", "app"]));
    let value = json!({"name": "istio-proxy", "image": "i", "extra": ["istio-proxy"]});
    assert_eq!(patch, json!([{"op": "add", "path": "/spec/containers/0", "value": value}]));
}

#[test]
fn an_unchanged_element_is_not_rewritten_when_others_move() {
    let old = containers(&["istio-proxy", "app", "b"]);
    let mut new = containers(&["app", "b", "istio-proxy"]);
    new["spec"]["containers"][2]["image"] = json!("changed");
    let value = &new["spec"]["containers"][2];
    let expected = json!([
        {"op": "remove", "path": "/spec/containers/0"},
        {"op": "add", "path": "/spec/containers/2", "value": value},
    ]);
    assert_eq!(patched(&old, &new), expected);
    let two = containers(&["istio-proxy", "app"]);
    let mut swapped = containers(&["app", "istio-proxy"]);
    swapped["spec"]["containers"][1]["image"] = json!("changed");
    let patch = patched(&two, &swapped);
    assert_eq!(patch[0]["path"], "/spec/containers/0");
    assert_eq!(patch[1]["value"]["name"], "istio-proxy");
}

#[test]
fn absent_and_null_parents_are_created() {
    let new = json!({"metadata": {"annotations": {"a/b~c": "1"}}});
    let annotations = json!({"a/b~c": "1"});
    for (old, op, path, value) in [
        (json!({}), "add", "/metadata", json!({"annotations": annotations})),
        (json!({"metadata": {}}), "add", "/metadata/annotations", annotations.clone()),
        (
            json!({"metadata": {"annotations": null}}),
            "replace",
            "/metadata/annotations",
            annotations.clone(),
        ),
        (
            json!({"metadata": {"annotations": {}}}),
            "add",
            "/metadata/annotations/a~1b~0c",
            json!("1"),
        ),
    ] {
        assert_eq!(patched(&old, &new), json!([{"op": op, "path": path, "value": value}]));
    }
}

#[test]
fn what_goes_is_removed_from_the_end() {
    let patch = patched(&containers(&["a", "b", "c"]), &containers(&["b"]));
    let expected = json!([
        {"op": "remove", "path": "/spec/containers/2"},
        {"op": "remove", "path": "/spec/containers/0"},
    ]);
    assert_eq!(patch, expected);
    patched(&containers(&["a"]), &containers(&[]));
    patched(&json!({"spec": {"a": 1}}), &json!({"spec": {}}));
}

#[test]
fn elements_with_the_same_key_are_told_apart_by_their_order() {
    let old = json!({"ports": [{"containerPort": 53, "protocol": "TCP"},
        {"containerPort": 53, "protocol": "UDP"}, {"containerPort": "53"}]});
    let new = json!({"ports": [{"containerPort": 1}, {"containerPort": 53, "protocol": "TCP"},
        {"containerPort": 53, "protocol": "UDP"}, {"containerPort": "53"}]});
    assert_eq!(patched(&old, &new).as_array().unwrap().len(), 1);
    let odd = json!({"containers": [null, {}, 5, {"name": null}, {"name": {"a": 1}}]});
    let more = json!({"containers": [{"name": "x"}, null, {}, 6, {"name": {"a": 1}}]});
    patched(&odd, &more);
}

#[test]
fn lists_without_a_key_are_compared_by_position_or_replaced() {
    let old = json!({"args": ["-u", "1337", "-p"]});
    let patch = patched(&old, &json!({"args": ["-u", "42", "-p"]}));
    assert_eq!(patch, json!([{"op": "replace", "path": "/args/1", "value": "42"}]));
    let patch = patched(&old, &json!({"args": []}));
    assert_eq!(patch, json!([{"op": "replace", "path": "/args", "value": []}]));
}

#[test]
fn managed_fields_are_left_alone() {
    let text = r#"{"metadata":{"managedFields":[{"manager":"kubectl"}],"name":"web"},"spec":{}}"#;
    let new = json!({"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {}});
    let tape = Tape::of(text).unwrap();
    let labels = json!({"a": "b"});
    let expected = [Operation::Add("/metadata/labels".to_owned(), &labels)];
    assert_eq!(patch(tape.root(), &new), expected);
}

#[test]
fn a_repeated_key_has_its_last_value() {
    let text = r#"{"spec":{"odd":1,"odd":2,"gone":3,"gone":4}}"#;
    let new = json!({"spec": {"odd": 2}});
    let tape = Tape::of(text).unwrap();
    assert_eq!(patch(tape.root(), &new), [Operation::Remove("/spec/gone".to_owned())]);
}

#[test]
fn finalizers_are_told_apart_by_their_text() {
    let (old, new) = (json!({"finalizers": ["a", "b"]}), json!({"finalizers": ["x", "a", "b"]}));
    let expected = json!([{"op": "add", "path": "/finalizers/0", "value": "x"}]);
    assert_eq!(patched(&old, &new), expected);
}

#[test]
fn any_pair_of_documents_has_a_patch_that_works() {
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let (old, new) = (document(&mut random, 0), document(&mut random, 0));
        patched(&old, &new);
    }
}

#[test]
fn large_lists_in_reverse_need_no_quadratic_time() {
    let names: Vec<_> = (0..20_000).map(|number| number.to_string()).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let old = containers(&names);
    let reversed: Vec<_> = names.iter().rev().copied().collect();
    let new = containers(&reversed);
    assert_eq!(patch(&old, &new).len(), 2 * 19_999);
}

fn document(random: &mut Random, depth: u64) -> Value {
    let keys =
        ["containers", "finalizers", "ports", "args", "name", "containerPort", "a/b~", "metadata"];
    match random.below(if depth < 5 { 9 } else { 4 }) {
        0 => Value::Null,
        1 => random.below(3).into(),
        2 => (*random.one_of(&["a", "b", "c"])).into(),
        3 => (random.below(2) == 0).into(),
        4 | 5 => (0..random.below(5)).map(|_| document(random, depth + 1)).collect(),
        _ => {
            let mut map = serde_json::Map::new();
            for _ in 0..random.below(5) {
                let key = *random.one_of(&keys);
                map.insert(key.to_owned(), document(random, depth + 1));
            }
            Value::Object(map)
        }
    }
}
