//! `metadata` of a template, as API servers check it for every kind, and the bound of the name.

use injectd_k8s::names::{is_dns_subdomain, is_label_value, is_qualified_name};
use serde_json::Value;

use super::check::Checker;

/// The greatest length of a name, as in the definitions.
const MAX_NAME: usize = 63;

/// The fields of `ObjectMeta`.
const FIELDS: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

pub(super) fn check(checker: &mut Checker, metadata: &Value) {
    let Some(fields) = metadata.as_object() else {
        return match metadata {
            Value::Null => checker.problem("missing; expected an object with a name"),
            other => checker.mismatch(other, "an object with a name"),
        };
    };
    for name in fields.keys() {
        checker.known(name, &FIELDS);
    }
    checker.below("name", |checker| name(checker, &metadata["name"]));
    for field in ["labels", "annotations"] {
        checker.below(field, |checker| map(checker, &metadata[field], field == "labels"));
    }
}

fn name(checker: &mut Checker, found: &Value) {
    const EXPECTED: &str = "a name of at most 63 lower-case letters, digits, - and .";
    match found {
        Value::Null => checker.problem(format!("missing; expected {EXPECTED}")),
        Value::String(text) if is_dns_subdomain(text) && text.len() <= MAX_NAME => {}
        other => checker.mismatch(other, EXPECTED),
    }
}

fn map(checker: &mut Checker, found: &Value, has_labels: bool) {
    let fields = match found {
        Value::Null => return,
        Value::Object(fields) => fields,
        other => return checker.mismatch(other, "an object"),
    };
    for (key, value) in fields {
        checker.below(key, |checker| {
            let is_key = if has_labels {
                is_qualified_name(key)
            } else {
                // Annotations may have upper-case letters in front of the slash.
                is_qualified_name(&key.to_ascii_lowercase())
            };
            if !is_key {
                checker.problem("expected a key such as example.com/name");
            }
            match value {
                Value::String(text) if !has_labels || is_label_value(text) => {}
                other if has_labels => checker.mismatch(other, "the value of a label"),
                other => checker.mismatch(other, "a string"),
            }
        });
    }
}
