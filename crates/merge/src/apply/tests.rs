//! Rules of the merge, and its cost. `tests/battery` compares with Go.

use serde_json::{Value, json};

use super::{MAX_DEPTH, overlay, repeats_list, strategic_merge};
use crate::{
    MergeError,
    key::steps,
    normal,
    schema::{Kind, POD},
};

fn merged(base: Value, patch: Value) -> Value {
    let mut pod = base;
    overlay(&mut pod, patch).expect("the patch must merge");
    pod
}

#[test]
fn patch_wins_and_null_removes() {
    let pod = merged(
        json!({"spec": {"nodeName": "a", "hostname": "h", "priority": 1}}),
        json!({"spec": {"nodeName": "b", "hostname": null, "subdomain": null}}),
    );
    assert_eq!(pod, json!({"spec": {"nodeName": "b", "priority": 1}}));
}

#[test]
fn new_elements_come_first_and_known_ones_are_merged() {
    let base = json!({"spec": {"containers": [
        {"name": "app", "image": "a"}, {"name": "istio-proxy", "args": ["x"]}, {"name": "z"}]}});
    let patch = json!({"spec": {"containers": [
        {"name": "new1"}, {"name": "istio-proxy", "image": "p"}, {"name": "new2"}]}});
    let expected = json!({"spec": {"containers": [
        {"name": "new1"},
        {"name": "app", "image": "a"},
        {"name": "istio-proxy", "args": ["x"], "image": "p"},
        {"name": "new2"},
        {"name": "z"}]}});
    assert_eq!(merged(base, patch), expected);
}

#[test]
fn keys_are_compared_with_their_type() {
    let ports = |ports: Value| json!({"spec": {"containers": [{"name": "a", "ports": ports}]}});
    let pod = merged(
        ports(json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}])),
        ports(json!([{"containerPort": "80"}, {"containerPort": 80, "name": "http"}])),
    );
    let expected = json!([
        {"containerPort": "80"},
        {"containerPort": 80, "name": "http"},
        {"containerPort": 80, "protocol": "UDP"}]);
    assert_eq!(pod["spec"]["containers"][0]["ports"], expected);
}

#[test]
fn unknown_fields_of_both_sides_stay() {
    let pod = merged(
        json!({"spec": {"xNew": {"a": 1}, "containers": [{"name": "a", "xList": [1]}]}}),
        json!({"spec": {"xNew": {"b": [2]}, "containers": [{"name": "a", "xList": [2]}]}}),
    );
    let expected = json!({"spec": {
        "xNew": {"a": 1, "b": [2]}, "containers": [{"name": "a", "xList": [2]}]}});
    assert_eq!(pod, expected);
}

#[test]
fn the_pod_counts_as_go_writes_it() {
    let base = json!({"spec": {"volumes": [], "containers": [null, {"image": "i"}]}});
    let pod = merged(
        base.clone(),
        json!({"spec": {"volumes": [{"name": "v"}, {"name": "v"}], "containers": [{"name": ""}]}}),
    );
    // An empty list of volumes is none: duplicates stay. Elements without a name have an empty one.
    let expected = json!({"spec": {
        "volumes": [{"name": "v"}, {"name": "v"}], "containers": [{"name": ""}, {"image": "i"}]}});
    assert_eq!(normal(&pod), normal(&expected));
    let mut literal = base;
    let error = strategic_merge(&mut literal, json!({"spec": {"containers": [{"name": ""}]}}));
    assert!(matches!(error, Err(MergeError::MixedElements { .. })), "{error:?}");
}

