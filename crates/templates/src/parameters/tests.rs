use injectd_cel::Program;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Template, object::Bounds};

const ALL: [ParameterType; 7] = [
    ParameterType::String,
    ParameterType::Integer,
    ParameterType::Boolean,
    ParameterType::Quantity,
    ParameterType::Duration,
    ParameterType::List,
    ParameterType::Map,
];

/// The problems of parameters, one a line, with the keys `example.com/`.
fn problems(parameters: &Value) -> String {
    problems_with(parameters, &keys())
}

fn keys() -> Value {
    json!({"prefix": "example.com/", "in": ["PodAnnotation"]})
}

fn problems_with(parameters: &Value, keys: &Value) -> String {
    let parameters: Vec<Parameter> =
        serde_json::from_value(parameters.clone()).expect("parameters");
    let keys: Option<ParameterKeys> = serde_json::from_value(keys.clone()).expect("keys");
    let lines: Vec<_> = check(&parameters, keys.as_ref()).iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A parameter with a source, and some more fields.
fn with(of: &str, more: &Value) -> Value {
    let from = match of {
        "Map" => json!([{"podAnnotationPrefix": "example.com/a-"}]),
        _ => json!([{"podAnnotation": "example.com/a"}]),
    };
    let mut parameter = json!({"name": "a", "type": of, "from": from});
    for (key, value) in more.as_object().expect("an object") {
        parameter[key] = value.clone();
    }
    json!([parameter])
}

#[test]
fn parameters_in_order_have_no_problems() {
    let parameters = json!([
        {"name": "role", "type": "String", "required": true, "minLength": 1, "maxLength": 63,
            "pattern": "^[a-z]+$", "from": [{"podAnnotation": "Example.com/role"}, {"podLabel": "role"},
            {"serviceAccountAnnotation": "example.com/role"}], "empty": "Value"},
        {"name": "cpu", "key": "cpu", "type": "Quantity", "default": "50m", "minimum": "10m", "maximum": "1"},
        {"name": "n", "key": "n", "type": "Integer", "enum": ["1", "+2"], "default": " 02 "},
        {"name": "on", "key": "on", "type": "Boolean", "default": "No", "onInvalid": "UseDefault"},
        {"name": "wait", "key": "wait", "type": "Duration", "minimum": "1s", "default": "60s", "enum": ["1m"]},
        {"name": "ports", "key": "ports", "type": "List", "separator": ";", "default": "1; ;2", "minItems": 2,
            "items": {"type": "Integer", "minimum": "1", "maximum": "65535"}, "onInvalid": "DropItem"},
        {"name": "none", "key": "none", "type": "List", "default": ""},
        {"name": "secret", "type": "Map", "maxItems": 32, "onInvalid": "NextSource", "values": {"type": "String",
            "pattern": "^/"}, "from": [{"podAnnotationPrefix": "example.com/secret-"},
            {"namespaceAnnotationPrefix": "example.com/secret-"}]},
        {"name": "file", "type": "Map", "from": [{"podAnnotationPrefix": "example.com/secret-file-"}]},
        {"name": "constant", "type": "String", "default": "a"},
    ]);
    assert_eq!(problems(&parameters), "");
    assert_eq!(problems_with(&json!([]), &Value::Null), "");
}

/// Broken parameters and their problems.
const BROKEN: &str = include_str!("../../testdata/parameters.txt");

/// The spec of a line of `testdata`.
fn broken(line: &str) -> Value {
    let (of, fields) = line.split_once(' ').expect("a type and fields");
    let fields = serde_json::from_str(fields).expect(line);
    match of {
        "Spec" => fields,
        _ => json!({"parameters": with(of, &fields), "parameterKeys": keys()}),
    }
}

#[test]
fn each_problem_names_field_found_and_expected() {
    let lines = BROKEN.lines().filter(|line| !line.starts_with('#'));
    let (mut found, mut count) = (String::new(), 0);
    for line in lines.clone().filter(|line| !line.starts_with(' ')) {
        let spec = broken(line);
        let problems = problems_with(&spec["parameters"], &spec["parameterKeys"]);
        found.push_str(line);
        found.extend(problems.lines().map(|problem| format!("\n  {problem}")));
        found.push('\n');
        count += 1;
    }
    assert!(count > 45, "{count}");
    let expected: Vec<_> = lines.collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_template_with_a_broken_parameter_is_not_read() {
    for line in BROKEN.lines().filter(|line| !line.starts_with(['#', ' '])) {
        let object = json!({"kind": "SidecarTemplate", "spec": broken(line)});
        assert!(Template::read(&object).is_err(), "{line}");
    }
}

#[test]
fn an_empty_source_hides_a_default() {
    for (of, more, expected) in [
        ("Integer", json!({}), true),
        ("Integer", json!({"default": "1"}), false),
        ("Integer", json!({"required": true, "empty": "Value"}), false),
        ("Integer", json!({"default": "1", "empty": "Value"}), true),
        ("List", json!({"default": "1", "empty": "Value"}), true),
        ("String", json!({"default": "1", "empty": "Value"}), false),
        ("Map", json!({"empty": "Value"}), false),
    ] {
        let parameters = with(of, &more);
        assert_eq!(problems(&parameters), "");
        let [parameter]: [Parameter; 1] = serde_json::from_value(parameters).expect("one");
        assert_eq!(may_be_absent(&parameter), expected, "{of} {more}");
    }
}

/// The texts of a source: its literals with a blank, in parts between braces.
pub(crate) fn texts(source: &str) -> Vec<String> {
    let product = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<_> = code.collect();
    // A literal that goes on in the next line.
    let code = regex::Regex::new(r"\\\n\s*")
        .expect("a pattern")
        .replace_all(&code.join("\n"), "")
        .into_owned();
    let literal = regex::Regex::new(r#""((?:[^"\\\n]|\\.)*)""#).expect("a pattern");
    let literals = literal.captures_iter(&code).map(|found| found[1].replace("\\\"", "\""));
    let parts = literals
        .flat_map(|text| text.split(['{', '}']).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    parts.filter(|part| part.trim().contains(' ')).collect()
}

#[test]
fn each_text_of_a_problem_is_seen() {
    let sources = [
        include_str!("../parameters.rs"),
        include_str!("form.rs"),
        include_str!("reader.rs"),
        include_str!("scalar.rs"),
    ];
    let all: Vec<_> = sources.into_iter().flat_map(texts).collect();
    assert!(all.len() > 40, "{all:?}");
    // Of a type that reads each text, and of those that have no values of their own.
    let unseen = ["must be a String", "must be a List", "must be a Map"];
    let is_missing =
        |text: &&String| !BROKEN.contains(text.as_str()) && !unseen.contains(&&***text);
    let missing: Vec<_> = all.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "testdata/parameters.txt has no problem with {missing:#?}");
}

#[test]
fn all_problems_of_a_parameter_are_found() {
    let more = json!({"minimum": "1", "minItems": 1, "onInvalid": "DropItem", "values": {"type": "String"}});
    assert_eq!(problems(&with("String", &more)).lines().count(), 4);
}

#[test]
fn reserved_words_are_those_of_cel() {
    for word in RESERVED {
        if !["false", "in", "null", "true"].contains(&word) {
            let problem = Program::compile(word).expect_err(word);
            assert!(problem.contains("reserved identifier"), "{problem}");
        }
        assert!(identifier_problem(word).is_some());
    }
    for name in ["a", "_", "a1_B", "params", "object"] {
        assert_eq!(identifier_problem(name), None);
    }
    for name in ["", "1", "a.b", "a b", "ä", "a-b", "a\n"] {
        assert!(identifier_problem(name).is_some(), "{name}");
    }
}

#[test]
fn values_are_read_as_the_contract_says() {
    use ParameterType::{Boolean, Duration, Integer, Quantity, String};
    let boolean = |value| Some(ScalarValue::Boolean(value));
    let integer = |value| Some(ScalarValue::Integer(value));
    let quantity = |text: &str| Some(ScalarValue::Quantity(text.to_owned()));
    let duration = |text: &str| Some(ScalarValue::Duration(text.to_owned()));
    for (of, text, expected) in [
        (String, " a ", Some(ScalarValue::Text(" a ".to_owned()))),
        (Boolean, " TRUE\n", boolean(true)),
        (Boolean, "T", boolean(true)),
        (Boolean, "1", boolean(true)),
        (Boolean, "Yes", boolean(true)),
        (Boolean, "y", boolean(true)),
        (Boolean, "on", boolean(true)),
        (Boolean, "False", boolean(false)),
        (Boolean, "f", boolean(false)),
        (Boolean, "0", boolean(false)),
        (Boolean, "NO", boolean(false)),
        (Boolean, "n", boolean(false)),
        (Boolean, "off", boolean(false)),
        (Boolean, "", None),
        (Boolean, "01", None),
        (Boolean, "enabled", None),
        (Integer, " -7 ", integer(-7)),
        (Integer, "+007", integer(7)),
        (Integer, "9223372036854775807", integer(i64::MAX)),
        (Integer, "9223372036854775808", None),
        (Integer, "1_000", None),
        (Integer, "0x10", None),
        (Integer, "1.0", None),
        (Integer, "1e3", None),
        (Integer, "٣", None),
        (Integer, "", None),
        (Quantity, " 0.50Gi ", quantity("0.50Gi")),
        (Quantity, "1e3", quantity("1e3")),
        (Quantity, "1 Gi", None),
        (Quantity, "", None),
        (Duration, " 90m ", duration("1h30m0s")),
        (Duration, "1.5s", duration("1.5s")),
        (Duration, "0", duration("0s")),
        (Duration, "1d", None),
        (Duration, "60", None),
        (ParameterType::List, "a", None),
        (ParameterType::Map, "a", None),
    ] {
        assert_eq!(ScalarValue::read(of, text), expected, "{of:?} {text:?}");
    }
}

#[test]
fn values_are_compared_by_their_type() {
    let read = |of, text| ScalarValue::read(of, text).expect(text);
    for (of, one, other, is_same) in [
        (ParameterType::Quantity, "1", "1000m", true),
        (ParameterType::Quantity, "1Gi", "1G", false),
        (ParameterType::Duration, "60s", "1m", true),
        (ParameterType::Integer, "07", "7", true),
        (ParameterType::Boolean, "yes", "1", true),
        (ParameterType::String, "yes", "1", false),
        (ParameterType::String, "a", "a ", false),
    ] {
        assert_eq!(read(of, one).is_same(&read(of, other)), is_same, "{one} {other}");
    }
}

#[test]
fn a_pattern_is_not_anchored_and_is_of_go() {
    let reader = |pattern: &str| {
        let bounds = Bounds { pattern: Some(pattern.to_owned()), ..Bounds::default() };
        Reader::new(ParameterType::String, &bounds, "p").expect(pattern)
    };
    assert!(reader("b+").read("abbc").is_ok());
    // In Go, `\d` is ASCII.
    assert!(reader(r"\d").read("٣").is_err());
    assert!(reader(r"^\Q.\E$").read(".").is_ok());
    assert!(reader(r"^\Q.\E$").read("a").is_err());
    // `$` is the end of the text.
    assert!(reader("^a$").read("a\n").is_err());
}

proptest! {
    /// A value that is printed and read again is the same.
    #[test]
    fn any_text_is_read(text in "\\PC{0,12}|[-+]?[0-9.]{1,9}(ns|ms|s|m|h|Ki|k|e9)?|(?i)(yes|off|t)") {
        for of in ALL {
            let Some(value) = ScalarValue::read(of, &text) else { continue };
            let again = ScalarValue::read(of, &value.to_string());
            prop_assert_eq!(again.as_ref(), Some(&value));
            prop_assert!(value.is_same(&value));
        }
    }

    /// The order of values is the same in both directions.
    #[test]
    fn order_is_an_order(one in "-?[0-9]{1,12}[.]?[0-9]{0,12}(m|k|Ki|Mi|e-9|e30)?", other in "-?[0-9]{1,3}(m|Ki|e30)?") {
        let read = |text: &str| ScalarValue::read(ParameterType::Quantity, text);
        let (one, other) = (read(&one).expect("a quantity"), read(&other).expect("a quantity"));
        let order = one.order(&other).expect("an order");
        prop_assert_eq!(other.order(&one), Some(order.reverse()));
        if let (Some(of_one), Some(of_other)) = (billionths(&one), billionths(&other)) {
            prop_assert_eq!(of_one.cmp(&of_other), order);
        }
    }

    #[test]
    fn any_parameter_is_checked(
        name in "\\PC{0,4}", pattern in "\\PC{0,12}", default in "\\PC{0,8}", bound in "\\PC{0,4}|[0-9]m?",
        of in prop::sample::select(ALL.to_vec()), length: u32,
    ) {
        let more = json!({"name": name, "pattern": pattern, "default": default, "minimum": bound,
            "enum": [bound], "maxLength": length, "separator": bound, "key": name});
        problems(&with(&format!("{of:?}"), &more));
        let only = json!({"pattern": pattern, "default": default});
        problems(&with("String", &only));
    }
}

fn billionths(value: &ScalarValue) -> Option<i128> {
    injectd_gocompat::quantity::parse(&value.to_string())?.billionths()
}
