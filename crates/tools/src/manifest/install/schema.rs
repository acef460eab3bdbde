//! Checks values by the schema of the chart, which Helm reads too.
//!
//! Only the keywords that the schema has: a test names others.

use serde_json::Value;

use super::chart::SCHEMA;

/// Checks values against the schema. The error names the value.
pub(super) fn check(values: &Value) -> Result<(), String> {
    let schema: Value = serde_json::from_str(SCHEMA).map_err(|error| error.to_string())?;
    check_at("", values, &schema, &schema)
}

/// Checks a value against a schema, which refers to definitions of the whole one.
fn check_at(path: &str, value: &Value, schema: &Value, whole: &Value) -> Result<(), String> {
    let definition = schema.get("$ref").and_then(Value::as_str).map(|name| definition(name, whole));
    let schema = definition.unwrap_or(schema);
    let fail =
        |text: String| Err(format!("{}: {text}", if path.is_empty() { "values" } else { path }));
    let types = schema.get("type").map_or(Vec::new(), |types| match types {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    });
    if !types.is_empty() && !types.iter().any(|name| is_of(value, name)) {
        return fail(format!("expected {}, found {value}", types.join(" or ")));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().map(Value::to_string).collect();
        return fail(format!("expected {}, found {value}", allowed.join(", ")));
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
    if let Some(number) = value.as_i64()
        && (bound("minimum").is_some_and(|least| number < least)
            || bound("maximum").is_some_and(|most| number > most))
    {
        return fail(format!("{number} is out of range"));
    }
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let known = schema.get("properties").and_then(|all| all.get(key));
                match known.or(schema.get("additionalProperties")) {
                    Some(Value::Bool(false)) => return Err(unknown(&at, key, schema)),
                    Some(schema) => check_at(&at, value, schema, whole)?,
                    None => {}
                }
            }
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            for key in required.filter_map(Value::as_str) {
                if !entries.contains_key(key) {
                    return fail(format!("{key} is required"));
                }
            }
        }
        Value::Array(items) => {
            let most = schema.get("maxItems").and_then(Value::as_u64);
            if most.is_some_and(|most| items.len() as u64 > most) {
                return fail(format!("{} items are too many", items.len()));
            }
            for (index, item) in items.iter().enumerate() {
                if let Some(schema) = schema.get("items") {
                    check_at(&format!("{path}[{index}]"), item, schema, whole)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// A definition of the schema, by its reference `#/definitions/NAME`.
fn definition<'a>(reference: &str, whole: &'a Value) -> &'a Value {
    let found = reference.strip_prefix('#').and_then(|pointer| whole.pointer(pointer));
    found.expect("the schema must have what it refers to")
}

fn unknown(path: &str, key: &str, schema: &Value) -> String {
    let known = schema.get("properties").and_then(Value::as_object);
    let names = known.into_iter().flat_map(|known| known.keys().map(String::as_str));
    let hint = injectd_core::spelling::most_like(names, key);
    let hint = hint.map_or_else(
        || "injectd manifest install --print-values prints all values".to_owned(),
        |name| format!("did you mean {name}?"),
    );
    format!("{path}: unknown value; {hint}")
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{chart::default_values, values::merge},
        *,
    };

    const KEYWORDS: [&str; 13] = [
        "$schema",
        "$ref",
        "definitions",
        "title",
        "type",
        "properties",
        "additionalProperties",
        "items",
        "enum",
        "minimum",
        "maximum",
        "maxItems",
        "required",
    ];

    #[test]
    fn only_keywords_that_are_checked_are_used() {
        fn walk(schema: &Value, whole: &Value) {
            let entries = schema.as_object().expect("a schema");
            for (key, value) in entries {
                assert!(KEYWORDS.contains(&key.as_str()), "{key}");
                match key.as_str() {
                    "properties" | "definitions" => {
                        let all = value.as_object().expect("a mapping").values();
                        all.for_each(|schema| walk(schema, whole));
                    }
                    "items" => walk(value, whole),
                    "additionalProperties" if value.is_object() => walk(value, whole),
                    // What stands beside it is not checked, by Helm neither.
                    "$ref" => {
                        assert_eq!(entries.len(), 1, "{value}");
                        definition(value.as_str().expect("a reference"), whole);
                    }
                    _ => {}
                }
            }
        }
        let schema = serde_json::from_str(SCHEMA).expect("the schema");
        walk(&schema, &schema);
    }

    #[test]
    fn wrong_values_are_named() {
        let with = |over: &Value| {
            let mut values = default_values();
            merge(&mut values, over.clone());
            check(&values)
        };
        for (over, problem) in [
            (json!({"replica": 3}), "replica: unknown value; did you mean replicas?"),
            (
                json!({"image": {"repo": "x"}}),
                "image.repo: unknown value; injectd manifest install --print",
            ),
            (json!({"replicas": "3"}), "replicas: expected integer, found \"3\""),
            (json!({"webhookDefaults": {"timeoutSeconds": 31}}), "out of range"),
            (json!({"certificates": {"source": "vault"}}), "certificates.source: expected"),
            (json!({"istio": {"tags": [{}]}}), "istio.tags[0]: tag is required"),
            (json!({"istio": {"tags": [null]}}), "istio.tags[0]: expected object, found null"),
            (json!({"replicas": null}), "values: replicas is required"),
            (
                json!({"customWebhooks": [{"rules": [{"operations": ["PATCH"]}]}]}),
                "customWebhooks[0].rules[0].operations[0]: expected",
            ),
            (
                json!({"istio": {"webhookOverrides": {"objectSelector": {"matchLabel": {}}}}}),
                "did you mean matchLabels?",
            ),
            (json!([]), "values: expected object"),
        ] {
            let found = with(&over).expect_err(problem);
            assert!(found.contains(problem), "{found}");
        }
        for over in [json!({}), json!({"runAsUser": null, "resources": null, "podLabels": null})] {
            assert_eq!(with(&over), Ok(()), "{over}");
        }
    }
}
