//! Why an answer may differ from Go's. The documentation of the crate lists the same kinds.

use std::collections::HashSet;

use injectd_merge::{check, schema};
use serde_json::Value;

use crate::answers::{Case, Reading};

/// A kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A key of the patch equals a field but for its case. Go combines both values in some cases.
    KeyCase,
    /// The patch has several values of a wrong type, and the order of merged lists decides which
    /// one Go reports.
    OtherTypeError,
    /// The value of a wrong type is in an object with `$patch`. Whether the merge drops that depends
    /// on the Pod.
    TypeErrorBesideDirective,
    /// The value of a wrong type is replaced by a later element of the same key, or dropped by a
    /// directive.
    TypeErrorUndone,
    /// Finalizers of the base occur twice. Go removes duplicates in an array that it also reads the
    /// old order from, if the array has room.
    DoubleFinalizer,
    /// A merge key is a list or an object, which makes Go panic unless it finds another error first.
    KeyNotComparable,
}

/// The kind that explains a difference; `None` if no kind does.
pub(crate) fn explain(case: &Case, reading: &Reading) -> Option<Kind> {
    if reading.ours.starts_with("the merge key of a list element must not be") {
        let go = &case.answers[reading.name];
        let rejects = go.get("error").is_some() || go.get("errors").is_some();
        return rejects.then_some(Kind::KeyNotComparable);
    }
    if has_double_finalizer(&case.base) {
        return Some(Kind::DoubleFinalizer);
    }
    if reading.name != "typed" {
        return None;
    }
    let go = case.answers["typed"]["error"].as_str().unwrap_or_default();
    let (ours_is_type, go_is_type) = (reading.ours.starts_with("read: "), go.starts_with("read: "));
    if ours_is_type && go_is_type {
        return Some(Kind::OtherTypeError);
    }
    if ours_is_type && case.merges_as_go_does() {
        return Some(Kind::TypeErrorUndone);
    }
    let mut stripped = case.patch.clone();
    if (ours_is_type || go_is_type)
        && remove_objects_with_directives(&mut stripped)
        && (check(&stripped).is_ok() == ours_is_type)
    {
        return Some(Kind::TypeErrorBesideDirective);
    }
    has_key_in_other_case(&case.patch, &schema::POD).then_some(Kind::KeyCase)
}

fn has_double_finalizer(base: &Value) -> bool {
    let finalizers = base["metadata"]["finalizers"].as_array();
    let mut seen = HashSet::new();
    finalizers.is_some_and(|list| !list.iter().all(|finalizer| seen.insert(finalizer.to_string())))
}

/// The answer is whether there was one.
fn remove_objects_with_directives(value: &mut Value) -> bool {
    let has = |value: &Value| value.get("$patch").is_some();
    let mut found = false;
    match value {
        Value::Object(map) => {
            found |= map.values().any(has);
            map.retain(|_, value| !has(value));
            for value in map.values_mut() {
                found |= remove_objects_with_directives(value);
            }
        }
        Value::Array(list) => {
            found |= list.iter().any(has);
            list.retain(|value| !has(value));
            for value in list {
                found |= remove_objects_with_directives(value);
            }
        }
        _ => {}
    }
    found
}

fn has_key_in_other_case(value: &Value, kind: &'static schema::Kind) -> bool {
    match (kind, value) {
        (schema::Kind::Struct(inner), Value::Object(map)) => map.iter().any(|(key, value)| {
            let field = inner.get().field_ignoring_case(key);
            field
                .is_some_and(|field| field.name != key || has_key_in_other_case(value, &field.kind))
        }),
        (schema::Kind::List(inner), Value::Array(list)) => {
            list.iter().any(|value| has_key_in_other_case(value, inner))
        }
        _ => false,
    }
}
