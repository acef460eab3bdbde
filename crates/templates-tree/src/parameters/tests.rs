mod maps;
mod properties;
mod unknown;

use serde_json::{Value, json};

use super::*;

/// No message may have it.
const MARKER: &str = "marker-of-a-value";

fn read(spec: &Spec, layers: &Layers) -> Result<Parameters, String> {
    let forms = injectd_templates::parameters::forms(&spec.parameters).expect("valid parameters");
    super::read(spec, &forms, layers)
}

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
    // Its author counts the empty ones.
    assert_eq!(found, Err("parameter a: item 3 of annotation x/a must be at most 9".to_owned()));
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
