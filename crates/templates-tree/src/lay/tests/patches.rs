//! Patches: they apply, and add no more than what is new.

use super::*;

pub(super) fn applied(before: &Value, patch: &[Value]) -> Value {
    let mut pod = before.clone();
    let operations: json_patch::Patch =
        serde_json::from_value(patch.to_vec().into()).expect("a JSON patch");
    json_patch::patch(&mut pod, &operations).expect("the patch must apply");
    pod
}

#[test]
fn entries_are_added_and_removed_one_by_one() {
    let before = json!({"metadata": {"labels": {"a/b": "1"}}, "spec": {
        "containers": [
            {"name": "a", "args": ["1", "2"], "env": [{"name": "A"}, {"name": "B"}]},
            {"name": "b"}],
        "volumes": [{"name": "v"}]}});
    let after = json!({"metadata": {"labels": {"a/b": "2"}, "annotations": {"x": "1"}}, "spec": {
        "containers": [
            {"name": "x"},
            {"name": "a", "args": ["1", "3"], "env": [{"name": "C"}, {"name": "A", "value": "1"}, {"name": "D"}]},
            {"name": "b"}, {"name": "y"}]}});
    let expected = json!([
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
        {"op": "add", "path": "/metadata/annotations", "value": {"x": "1"}},
        {"op": "remove", "path": "/spec/volumes"},
        {"op": "add", "path": "/spec/containers/0", "value": {"name": "x"}},
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "y"}},
        {"op": "remove", "path": "/spec/containers/1/args/1"},
        {"op": "add", "path": "/spec/containers/1/args/-", "value": "3"},
        {"op": "remove", "path": "/spec/containers/1/env/1"},
        {"op": "add", "path": "/spec/containers/1/env/0", "value": {"name": "C"}},
        {"op": "add", "path": "/spec/containers/1/env/-", "value": {"name": "D"}},
        {"op": "add", "path": "/spec/containers/1/env/1/value", "value": "1"},
    ]);
    let patch = patch(&before, &after);
    assert_eq!(Value::from(patch.clone()), expected);
    assert_eq!(applied(&before, &patch), after);
}

#[test]
fn a_moved_entry_is_moved_alone() {
    let list = |names: &str| -> Value { names.chars().map(|name| json!({"name": name})).collect() };
    let pod = |names| json!({"spec": {"containers": list(names)}});
    let patch = patch(&pod("abcdef"), &pod("bcadef"));
    assert_eq!(patch.len(), 2, "{patch:?}");
    assert_eq!(applied(&pod("abcdef"), &patch), pod("bcadef"));
}

#[test]
fn any_two_values_have_a_patch() {
    let values = [
        json!(null),
        json!(1),
        json!([]),
        json!({}),
        json!({"spec": 1}),
        json!({"spec": null}),
        json!({"spec": {"containers": [1, 1, {"name": "a"}, {"name": "a"}, null]}}),
        json!({"spec": {"containers": [{"name": "a", "env": 1}, 1, {"name": 1}]}}),
        json!({"": {"~": [[1], [1, 2]]}}),
        json!({"": {"~": [[1, 2], [2], [1]]}}),
    ];
    for before in &values {
        for after in &values {
            let patch = patch(before, after);
            assert_eq!(patch.is_empty(), before == after);
            assert_eq!(applied(before, &patch), *after, "{before} {after} {patch:?}");
        }
    }
}
