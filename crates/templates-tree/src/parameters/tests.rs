use injectd_templates::object::ParameterKeys;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// No message may have it.
const MARKER: &str = "marker-of-a-value";

fn spec(parameters: &Value) -> Spec {
    spec_with(&json!({"parameters": parameters}))
}

fn spec_with(spec: &Value) -> Spec {
    let spec: Spec = serde_json::from_value(spec.clone()).expect("a spec");
    let problems =
        injectd_templates::parameters::check(&spec.parameters, spec.parameter_keys.as_ref());
    assert_eq!(problems, [], "{:?}", spec.parameters);
    spec
}

/// A parameter `a` that reads the annotation `x/a`, with further fields.
fn one(of: &str, more: &Value) -> Value {
    let mut parameter = json!({"name": "a", "type": of, "from": [{"podAnnotation": "x/a"}]});
    if of == "Map" {
        parameter["from"] =
            json!([{"podAnnotationPrefix": "x/a-"}, {"namespaceAnnotationPrefix": "x/a-"}]);
    }
    for (key, value) in more.as_object().expect("an object") {
        parameter[key] = value.clone();
    }
    json!([parameter])
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

fn pod(annotations: &[(&str, &str)]) -> Layers {
    Layers { pod_annotations: map(annotations), ..Layers::default() }
}

/// The value of `a`; there must be no warnings.
fn value(parameters: &Value, layers: &Layers) -> Result<Option<ParamValue>, String> {
    let mut found = read(&spec(parameters), layers)?;
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    Ok(found.values.remove("a"))
}

/// The value of `a`, and the warnings.
fn warned(parameters: &Value, layers: &Layers) -> (Option<ParamValue>, Vec<String>) {
    let mut found = read(&spec(parameters), layers).expect("it is not denied");
    (found.values.remove("a"), found.warnings)
}

fn text(text: &str) -> ParamValue {
    ParamValue::Text(text.to_owned())
}

fn texts(items: &[&str]) -> ParamValue {
    ParamValue::List(items.iter().map(|item| ScalarValue::Text((*item).to_owned())).collect())
}

fn entries(entries: &[(&str, &str)]) -> ParamValue {
    let text = |text: String| ScalarValue::Text(text);
    ParamValue::Map(map(entries).into_iter().map(|(key, value)| (key, text(value))).collect())
}

/// A parameter with all sources and a key.
fn everywhere() -> (Spec, [ParameterSource; 7]) {
    let spec = spec_with(&json!({
        "parameterKeys": {"prefix": "x/", "in": ["NamespaceLabel", "PodAnnotation"]},
        "parameters": [{"name": "a", "type": "String", "key": "k", "from": [
            {"serviceAccountAnnotation": "x/s"}, {"podAnnotation": "x/a"}, {"podLabel": "x/l"},
            {"namespaceAnnotation": "x/n"}, {"namespaceLabel": "x/m"},
        ]}],
    }));
    let key = |key: &str| key.to_owned();
    let sources = [
        ParameterSource::ServiceAccountAnnotation(key("x/s")),
        ParameterSource::PodAnnotation(key("x/a")),
        ParameterSource::PodLabel(key("x/l")),
        ParameterSource::NamespaceAnnotation(key("x/n")),
        ParameterSource::NamespaceLabel(key("x/m")),
        ParameterSource::NamespaceLabel(key("x/k")),
        ParameterSource::PodAnnotation(key("x/k")),
    ];
    (spec, sources)
}

fn set(layers: &mut Layers, source: &ParameterSource, text: &str) {
    let layer = match source {
        ParameterSource::PodLabel(_) => &mut layers.pod_labels,
        ParameterSource::NamespaceLabel(_) => &mut layers.namespace_labels,
        ParameterSource::NamespaceAnnotation(_) => &mut layers.namespace_annotations,
        ParameterSource::ServiceAccountAnnotation(_) => &mut layers.service_account_annotations,
        _ => &mut layers.pod_annotations,
    };
    layer.insert(source.key().to_owned(), text.to_owned());
}

#[test]
fn own_sources_are_before_those_of_the_key_in_their_order() {
    let (spec, all) = everywhere();
    let mut layers = Layers::default();
    for (at, source) in all.iter().enumerate().rev() {
        set(&mut layers, source, &at.to_string());
        let found = read(&spec, &layers).expect("it is not denied");
        assert_eq!(found.values["a"], text(&at.to_string()), "{source}");
        assert_eq!(found.warnings, [""; 0]);
    }
}

#[test]
fn each_type_has_its_values() {
    for (of, written, expected) in [
        ("String", " a b ", text(" a b ")),
        ("Integer", " -7 ", ParamValue::Integer(-7)),
        ("Boolean", " ON ", ParamValue::Boolean(true)),
        ("Quantity", " 0.50Gi ", ParamValue::Quantity("0.50Gi".to_owned())),
        ("Duration", " 90m ", ParamValue::Duration("1h30m0s".to_owned())),
        ("List", " a, b c ,,\td\n", texts(&["a", "b c", "d"])),
        ("List", " , ", texts(&[])),
    ] {
        let found = value(&one(of, &json!({})), &pod(&[("x/a", written)]));
        assert_eq!(found, Ok(Some(expected.clone())), "{of}");
        // A default is read by the same parser.
        let by_default = value(&one(of, &json!({"default": written})), &Layers::default());
        assert_eq!(by_default, Ok(Some(expected)), "{of}");
    }
}

#[test]
fn an_optional_parameter_without_a_value_is_absent_and_a_map_is_empty() {
    for of in ["String", "Integer", "Boolean", "Quantity", "Duration", "List"] {
        assert_eq!(value(&one(of, &json!({})), &Layers::default()), Ok(None), "{of}");
    }
    assert_eq!(value(&one("Map", &json!({})), &Layers::default()), Ok(Some(entries(&[]))));
}

#[test]
fn a_required_parameter_without_a_value_denies_and_names_its_sources() {
    let (mut spec, _) = everywhere();
    spec.parameters[0].required = true;
    let expected = "parameter a is required; set annotation x/s of the ServiceAccount or annotation x/a or label x/l or \
        annotation x/n of the namespace or label x/m of the namespace or label x/k of the namespace or annotation x/k";
    assert_eq!(read(&spec, &Layers::default()), Err(expected.to_owned()));
    let parameters = one("String", &json!({"required": true}));
    assert_eq!(value(&parameters, &pod(&[("x/a", "b")])), Ok(Some(text("b"))));
    // An empty value is absent.
    assert!(value(&parameters, &pod(&[("x/a", "")])).is_err());
}

#[test]
fn an_empty_source_is_absent_or_hides_those_behind_it() {
    let from = json!([{"podAnnotation": "x/a"}, {"podLabel": "x/a"}]);
    let mut layers = pod(&[("x/a", "")]);
    layers.pod_labels = map(&[("x/a", "1")]);
    for (of, next) in [
        ("String", text("1")),
        ("Integer", ParamValue::Integer(1)),
        ("Boolean", ParamValue::Boolean(true)),
        ("Quantity", ParamValue::Quantity("1".to_owned())),
        ("List", texts(&["1"])),
    ] {
        let absent = one(of, &json!({"from": from, "empty": "Absent"}));
        assert_eq!(value(&absent, &layers), Ok(Some(next)), "{of}");
        // It hides the default, too.
        let of_value = one(of, &json!({"from": from, "empty": "Value", "default": "0"}));
        let expected = (of == "String").then(|| text(""));
        assert_eq!(value(&of_value, &layers), Ok(expected), "{of}");
    }
    // Blanks are a value of a String, and are trimmed for others.
    layers.pod_annotations = map(&[("x/a", "  ")]);
    let absent = |of| one(of, &json!({"from": from}));
    assert_eq!(value(&absent("String"), &layers), Ok(Some(text("  "))));
    assert_eq!(value(&absent("Integer"), &layers), Ok(Some(ParamValue::Integer(1))));
}

#[test]
fn a_required_parameter_that_is_hidden_denies() {
    let parameters = one("Integer", &json!({"required": true, "empty": "Value"}));
    let expected = "parameter a is required, and annotation x/a is empty; set it to a value";
    assert_eq!(value(&parameters, &pod(&[("x/a", " ")])), Err(expected.to_owned()));
}

#[test]
fn a_value_out_of_its_bounds_denies_and_is_not_named() {
    let long = MARKER.repeat(2);
    for (of, more, written, expected) in [
        ("Integer", json!({}), MARKER, "must be an Integer: decimal digits, within 64 bits"),
        ("Integer", json!({"minimum": "5"}), "4", "must be at least 5"),
        ("Integer", json!({"maximum": "-5"}), "4", "must be at most -5"),
        (
            "Boolean",
            json!({}),
            MARKER,
            "must be a Boolean: true, t, 1, yes, y, on, or false, f, 0, no, n, off",
        ),
        ("Quantity", json!({"minimum": "1Gi"}), "1023Mi", "must be at least 1Gi"),
        ("Quantity", json!({"maximum": "1"}), "1001m", "must be at most 1"),
        ("Duration", json!({"maximum": "60s"}), "61s", "must be at most 1m0s"),
        ("String", json!({"maxLength": 17}), &long, "must have at most 17 characters; it has 34"),
        ("String", json!({"minLength": 35}), &long, "must have at least 35 characters; it has 34"),
        ("String", json!({"pattern": "^[a-z]+$"}), MARKER, "must match the pattern \"^[a-z]+$\""),
        ("String", json!({"enum": ["b", "c"]}), MARKER, "must be one of \"b\", \"c\""),
        ("List", json!({"minItems": 2}), MARKER, "must have at least 2 items; it has 1"),
        ("List", json!({"maxItems": 1}), "a,b", "must have at most 1 item; it has 2"),
    ] {
        let found = value(&one(of, &more), &pod(&[("x/a", written)]));
        assert_eq!(found, Err(format!("parameter a: annotation x/a {expected}")), "{of} {more}");
    }
    let items = one("List", &json!({"items": {"type": "Integer", "maximum": "9"}}));
    let found = value(&items, &pod(&[("x/a", "1,,10,marker")]));
    assert_eq!(found, Err("parameter a: item 2 of annotation x/a must be at most 9".to_owned()));
}

#[test]
fn bounds_are_inclusive_and_of_the_type() {
    for (of, more, written) in [
        ("Integer", json!({"minimum": "9", "maximum": "10"}), "10"),
        ("Quantity", json!({"minimum": "1000m", "maximum": "1e0"}), "1"),
        ("Quantity", json!({"enum": ["1000m"]}), "1"),
        ("Duration", json!({"enum": ["60s"]}), "1m"),
        ("Boolean", json!({"enum": ["yes"]}), "1"),
        ("String", json!({"minLength": 3, "maxLength": 3}), "äöü"),
        ("String", json!({"pattern": "b"}), "abc"),
        ("List", json!({"minItems": 2, "maxItems": 2}), "a,,b,"),
    ] {
        assert!(value(&one(of, &more), &pod(&[("x/a", written)])).is_ok(), "{of} {more}");
    }
}

#[test]
fn an_invalid_value_gives_way_to_the_next_source_with_a_warning() {
    let more = json!({"onInvalid": "NextSource", "default": "9",
        "from": [{"podAnnotation": "x/a"}, {"namespaceAnnotation": "x/a"}]});
    let parameters = one("Integer", &more);
    let mut layers = pod(&[("x/a", MARKER)]);
    let warning = |of: &str| {
        format!(
            "parameter a: annotation x/a{of} must be an Integer: decimal digits, within 64 bits; the next source counts \
            instead"
        )
    };
    let expected = (Some(ParamValue::Integer(9)), vec![warning("")]);
    assert_eq!(warned(&parameters, &layers), expected);
    layers.namespace_annotations = map(&[("x/a", "3")]);
    assert_eq!(warned(&parameters, &layers), (Some(ParamValue::Integer(3)), vec![warning("")]));
    layers.namespace_annotations = map(&[("x/a", MARKER)]);
    let both = vec![warning(""), warning(" of the namespace")];
    assert_eq!(warned(&parameters, &layers), (Some(ParamValue::Integer(9)), both));
}

#[test]
fn an_invalid_value_gives_way_to_the_default_with_a_warning() {
    let from = json!([{"podAnnotation": "x/a"}, {"namespaceAnnotation": "x/a"}]);
    let mut layers = pod(&[("x/a", MARKER)]);
    layers.namespace_annotations = map(&[("x/a", "3")]);
    let warning = "parameter a: annotation x/a must be an Integer: decimal digits, within 64 bits; the default counts \
        instead";
    let more = json!({"onInvalid": "UseDefault", "from": from, "default": "9"});
    let expected = (Some(ParamValue::Integer(9)), vec![warning.to_owned()]);
    assert_eq!(warned(&one("Integer", &more), &layers), expected);
    let without = json!({"onInvalid": "UseDefault", "from": from});
    assert_eq!(warned(&one("Integer", &without), &layers), (None, vec![warning.to_owned()]));
    let required = json!({"onInvalid": "UseDefault", "from": from, "required": true});
    let expected = "parameter a: annotation x/a must be an Integer: decimal digits, within 64 bits";
    assert_eq!(read(&spec(&one("Integer", &required)), &layers), Err(expected.to_owned()));
}

#[test]
fn invalid_items_are_dropped_with_a_warning() {
    let more = json!({"onInvalid": "DropItem", "items": {"type": "Integer"}, "minItems": 1});
    let parameters = one("List", &more);
    let numbers = |numbers: &[i64]| {
        Some(ParamValue::List(numbers.iter().copied().map(ScalarValue::Integer).collect()))
    };
    let warning = "parameter a: item 2 of annotation x/a must be an Integer: decimal digits, within 64 bits; it is dropped";
    let found = warned(&parameters, &pod(&[("x/a", "1,marker,3")]));
    assert_eq!(found, (numbers(&[1, 3]), vec![warning.to_owned()]));
    let found = warned(&parameters, &pod(&[("x/a", "1,marker,3,,marker,a")]));
    assert_eq!(found, (numbers(&[1, 3]), vec![format!("{warning}, and so are 2 more")]));
    // The bounds of the list are for what is left.
    let found = read(&spec(&parameters), &pod(&[("x/a", "marker")]));
    assert_eq!(
        found,
        Err("parameter a: annotation x/a must have at least 1 item; it has 0".to_owned())
    );
}

#[test]
fn a_separator_divides_items() {
    let parameters = one("List", &json!({"separator": "::"}));
    assert_eq!(
        value(&parameters, &pod(&[("x/a", "a:b :: c,d")])),
        Ok(Some(texts(&["a:b", "c,d"])))
    );
    let lines = one("List", &json!({"separator": "\n"}));
    assert_eq!(value(&lines, &pod(&[("x/a", "a b\n\n c\n")])), Ok(Some(texts(&["a b", "c"]))));
}

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

#[test]
fn annotations_with_the_prefix_that_nothing_reads_are_warned_of() {
    let spec = spec_with(&json!({
        "enablement": {"key": "x/inject"},
        "parameterKeys": {"prefix": "x/", "in": ["PodAnnotation"]},
        "parameters": [
            {"name": "level", "key": "log-level", "type": "String"},
            {"name": "role", "type": "String", "from": [{"serviceAccountAnnotation": "x/role"}]},
            {"name": "secret", "type": "Map", "from": [{"podAnnotationPrefix": "x/secret-"}]},
        ],
    }));
    let mut layers = pod(&[
        ("x/inject", "true"),
        ("x/log-level", "debug"),
        ("x/log-levle", MARKER),
        ("x/role", "a"),
        ("x/secret-a", "a"),
        ("x/secret-", "a"),
        ("x/\u{1b}", "a"),
        ("y/other", "a"),
    ]);
    layers.namespace_annotations = map(&[("x/other", "a")]);
    let mut expected = vec![
        "no parameter reads the annotation x/\\u{1b}",
        "no parameter reads the annotation x/log-levle; did you mean x/log-level?",
        "no parameter reads the annotation x/secret-",
    ];
    assert_eq!(read(&spec, &layers).expect("it is not denied").warnings, expected);
    let mut of_namespace = spec;
    let r#in = vec![injectd_templates::object::KeyPlace::NamespaceAnnotation];
    of_namespace.parameter_keys = Some(ParameterKeys { prefix: "x/".to_owned(), r#in });
    expected.push("no parameter reads the annotation x/other of the namespace");
    assert_eq!(read(&of_namespace, &layers).expect("it is not denied").warnings, expected);
}

#[test]
fn the_mark_is_no_annotation_of_a_parameter() {
    let spec =
        spec_with(&json!({"parameterKeys": {"prefix": "injectd.dev/", "in": ["PodAnnotation"]}}));
    let layers = pod(&[("injectd.dev/templates", "{}"), ("injectd.dev/x", "")]);
    let expected = ["no parameter reads the annotation injectd.dev/x"];
    assert_eq!(read(&spec, &layers).expect("it is not denied").warnings, expected);
}

#[test]
fn there_are_as_many_warnings_as_a_person_reads() {
    let spec = spec_with(&json!({"parameterKeys": {"prefix": "x/", "in": ["PodAnnotation"]}}));
    let annotations = (0..10_000).map(|number| (format!("x/{number}"), String::new()));
    let layers = Layers { pod_annotations: annotations.collect(), ..Layers::default() };
    let warnings = read(&spec, &layers).expect("it is not denied").warnings;
    assert_eq!((warnings.len(), &*warnings[32]), (33, "9968 more warnings about parameters"));
}

/// A parameter of any type with bounds that most texts do not meet.
fn any_parameter() -> impl Strategy<Value = Value> {
    let scalars = || {
        prop::sample::select(vec![
            json!({"type": "String", "maxLength": 9, "pattern": "^[a-z]*$", "enum": ["a", "bc"]}),
            json!({"type": "String"}),
            json!({"type": "Integer", "minimum": "-3", "maximum": "1000"}),
            json!({"type": "Boolean"}),
            json!({"type": "Quantity", "minimum": "10m", "maximum": "1Gi"}),
            json!({"type": "Duration", "maximum": "1h"}),
        ])
    };
    let list = |items: Value| json!({"type": "List", "items": items, "maxItems": 3});
    let map = |values: Value| json!({"type": "Map", "values": values, "maxItems": 3});
    let forms = prop_oneof![scalars(), scalars().prop_map(list), scalars().prop_map(map)];
    let choices = prop::sample::select(vec!["Deny", "NextSource", "UseDefault", "DropItem"]);
    let empty = prop::sample::select(vec!["Absent", "Value"]);
    let of_value = prop::sample::select(vec!["optional", "required", "default"]);
    (forms, choices, empty, of_value).prop_map(|(mut form, on_invalid, empty, of_value)| {
        let of = form["type"].as_str().unwrap_or_default().to_owned();
        form["name"] = "a".into();
        form["empty"] = empty.into();
        form["onInvalid"] = match (&*of, on_invalid) {
            ("Map", "UseDefault") => "DropItem".into(),
            ("List" | "Map", on_invalid) => on_invalid.into(),
            (_, "DropItem") => "NextSource".into(),
            (_, on_invalid) => on_invalid.into(),
        };
        form["required"] = (of_value == "required" && of != "Map").into();
        if of_value == "default" && of != "Map" {
            let of = form["items"]["type"].as_str().unwrap_or(&of);
            form["default"] = default_of(of).into();
        }
        form["from"] = match &*of {
            "Map" => json!([{"podAnnotationPrefix": "x/"}, {"namespaceAnnotationPrefix": "x/"}]),
            _ => json!([{"podAnnotation": "x/a"}, {"namespaceAnnotation": "x/a"}, {"podLabel": "x/a"}]),
        };
        form
    })
}

/// A text of the type, within the bounds of any parameter.
fn default_of(of: &str) -> &'static str {
    match of {
        "String" => "a",
        "Boolean" => "on",
        "Duration" => "1s",
        _ => "1",
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-+]?[0-9]{1,20}(m|s|Mi|k|h)?",
        "(marker,){0,4}marker\\PC{0,9}",
        " ?(true|off|a|bc|1,2|,| )? ?",
        "\\PC{0,9}marker",
    ]
}

proptest! {
    /// No message has a value, and the values are within the bounds: read again, they are the same.
    #[test]
    fn any_texts_are_read_and_not_named(
        parameter in any_parameter(),
        texts in prop::collection::vec((0..3_usize, "x/[ab]", any_text()), 0..8),
    ) {
        let mut layers = Layers::default();
        for (place, key, text) in texts {
            let layer = match place {
                0 => &mut layers.pod_annotations,
                1 => &mut layers.namespace_annotations,
                _ => &mut layers.pod_labels,
            };
            layer.insert(key, text);
        }
        let spec = spec(&json!([parameter]));
        let found = read(&spec, &layers);
        let is_denied = found.is_err();
        let (messages, value) = match found {
            Ok(mut found) => (found.warnings.join("\n"), found.values.remove("a")),
            Err(problem) => (problem, None),
        };
        prop_assert!(!messages.contains("marker"), "{}", messages);
        let may_be_absent = injectd_templates::parameters::may_be_absent(&spec.parameters[0]);
        prop_assert!(is_denied || value.is_some() || may_be_absent);
        match value {
            None | Some(ParamValue::Map(_)) => {}
            Some(value) => {
                let again = read(&spec, &pod(&[("x/a", &written(&value))]));
                let again = again.map(|mut found| found.values.remove("a"));
                let is_empty = written(&value).trim().is_empty();
                prop_assert!(is_empty || again == Ok(Some(value)));
            }
        }
    }

    /// What a nearer source has counts, whatever is behind it.
    #[test]
    fn the_nearest_source_counts(present in prop::collection::vec(any::<bool>(), 7)) {
        let (spec, all) = everywhere();
        let mut layers = Layers::default();
        for (at, source) in all.iter().enumerate().filter(|(at, _)| present[*at]) {
            set(&mut layers, source, &at.to_string());
        }
        let expected = present.iter().position(|is_there| *is_there).map(|at| text(&at.to_string()));
        let found = read(&spec, &layers).expect("it is not denied");
        prop_assert_eq!(found.values.get("a"), expected.as_ref());
    }
}

/// The text of a value, as a source would have it.
fn written(value: &ParamValue) -> String {
    match value {
        ParamValue::Text(text) | ParamValue::Quantity(text) | ParamValue::Duration(text) => {
            text.clone()
        }
        ParamValue::Integer(value) => value.to_string(),
        ParamValue::Boolean(value) => value.to_string(),
        ParamValue::List(items) => {
            items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        }
        ParamValue::Map(_) => String::new(),
    }
}
