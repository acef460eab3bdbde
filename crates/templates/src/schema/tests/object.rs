//! The schema and the types of `object.rs` have the same fields, values and defaults.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::super::{SPEC, filled, read};
use crate::object::{Content, Spec};

/// The structs of `object.rs`, and the fields of their objects in the schema.
const STRUCTS: [(&str, &str); 17] = [
    ("Spec", ""),
    ("Match", "/match"),
    ("LabelSelector", "/match/podSelector"),
    ("Expression", "/match/podSelector/matchExpressions/0"),
    ("Condition", "/match/conditions/0"),
    ("Enablement", "/enablement"),
    ("ParameterKeys", "/parameterKeys"),
    ("Parameter", "/parameters/0"),
    ("Scalar", "/parameters/0/items"),
    ("Variable", "/variables/0"),
    ("Validation", "/validations/0"),
    ("Step", "/steps/0"),
    ("ForEach", "/steps/0/forEach"),
    ("Rule", "/steps/0/containers/0"),
    ("RulePlacement", "/steps/0/containers/0/placement"),
    ("Placement", "/steps/0/placement"),
    ("Place", "/steps/0/placement/containers"),
];

/// Fields of the schema that are not for evaluation.
const NOT_READ: [&str; 1] = ["/revisionHistoryLimit"];

/// A field of the schema, in the smallest `spec` that has it.
struct Field {
    /// The pointer to its value.
    path: String,
    schema: Value,
    with: Value,
}

/// What is kept of a `spec`, and what is compiled.
fn parse(spec: &Value) -> Result<(Spec, Content), serde_json::Error> {
    Ok((Spec::deserialize(spec)?, Content::deserialize(spec)?))
}

/// A value that the schema admits, other than its default.
fn sample(schema: &Value) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        let other = values.iter().rfind(|value| **value != schema["default"]);
        return other.expect("a value").clone();
    }
    match schema["type"].as_str() {
        Some("array") => json!([sample(&schema["items"])]),
        Some("string") => "x".into(),
        Some("integer") => 7.into(),
        Some("boolean") => true.into(),
        _ if schema.get("additionalProperties").is_some() => {
            json!({"x": sample(&schema["additionalProperties"])})
        }
        _ if schema.get("properties").is_none() => json!({"x": 1}),
        _ => {
            let mut fields = required(schema);
            let first = schema["properties"].as_object().and_then(|fields| fields.iter().next());
            if let (true, Some((name, schema))) = (fields.is_empty(), first) {
                fields.insert(name.clone(), sample(schema));
            }
            fields.into()
        }
    }
}

fn required(schema: &Value) -> Map<String, Value> {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name.to_owned(), sample(&schema["properties"][name]))).collect()
}

/// All fields below an object of the schema; `make` puts a value in its place.
fn fields(path: &str, schema: &Value, make: &dyn Fn(Value) -> Value, found: &mut Vec<Field>) {
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        let make = |value: Value| {
            let mut fields = required(schema);
            fields.insert(name.clone(), value);
            make(fields.into())
        };
        found.push(Field { path: path.clone(), schema: of.clone(), with: make(sample(of)) });
        fields_of(&path, of, &make, found);
    }
}

fn fields_of(path: &str, schema: &Value, make: &dyn Fn(Value) -> Value, found: &mut Vec<Field>) {
    if schema["type"] == "array" {
        let make = |value: Value| make(json!([value]));
        return fields_of(&format!("{path}/0"), &schema["items"], &make, found);
    }
    if schema.get("enum").is_some() || is_union(schema) {
        let with = make(sample(schema));
        found.push(Field { path: path.to_owned(), schema: schema.clone(), with });
    }
    fields(path, schema, make, found);
}

/// Whether an object has exactly one field.
fn is_union(schema: &Value) -> bool {
    let rule = schema["x-kubernetes-validations"][0]["message"].as_str().unwrap_or_default();
    let has_rule = schema.get("oneOf").is_some() || rule.starts_with("expected exactly one of");
    schema.get("required").is_none() && has_rule
}

fn all() -> Vec<Field> {
    let mut found = Vec::new();
    fields("", &read(SPEC), &|value| value, &mut found);
    assert!(found.len() > 100, "{} fields", found.len());
    found
}

