//! Whether two documents differ only in the scalars that hold a pod's values.

use serde_json::Value as Json;

use crate::marker;

/// Whether a document has the shape of one with neutral values: the same keys and lists, and the same
/// scalars where the neutral one has no marker. Where it has one there may be any scalar.
pub(crate) fn is_same(document: &Json, neutral: &Json) -> bool {
    match (document, neutral) {
        (Json::Object(members), Json::Object(neutral)) => {
            let mut others = members.iter().filter(|(key, _)| !neutral.contains_key(*key));
            members.len() == neutral.len()
                && neutral.iter().all(|(key, neutral)| match members.get(key) {
                    Some(value) => is_same(value, neutral),
                    // The key holds a value of the pod.
                    None if is_marked(key) => {
                        others.next().is_some_and(|(_, value)| is_same(value, neutral))
                    }
                    None => false,
                })
        }
        (Json::Array(items), Json::Array(neutral)) => {
            items.len() == neutral.len()
                && items.iter().zip(neutral).all(|(item, neutral)| is_same(item, neutral))
        }
        (value, Json::String(text)) if is_marked(text) => !value.is_object() && !value.is_array(),
        (value, neutral) => value == neutral,
    }
}

/// Whether a text holds a neutral value, in any case of letters.
fn is_marked(text: &str) -> bool {
    let marker = marker::in_value();
    text.contains(marker) || text.to_ascii_lowercase().contains(marker)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_scalars_with_the_marker_may_differ() {
        let marked = format!("--level={}", marker::in_value());
        let neutral = json!({"args": [marked, "b"], "c": 1, "d": {}});
        for same in [json!("any"), json!(1), json!(null), json!(true)] {
            assert!(is_same(&json!({"args": [same, "b"], "c": 1, "d": {}}), &neutral), "{same}");
        }
        for other in [
            json!({"args": [{"a": "b"}, "b"], "c": 1, "d": {}}),
            json!({"args": [["a"], "b"], "c": 1, "d": {}}),
            json!({"args": ["a", "b", "c"], "c": 1, "d": {}}),
            json!({"args": ["a", "x"], "c": 1, "d": {}}),
            json!({"args": ["a", "b"], "c": 2, "d": {}}),
            json!({"args": ["a", "b"], "c": 1, "d": {"e": 1}}),
            json!({"args": ["a", "b"], "c": 1}),
            json!({"args": ["a", "b"], "c": 1, "e": {}}),
        ] {
            assert!(!is_same(&other, &neutral), "{other}");
        }
    }

    #[test]
    fn a_key_may_hold_a_value() {
        let neutral = json!({marker::in_value(): "a", "b": "c"});
        assert!(is_same(&json!({"b": "c", "own": "a"}), &neutral));
        assert!(!is_same(&json!({"b": "c", "own": "other"}), &neutral));
        assert!(!is_same(&json!({"b": "c", "own": "a", "more": "a"}), &neutral));
    }
}
