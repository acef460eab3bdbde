//! Rules that hold for all parameters and texts.

use proptest::prelude::*;

use super::*;

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
