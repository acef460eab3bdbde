//! Label selectors (`ValidateLabelSelector`).

use injectd_k8s::names;
use serde_json::Value;

use super::Findings;

pub(super) fn check(webhook: &Value, at: &mut Findings<'_>) {
    for field in ["namespaceSelector", "objectSelector"] {
        let selector = &webhook[field];
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let path = format!("{field}.matchLabels");
            check_key(&path, key, at);
            check_value(&path, value, at);
        }
        let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
        for (index, expression) in expressions.enumerate() {
            check_expression(&format!("{field}.matchExpressions[{index}]"), expression, at);
        }
    }
}

fn check_expression(path: &str, expression: &Value, at: &mut Findings<'_>) {
    check_key(&format!("{path}.key"), expression["key"].as_str().unwrap_or_default(), at);
    let values = expression["values"].as_array().map(Vec::as_slice).unwrap_or_default();
    let field = format!("{path}.values");
    match expression["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if values.is_empty() => {
            at.error(&*field, "In and NotIn need values", "Add a value.");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let problem = "Exists and DoesNotExist must not have values";
            at.error(&*field, problem, "Remove the values, or use In or NotIn.");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let advice = "Use In, NotIn, Exists or DoesNotExist.";
            at.error(format!("{path}.operator"), format!("{other:?} is not known"), advice);
        }
    }
    for value in values {
        check_value(&field, value, at);
    }
}

fn check_key(path: &str, key: &str, at: &mut Findings<'_>) {
    if !names::is_qualified_name(key) {
        let advice = "Use a key such as team or example.com/team.";
        at.error(path, format!("{key:?} is not a label key"), advice);
    }
}

fn check_value(path: &str, value: &Value, at: &mut Findings<'_>) {
    let value = value.as_str().unwrap_or_default();
    if !names::is_label_value(value) {
        let advice = "Use at most 63 letters, digits, '-', '_' or '.', of which the first and the \
                      last are letters or digits.";
        at.error(path, format!("{value:?} is not a label value"), advice);
    }
}