#[test]
fn whole_floats_become_integers() {
    let pod = merged(
        json!({}),
        json!({"spec": {"priority": 80.0, "terminationGracePeriodSeconds": 1.5}}),
    );
    assert_eq!(pod["spec"].to_string(), r#"{"priority":80,"terminationGracePeriodSeconds":1.5}"#);
}

#[test]
fn errors_have_the_texts_of_go() {
    let container = json!({"spec": {"containers": [{"name": "a"}]}});
    for (base, patch, text) in [
        (
            container.clone(),
            json!({"spec": {"containers": [{"image": "b"}]}}),
            "map: map[image:b] does not contain declared merge key: name",
        ),
        (
            container.clone(),
            json!({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            container.clone(),
            json!({"spec": {"$patch": "x"}}),
            "unknown patch type: x in map: map[$patch:x]",
        ),
        (
            container,
            json!({"spec": {"containers": ["a"]}}),
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        (
            json!({}),
            json!({"spec": {"$retainKeys": [], "nodeName": "a"}}),
            "invalid patch format of retainKeys",
        ),
        (json!({}), json!([]), "invalid JSON document"),
    ] {
        let mut pod = base;
        let error = overlay(&mut pod, patch).expect_err("must be an error");
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn what_panics_in_go_is_an_error() {
    for patch in [
        json!({"spec": {"containers": [{"name": {"a": 1}}]}}),
        json!({"spec": {"containers": [null]}}),
        json!({"spec": {"$setElementOrder/tolerations": [{}], "tolerations": [{}]}}),
    ] {
        let mut pod = json!({"spec": {"containers": [{"name": "a"}]}});
        assert!(overlay(&mut pod, patch.clone()).is_err(), "{patch}");
        assert!(strategic_merge(&mut json!({"spec": {"containers": []}}), patch).is_err());
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!({"a": inner}));
    assert_eq!(overlay(&mut json!({}), nested(MAX_DEPTH)), Ok(()));
    assert_eq!(overlay(&mut nested(2 * MAX_DEPTH), nested(MAX_DEPTH)), Ok(()));
    assert_eq!(overlay(&mut json!({}), nested(MAX_DEPTH + 1)), Err(MergeError::TooDeep));
}

/// The hashes and comparisons of keys in a merge of two lists of variables.
fn steps_of(length: usize) -> usize {
    let variables = |from: usize| {
        let variable = |at| json!({"name": format!("V{at}"), "value": "x"});
        let list: Vec<Value> = (from..from + length).rev().map(variable).collect();
        json!({"spec": {"containers": [{"name": "a", "env": list}]}})
    };
    let mut pod = variables(0);
    steps::take();
    overlay(&mut pod, variables(length / 2)).expect("the patch must merge");
    let list = pod["spec"]["containers"][0]["env"].as_array().map(Vec::len);
    assert_eq!(list, Some(length + length / 2));
    steps::take()
}

#[test]
fn cost_is_linear_in_the_length_of_lists() {
    let (half, whole) = (steps_of(10_000), steps_of(20_000));
    assert!(whole < half * 21 / 10, "{half} steps for 10,000 variables, {whole} for 20,000");
    assert!(whole < 20 * 20_000, "{whole} steps");
}

#[test]
fn a_list_that_is_left_out_would_have_changed_nothing() {
    let container = POD.as_struct().and_then(|pod| pod.field("spec")?.kind.as_struct());
    let container = container.and_then(|spec| match &spec.field("containers")?.kind {
        Kind::List(container) => container.as_struct(),
        _ => None,
    });
    let env = container.and_then(|container| container.field("env")).expect("a field");
    let elements = [
        json!({"name": "A", "value": "1"}),
        json!({"name": "A", "value": "2"}),
        json!({"name": "B", "value": "1"}),
        json!({"name": "B"}),
        json!({"value": "1"}),
        json!({"name": "C", "$patch": "delete"}),
        json!({"name": "C", "Value": "1"}),
        json!({"name": "C", "value": null}),
        Value::Null,
    ];
    // All lists of up to three elements.
    let lists = |length| {
        let count = elements.len().pow(length);
        (0..count).map(move |mut number| {
            let mut list = Vec::new();
            for _ in 0..length {
                list.push(number % 9);
                number /= 9;
            }
            list
        })
    };
    let list = |indices: &[usize]| -> Value {
        indices.iter().filter_map(|index| elements.get(*index).cloned()).collect()
    };
    let pod = |env: Value| json!({"spec": {"containers": [{"name": "web", "env": env}]}});
    let mut left_out = 0;
    for (base, patch) in (0..4)
        .flat_map(lists)
        .flat_map(|base| (0..3).flat_map(lists).map(move |patch| (base.clone(), patch)))
    {
        let (base, patch) = (list(&base), list(&patch));
        if repeats_list(&base, &patch, env) && patch != json!([]) {
            let mut merged = pod(base.clone());
            overlay(&mut merged, pod(patch.clone())).expect("a pod");
            assert_eq!(merged, pod(base), "{patch}");
            left_out += 1;
        }
    }
    assert!(left_out > 10, "{left_out}");
}
