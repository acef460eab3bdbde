//! Rows about reading the request: injectd reads JSON, and only the fields that it needs (L§7-1).

use serde_json::Value;

use super::{Context, Seen, recorded_message};
use crate::reference_subject::has_half_pair;

use injectd_testkit::reference;

/// An empty body is not a review; upstream answers 200 with an empty body.
pub(crate) fn empty_body(context: &Context<'_>, _: &Seen) -> Option<Seen> {
    let empty = context.case.body.is_empty();
    empty.then(|| Seen::status(400, "http-400"))
}

/// A body that is not JSON is not a review; upstream reads it as YAML.
pub(crate) fn json_only(context: &Context<'_>, _: &Seen) -> Option<Seen> {
    let other = context.review.is_none();
    other.then(|| Seen::status(400, "http-400"))
}

/// Keys are case-sensitive; upstream reads `Spec` as `spec`.
pub(crate) fn exact_keys(context: &Context<'_>, _: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    has_key_in_other_case(review).then(|| context.reference.clone())
}

/// A wrong type in a field that injectd reads leads to a denial, or in the envelope to an invalid
/// review; upstream converts numbers and booleans to strings, and `8080.0` to an integer.
pub(crate) fn exact_types(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    let in_envelope = seen.status == Some(200) && context.reference.status == Some(400);
    let in_object = seen.allowed == Some(true) && reference::wrong_type(review).is_some();
    (in_envelope || in_object).then(|| context.reference.clone())
}

/// injectd does not check fields that it does not read; upstream rejects a wrong type anywhere.
pub(crate) fn unread_fields(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let what = "error unmarshaling JSON: ";
    let text = context.case.response_text.as_deref().unwrap_or_default();
    let in_envelope = "failed to decode admission review request: ";
    let refused = seen.allowed == Some(false) && recorded_message(context).starts_with(what)
        || seen.status == Some(400)
            && text.strip_prefix(in_envelope).is_some_and(|text| text.starts_with(what));
    refused.then(|| context.reference.clone())
}

/// injectd accepts all valid JSON: control characters, escaped pairs and slashes, long keys. In
/// YAML they are errors, in the body as well as in a namespace's annotations.
pub(crate) fn any_json_text(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    let body = std::str::from_utf8(&context.case.body).ok()?;
    let text = context.case.response_text.as_deref().unwrap_or_default();
    let in_body = seen.status == Some(400)
        && text.contains("error converting YAML to JSON")
        && !has_half_pair(body)
        && (body.contains(no_yaml_character)
            || body.contains("\\/")
            || body.contains("\\u")
            || has_long_key(review));
    let namespace = review["request"]["namespace"].as_str().unwrap_or_default();
    let annotations = context.case.namespace_annotations(namespace);
    let mut annotations = annotations.iter().flat_map(|map| map.values());
    let in_namespace = seen.allowed == Some(false)
        && annotations
            .any(|value| value.as_str().is_some_and(|text| text.contains(no_yaml_character)));
    (in_body || in_namespace).then(|| context.reference.clone())
}

/// Half of a surrogate pair leads to a denial if injectd reads the field; upstream answers 400.
pub(crate) fn half_surrogates(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let body = std::str::from_utf8(&context.case.body).ok()?;
    let refused = seen.status == Some(400) && has_half_pair(body);
    refused.then(|| context.reference.clone())
}

/// Whether YAML does not allow a character that JSON allows.
fn no_yaml_character(letter: char) -> bool {
    matches!(letter, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether an object has a known key in another case. Skips maps whose keys are not fields.
fn has_key_in_other_case(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let read = READ.iter().any(|read| read.eq_ignore_ascii_case(key));
            let other = read && !READ.contains(&key.as_str());
            let keyed = ["annotations", "labels", "fieldsV1", "matchLabels", "nodeSelector"];
            other || !keyed.contains(&key.as_str()) && has_key_in_other_case(value)
        }),
        Value::Array(items) => items.iter().any(has_key_in_other_case),
        _ => false,
    }
}

fn has_long_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| key.len() > 900 || has_long_key(value))
        }
        Value::Array(items) => items.iter().any(has_long_key),
        _ => false,
    }
}

/// The names of all fields that injectd reads.
const READ: &[&str] = &[
    "add",
    "annotations",
    "apiVersion",
    "automountServiceAccountToken",
    "capabilities",
    "containerPort",
    "containers",
    "creationTimestamp",
    "deletionTimestamp",
    "drop",
    "dryRun",
    "finalizers",
    "generateName",
    "generation",
    "hostNetwork",
    "httpGet",
    "image",
    "initContainers",
    "jobTemplate",
    "kind",
    "labels",
    "livenessProbe",
    "managedFields",
    "metadata",
    "mountPath",
    "name",
    "namespace",
    "object",
    "operation",
    "ownerReferences",
    "port",
    "ports",
    "readOnly",
    "readinessProbe",
    "request",
    "resourceVersion",
    "securityContext",
    "selfLink",
    "spec",
    "subResource",
    "targetPort",
    "template",
    "uid",
    "volumeMounts",
    "volumes",
];
