//! The fields that the API has, and the types of their values.

use serde_json::Value;

use super::Findings;

/// The type of a value. `null` is the same as an absent field.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    /// An `int32`.
    Integer,
    Texts,
    TextMap,
    Mapping(&'static [(&'static str, Shape)]),
    Mappings(&'static [(&'static str, Shape)]),
    /// Not looked into.
    Any,
}

use Shape::{Any, Integer, Mapping, Mappings, Text, TextMap, Texts};

type Fields = &'static [(&'static str, Shape)];

const CONFIGURATION: Fields = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Mapping(METADATA)),
    // Each webhook is checked by itself.
    ("webhooks", Any),
];
const METADATA: Fields = &[
    ("name", Text),
    ("generateName", Text),
    ("namespace", Text),
    ("labels", TextMap),
    ("annotations", TextMap),
    ("finalizers", Texts),
    ("resourceVersion", Text),
    ("uid", Text),
    ("generation", Any),
    ("selfLink", Any),
    ("creationTimestamp", Any),
    ("deletionTimestamp", Any),
    ("deletionGracePeriodSeconds", Any),
    ("ownerReferences", Any),
    ("managedFields", Any),
];
const WEBHOOK: Fields = &[
    ("name", Text),
    ("clientConfig", Mapping(CLIENT_CONFIG)),
    ("rules", Mappings(RULE)),
    ("failurePolicy", Text),
    ("matchPolicy", Text),
    ("namespaceSelector", Mapping(SELECTOR)),
    ("objectSelector", Mapping(SELECTOR)),
    ("sideEffects", Text),
    ("timeoutSeconds", Integer),
    ("admissionReviewVersions", Texts),
    ("matchConditions", Mappings(&[("name", Text), ("expression", Text)])),
    ("reinvocationPolicy", Text),
];
const CLIENT_CONFIG: Fields = &[("url", Text), ("service", Mapping(SERVICE)), ("caBundle", Text)];
const SERVICE: Fields = &[("namespace", Text), ("name", Text), ("path", Text), ("port", Integer)];
const RULE: Fields = &[
    ("operations", Texts),
    ("apiGroups", Texts),
    ("apiVersions", Texts),
    ("resources", Texts),
    ("scope", Text),
];
const SELECTOR: Fields = &[("matchLabels", TextMap), ("matchExpressions", Mappings(EXPRESSION))];
const EXPRESSION: Fields = &[("key", Text), ("operator", Text), ("values", Texts)];

/// Checks a configuration without its webhooks. Returns whether all types are right.
pub(super) fn configuration(object: &Value, at: &mut Findings<'_>) -> bool {
    fields("", object, CONFIGURATION, at)
}

/// Checks a webhook. Returns whether all types are right.
pub(super) fn webhook(webhook: &Value, at: &mut Findings<'_>) -> bool {
    if !at.place.is_mutating && webhook.get("reinvocationPolicy").is_some() {
        unknown("reinvocationPolicy", at);
    }
    fields("", webhook, WEBHOOK, at)
}

fn unknown(field: &str, at: &mut Findings<'_>) {
    let problem = "the API does not have this field";
    at.error(field, problem, "Remove it, or correct its spelling.");
}

fn fields(path: &str, value: &Value, known: Fields, at: &mut Findings<'_>) -> bool {
    let Some(entries) = value.as_object() else { return wrong(path, value, "a mapping", at) };
    let mut is_right = true;
    for (key, value) in entries {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match known.iter().find(|(name, _)| name == key) {
            Some((_, shape)) => is_right &= value.is_null() || check(&path, value, *shape, at),
            None => unknown(&path, at),
        }
    }
    is_right
}

fn check(path: &str, value: &Value, shape: Shape, at: &mut Findings<'_>) -> bool {
    match (shape, value) {
        (Any, _) | (Text, Value::String(_)) => true,
        (Integer, Value::Number(number))
            if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) =>
        {
            true
        }
        (Texts, Value::Array(items)) => {
            each(path, items, at, |path, item, at| check(path, item, Text, at))
        }
        (TextMap, Value::Object(entries)) => entries.iter().fold(true, |is_right, (key, value)| {
            is_right & (value.is_null() || check(&format!("{path}.{key}"), value, Text, at))
        }),
        (Mapping(known), _) => fields(path, value, known, at),
        (Mappings(known), Value::Array(items)) => {
            each(path, items, at, |path, item, at| fields(path, item, known, at))
        }
        (Text, _) => wrong(path, value, "a text; put it in quotes", at),
        (Integer, _) => wrong(path, value, "a whole number without quotes", at),
        (TextMap, _) => wrong(path, value, "a mapping", at),
        (Texts | Mappings(_), _) => wrong(path, value, "a list", at),
    }
}

fn each(
    path: &str,
    items: &[Value],
    at: &mut Findings<'_>,
    check: impl Fn(&str, &Value, &mut Findings<'_>) -> bool,
) -> bool {
    let items = items.iter().enumerate().filter(|(_, item)| !item.is_null());
    items.fold(true, |is_right, (index, item)| {
        is_right & check(&format!("{path}[{index}]"), item, at)
    })
}

fn wrong(path: &str, value: &Value, expected: &str, at: &mut Findings<'_>) -> bool {
    let mut found = value.to_string();
    if found.len() > 40 {
        found = format!("{}…", found.chars().take(40).collect::<String>());
    }
    at.error(path, format!("found {found}"), format!("Make it {expected}."));
    false
}
