//! Checks values by the schema of the chart, which Helm reads too.
//!
//! Only the keywords that the schema has: a test names others.

use serde_json::Value;

use super::chart::SCHEMA;

/// Checks values against the schema. The error names the value.
pub(super) fn check(values: &Value) -> Result<(), String> {
    let schema: Value = serde_json::from_str(SCHEMA).map_err(|error| error.to_string())?;
    check_at("", values, &schema)
}

fn check_at(path: &str, value: &Value, schema: &Value) -> Result<(), String> {
    if value.is_null() && schema.get("type").is_some() && !path.is_empty() {
        // Removes the default.
        return Ok(());
    }
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
                    Some(schema) => check_at(&at, value, schema)?,
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
                    check_at(&format!("{path}[{index}]"), item, schema)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn unknown(path: &str, key: &str, schema: &Value) -> String {
    let known = schema.get("properties").and_then(Value::as_object);
    let names = known.into_iter().flat_map(|known| known.keys().map(String::as_str));
    let hint = injectd_core::explain::most_like(names, key);
    let hint = hint.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    format!("{path}: unknown value{hint}")
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

    use super::*;

    const KEYWORDS: [&str; 11] = [
        "$schema",
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
        fn walk(schema: &Value) {
            for (key, value) in schema.as_object().expect("a schema") {
                assert!(KEYWORDS.contains(&key.as_str()), "{key}");
                match key.as_str() {
                    "properties" => value.as_object().expect("properties").values().for_each(walk),
                    "items" => walk(value),
                    "additionalProperties" if value.is_object() => walk(value),
                    _ => {}
                }
            }
        }
        walk(&serde_json::from_str(SCHEMA).expect("the schema"));
    }

    #[test]
    fn wrong_values_are_named() {
        for (values, problem) in [
            (json!({"replica": 3}), "replica: unknown value; did you mean replicas?"),
            (json!({"replicas": "3"}), "replicas: expected integer, found \"3\""),
            (json!({"webhookDefaults": {"timeoutSeconds": 31}}), "out of range"),
            (json!({"certificates": {"source": "vault"}}), "certificates.source: expected"),
            (json!({"istio": {"tags": [{}]}}), "istio.tags[0]: tag is required"),
            (json!([]), "values: expected object"),
        ] {
            let found = check(&values).expect_err(problem);
            assert!(found.contains(problem), "{found}");
        }
        assert_eq!(check(&super::super::chart::default_values()), Ok(()));
        assert_eq!(check(&json!({"runAsUser": null})), Ok(()));
    }
}
