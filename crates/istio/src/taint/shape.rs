//! Whether two documents differ only in the scalars that hold a pod's values.

use serde_json::Value as Json;

use super::neutral::{LAST, LAST_ESCAPED};
use crate::marker;

/// How neutral JSON begins.
const JSON_OPENS: [&str; 2] = ["\n{", "\n["];

/// Whether a document has the shape of one with neutral values: the same keys and lists, and the same
/// scalars where the neutral one has no marker. Where it has markers there may be any scalar with the same
/// text before the first and after the last one.
pub(crate) fn is_same(document: &Json, neutral: &Json) -> bool {
    match (document, neutral) {
        (Json::Object(members), Json::Object(neutral)) => {
            let mut others = members.iter().filter(|(key, _)| !neutral.contains_key(*key));
            members.len() == neutral.len()
                && neutral.iter().all(|(key, neutral)| match members.get(key) {
                    Some(value) => is_same(value, neutral),
                    // The key holds a value of the pod. It hides another one only if the neutral one does.
                    None if is_marked(key) => others.next().is_some_and(|(own, value)| {
                        own.contains('\0') == key.contains('\0')
                            && is_around(own, key)
                            && is_same(value, neutral)
                    }),
                    None => false,
                })
        }
        (Json::Array(items), Json::Array(neutral)) => {
            items.len() == neutral.len()
                && items.iter().zip(neutral).all(|(item, neutral)| is_same(item, neutral))
        }
        (Json::String(own), Json::String(text)) if is_marked(text) => is_around(own, text),
        // YAML has read a value as another scalar, such as a number.
        (value, Json::String(text)) if is_marked(text) => {
            !value.is_object() && !value.is_array() && is_around(&value.to_string(), text)
        }
        (value, neutral) => value == neutral,
    }
}

/// Whether a text holds a neutral value, in any case of letters.
fn is_marked(text: &str) -> bool {
    around(text).is_some()
}

/// Whether a text has what is around the markers of a neutral one, but for blanks, which YAML folds.
fn is_around(own: &str, neutral: &str) -> bool {
    around(neutral).is_some_and(|[before, after]| {
        let rest = own.strip_prefix(before.trim_end());
        rest.is_some_and(|rest| rest.ends_with(after.trim_start()))
    })
}

/// What is before the first and after the last marker of a text, in any case of letters.
fn around(text: &str) -> Option<[&str; 2]> {
    let marker = marker::in_value();
    let lower = text.to_ascii_lowercase();
    let [first, last] = [lower.find(marker)?, lower.rfind(marker)?];
    let [before, after] = [&text[..first], &text[last + marker.len()..]];
    // Of a list or an object of JSON all may be the pod's.
    let before = JSON_OPENS
        .iter()
        .filter_map(|open| before.find(open))
        .min()
        .map_or(before, |at| &before[..at]);
    let after = if after.starts_with(LAST_ESCAPED) { "" } else { after };
    Some([before, after.strip_prefix(LAST).unwrap_or(after)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_scalars_with_the_marker_may_differ() {
        let neutral = json!({"args": [marker::in_value(), "b"], "c": 1, "d": {}});
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
    fn the_text_around_the_marker_stays() {
        let marker = marker::in_value();
        let upper = marker.to_ascii_uppercase();
        for (own, neutral) in [
            (json!("--level=a # b/end"), format!("--level={marker}c{marker}/end")),
            (json!("HUB/A/END"), format!("HUB/{upper}/END")),
            (json!("a b"), format!("a {marker}")),
            (json!(80), format!("8{marker}")),
        ] {
            assert!(is_same(&own, &json!(neutral)), "{own} {neutral}");
        }
        for (own, neutral) in [
            (json!("example.org/evil"), format!("hub/proxy:1-{marker}")),
            (json!("hub/proxy:1-a"), format!("hub/proxy:1-{marker}/end")),
            (json!(null), format!("hub/{marker}")),
            (json!(5), format!("hub/{marker}")),
            (json!("aba"), format!("ab{marker}ba")),
        ] {
            assert!(!is_same(&own, &json!(neutral)), "{own} {neutral}");
        }
        let neutral = json!({format!("a-{marker}"): "a"});
        assert!(is_same(&json!({"a-b": "a"}), &neutral));
        assert!(!is_same(&json!({"b": "a"}), &neutral));
    }

    #[test]
    fn a_key_may_hold_a_value() {
        let neutral = json!({marker::in_value(): "a", "b": "c"});
        assert!(is_same(&json!({"b": "c", "own": "a"}), &neutral));
        assert!(!is_same(&json!({"b": "c", "own": "other"}), &neutral));
        assert!(!is_same(&json!({"b": "c", "own": "a", "more": "a"}), &neutral));
    }
}