#[test]
fn every_field_of_the_schema_is_read() {
    for Field { path, with, .. } in all() {
        let (parent, name) = path.rsplit_once('/').expect("a pointer");
        let read = parse(&with).unwrap_or_else(|error| panic!("{path}: {error}: {with}"));
        let mut without = with.clone();
        let Some(Value::Object(fields)) = without.pointer_mut(parent) else { continue };
        fields.shift_remove(name);
        let is_read =
            parse(&without).map_or(true, |other| format!("{other:?}") != format!("{read:?}"));
        assert_eq!(is_read, !NOT_READ.contains(&&*path), "{path}: {with}");
    }
}

#[test]
fn every_field_of_the_objects_is_in_the_schema() {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Field { with, path, .. } in all() {
        let spec = parse(&with).unwrap_or_else(|error| panic!("{path}: {error}"));
        structs(&format!("{spec:#?}"), &mut found);
    }
    for (kept, compiled) in [("Spec", "Content"), ("Match", "Conditions")] {
        let fields = found.remove(compiled).expect("fields");
        found.entry(kept.to_owned()).or_default().extend(fields);
    }
    let bounds = found.remove("Bounds").expect("bounds");
    let schema = read(SPEC);
    for (name, at) in STRUCTS {
        let mut of = found.remove(name).unwrap_or_else(|| panic!("no {name} was read"));
        if of.remove("bounds") {
            of.extend(bounds.clone());
        }
        let path = at.split('/').skip(1).map(|step| match step {
            "0" => "/items".to_owned(),
            name => format!("/properties/{name}"),
        });
        let object = schema.pointer(&path.collect::<String>()).expect("an object");
        let properties = object["properties"].as_object().expect("its fields");
        let is_read = |name: &&String| !NOT_READ.contains(&&*format!("{at}/{name}"));
        let expected: BTreeSet<_> = properties.keys().filter(is_read).cloned().collect();
        assert_eq!(of, expected, "{name}");
    }
    assert!(found.is_empty(), "these structs are not compared: {found:?}");
}

/// The fields of the structs of a printed value.
fn structs(printed: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut open = Vec::new();
    for line in printed.lines().map(str::trim) {
        let (field, value) =
            line.split_once(": ").filter(|(name, _)| is_name(name)).unwrap_or(("", line));
        if let (false, Some(Some(name))) = (field.is_empty(), open.last()) {
            found.entry(String::clone(name)).or_default().insert(camel_case(field));
        }
        if value.ends_with(['{', '[', '(']) {
            let name = value.strip_suffix(" {").filter(|name| is_name(name) && *name != "Object");
            if let Some(name) = name {
                found.entry(name.to_owned()).or_default();
            }
            open.push(name.map(str::to_owned));
        } else if ["}", "},", "]", "],", ")", "),"].contains(&value) {
            open.pop();
        }
    }
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + &part[..1].to_uppercase() + &part[1..])
}

/// The values that serde expects, and those of the schema: some fields admit only a part of them.
#[test]
fn the_values_of_both_are_the_same() {
    let mut values: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    for Field { path, schema, with } in all() {
        let names: Vec<_> = match schema["enum"].as_array() {
            Some(values) => values.iter().filter_map(Value::as_str).collect(),
            None if is_union(&schema) => schema["properties"]
                .as_object()
                .expect("fields")
                .keys()
                .map(String::as_str)
                .collect(),
            None => continue,
        };
        let mut wrong = with;
        *wrong.pointer_mut(&path).expect("the field") =
            if is_union(&schema) { json!({"-": 1}) } else { "-".into() };
        // Operators of selectors are texts.
        let Err(error) = parse(&wrong) else { continue };
        let error = error.to_string();
        let expected: Vec<_> = error.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        assert!(
            names.iter().all(|name| expected.iter().any(|known| known == name)),
            "{path}: {error}"
        );
        values.entry(expected).or_default().extend(names.into_iter().map(str::to_owned));
    }
    assert!(values.len() > 12, "{values:?}");
    for (expected, found) in values {
        assert_eq!(found, expected.into_iter().collect());
    }
}

#[test]
fn the_defaults_of_both_are_the_same() {
    let mut changed = 0;
    for Field { path, with, .. } in all() {
        let with_defaults = filled(&with);
        changed += usize::from(with_defaults != with);
        let [one, other] =
            [&with, &with_defaults].map(|spec| format!("{:?}", parse(spec).expect("a spec")));
        assert_eq!(one, other, "{path}");
    }
    assert!(changed > 50, "{changed}");
}
