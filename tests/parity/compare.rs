//! Compares two answers and returns the first difference.

use serde_json::Value;

use super::subject::Seen;

/// The first difference between the expected and the actual answer, if there is one.
pub(crate) fn first_difference(expected: &Seen, got: &Seen) -> Option<String> {
    if expected.refused || got.refused {
        let state = |seen: &Seen| if seen.refused { "rejected" } else { "accepted" };
        return (expected.refused != got.refused)
            .then(|| format!("configuration: {} != {}", state(expected), state(got)));
    }
    let differs = |what: &str, one: &dyn std::fmt::Debug, other: &dyn std::fmt::Debug| {
        let (one, other) = (format!("{one:?}"), format!("{other:?}"));
        (one != other).then(|| format!("{what}: {one} != {other}"))
    };
    differs("status", &expected.status, &got.status)
        .or_else(|| differs("verdict", &expected.verdict, &got.verdict))
        .or_else(|| differs("uid", &expected.uid, &got.uid))
        .or_else(|| differs("allowed", &expected.allowed, &got.allowed))
        .or_else(|| differs("message", &expected.has_message, &got.has_message))
        .or_else(|| differs("patchType", &expected.patch_type, &got.patch_type))
        .or_else(|| type_meta(expected, got))
        .or_else(|| differs("reasons", &expected.reasons, &got.reasons))
        .or_else(|| match (&expected.patch, &got.patch) {
            (Some(expected), Some(got)) => patches(expected, got),
            (None, None) => None,
            (one, _) => {
                Some(format!("patch: only {}", if one.is_some() { "expected" } else { "got" }))
            }
        })
        .or_else(|| differs("event", &expected.event, &got.event))
}

/// The review's `kind` and `apiVersion` must be echoed, if it has them.
fn type_meta(expected: &Seen, got: &Seen) -> Option<String> {
    let wanted = expected.type_meta.as_ref()?;
    let named = wanted.iter().all(|name| !name.is_empty());
    let same = got.type_meta.as_ref() == Some(wanted);
    (named && !same).then(|| format!("type: {wanted:?} != {:?}", got.type_meta))
}

/// The first different operation.
pub(crate) fn patches(expected: &[Value], got: &[Value]) -> Option<String> {
    for (at, (one, other)) in expected.iter().zip(got).enumerate() {
        if let Some(difference) = values("", one, other) {
            let path = one["path"].as_str().unwrap_or_default();
            return Some(format!("operation {at} ({path}){difference}"));
        }
    }
    let (one, other) = (expected.len(), got.len());
    (one != other).then(|| format!("{one} operations expected, {other} got"))
}

/// Whether two values are equal, without the order of keys, and with numbers compared by value.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    values("", one, other).is_none()
}

/// The first difference between two values below the path `at`.
pub(crate) fn values(at: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                let Some(other) = right.get(key) else {
                    return Some(format!("{at}/{key}: {value} != absent"));
                };
                if let Some(found) = values(&format!("{at}/{key}"), value, other) {
                    return Some(found);
                }
            }
            let extra = right.iter().find(|(key, _)| !left.contains_key(*key));
            extra.map(|(key, value)| format!("{at}/{key}: absent != {value}"))
        }
        (Value::Array(left), Value::Array(right)) => {
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                if let Some(found) = values(&format!("{at}/{index}"), value, other) {
                    return Some(found);
                }
            }
            let (one, other) = (left.len(), right.len());
            (one != other).then(|| format!("{at}: {one} items != {other} items"))
        }
        (Value::Number(left), Value::Number(right)) => {
            let same =
                left == right || left.is_f64() != right.is_f64() && left.as_f64() == right.as_f64();
            (!same).then(|| format!("{at}: {left} != {right}"))
        }
        _ => (one != other).then(|| format!("{at}: {one} != {other}")),
    }
}
