//! Maps: annotations with a prefix.

use super::*;

#[test]
fn a_map_merges_its_layers_by_key_the_first_source_wins() {
    let mut layers =
        pod(&[("x/a-c", "pod"), ("x/a-b", " pod "), ("x/b", "other"), ("x/a-", "no name")]);
    layers.namespace_annotations = map(&[("x/a-b", "ns"), ("x/a-a", "ns"), ("x/a", "other")]);
    let expected = entries(&[("a", "ns"), ("b", " pod "), ("c", "pod")]);
    assert_eq!(value(&one("Map", &json!({})), &layers), Ok(Some(expected)));
    let other =
        json!({"from": [{"namespaceAnnotationPrefix": "x/a-"}, {"podAnnotationPrefix": "x/a-"}]});
    let expected = entries(&[("a", "ns"), ("b", "ns"), ("c", "pod")]);
    assert_eq!(value(&one("Map", &other), &layers), Ok(Some(expected)));
}

#[test]
fn a_key_belongs_to_the_longest_prefix_of_the_template_only() {
    let maps = |other_place: &str| {
        json!([
            {"name": "a", "type": "Map", "from": [{"podAnnotationPrefix": "x/a-"}]},
            {"name": "file", "type": "Map", "from": [{other_place: "x/a-file-"}]},
        ])
    };
    let layers = pod(&[("x/a-1", "1"), ("x/a-file-2", "2"), ("x/a-file-", "3"), ("x/a-file", "4")]);
    let found = read(&spec(&maps("podAnnotationPrefix")), &layers).expect("it is not denied");
    assert_eq!(found.values["a"], entries(&[("1", "1"), ("file", "4"), ("file-", "3")]));
    assert_eq!(found.values["file"], entries(&[("2", "2")]));
    // Also if the longer one is of another place.
    let found = read(&spec(&maps("namespaceAnnotationPrefix")), &layers).expect("it is not denied");
    assert_eq!(found.values["a"], entries(&[("1", "1"), ("file", "4"), ("file-", "3")]));
    assert_eq!(found.values["file"], entries(&[]));
}

#[test]
fn an_empty_entry_is_absent_or_hides_those_behind_it() {
    let mut layers = pod(&[("x/a-b", "")]);
    layers.namespace_annotations = map(&[("x/a-b", "1")]);
    let values = |of: &str, empty: &str| {
        value(&one("Map", &json!({"values": {"type": of}, "empty": empty})), &layers)
    };
    assert_eq!(values("String", "Absent"), Ok(Some(entries(&[("b", "1")]))));
    assert_eq!(values("String", "Value"), Ok(Some(entries(&[("b", "")]))));
    assert_eq!(values("Integer", "Value"), Ok(Some(entries(&[]))));
    let one = BTreeMap::from([("b".to_owned(), ScalarValue::Integer(1))]);
    assert_eq!(values("Integer", "Absent"), Ok(Some(ParamValue::Map(one))));
}

#[test]
fn an_invalid_entry_denies_gives_way_or_is_dropped() {
    let mut layers = pod(&[("x/a-b", MARKER), ("x/a-c", "2")]);
    layers.namespace_annotations = map(&[("x/a-b", "1")]);
    let parameters = |on_invalid: &str| {
        one("Map", &json!({"values": {"type": "Integer"}, "onInvalid": on_invalid}))
    };
    let problem =
        "parameter a: annotation x/a-b must be an Integer: decimal digits, within 64 bits";
    assert_eq!(read(&spec(&parameters("Deny")), &layers), Err(problem.to_owned()));
    let numbers = |numbers: &[(&str, i64)]| {
        let entry =
            |(name, number): &(&str, i64)| ((*name).to_owned(), ScalarValue::Integer(*number));
        Some(ParamValue::Map(numbers.iter().map(entry).collect()))
    };
    let next = (
        numbers(&[("b", 1), ("c", 2)]),
        vec![format!("{problem}; the next source counts instead")],
    );
    assert_eq!(warned(&parameters("NextSource"), &layers), next);
    let dropped = (numbers(&[("c", 2)]), vec![format!("{problem}; it is dropped")]);
    assert_eq!(warned(&parameters("DropItem"), &layers), dropped);
    layers.pod_annotations.clear();
    layers.namespace_annotations = map(&[("x/a-b", MARKER)]);
    let of_namespace = problem.replace("x/a-b", "x/a-b of the namespace");
    assert_eq!(read(&spec(&parameters("Deny")), &layers), Err(of_namespace));
}

#[test]
fn the_entries_of_a_map_are_counted_after_the_merge() {
    let mut layers = pod(&[("x/a-b", "1"), ("x/a-c", "1")]);
    layers.namespace_annotations = map(&[("x/a-b", "1"), ("x/a-d", "1")]);
    assert!(value(&one("Map", &json!({"minItems": 3, "maxItems": 3})), &layers).is_ok());
    let expected = "parameter a: the Map of annotations with prefix x/a- or annotations with prefix x/a- of the namespace \
        must have at most 2 items; it has 3";
    assert_eq!(value(&one("Map", &json!({"maxItems": 2})), &layers), Err(expected.to_owned()));
}
