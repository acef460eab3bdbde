//! Changes of a review that must not change the answer.

use serde_json::{Map, Value, json};

use super::random::Random;
use super::texts;

/// Shuffles the members of all objects.
pub fn shuffle(value: &mut Value, random: &mut Random) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| shuffle(item, random)),
        Value::Object(fields) => {
            let mut entries: Vec<_> = std::mem::take(fields).into_iter().collect();
            random.shuffle(&mut entries);
            for (_, value) in &mut entries {
                shuffle(value, random);
            }
            *fields = entries.into_iter().collect();
        }
        _ => {}
    }
}

/// Adds unknown members with any content, except in maps of strings, where every key has an effect.
pub fn add_unknown_fields(value: &mut Value, random: &mut Random) {
    match value {
        Value::Array(items) => {
            for item in items {
                add_unknown_fields(item, random);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if !["annotations", "labels"].contains(&name.as_str()) {
                    add_unknown_fields(value, random);
                }
            }
            if random.percent(30) {
                let name = random.pick(&["x-unknown", "Kind ", "", "spec.", "\"", "metadata\u{0}"]);
                let content = hostile(random, 3);
                insert(fields, random, name, content);
            }
        }
        _ => {}
    }
}

/// Adds lists of managed fields with hostile content to all metadata.
pub fn add_managed_fields(value: &mut Value, random: &mut Random) {
    match value {
        Value::Array(items) => {
            for item in items {
                add_managed_fields(item, random);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                add_managed_fields(value, random);
                if name == "metadata"
                    && let Value::Object(metadata) = value
                    && random.percent(70)
                {
                    let list = (0..random.below(4)).map(|_| hostile(random, 4)).collect();
                    insert(metadata, random, "managedFields", list);
                }
            }
        }
        _ => {}
    }
}

/// The tree with all lists under the key `managedFields` emptied.
pub fn without_managed_fields(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_managed_fields).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let emptied = name == "managedFields" && value.is_array();
                let value = if emptied { json!([]) } else { without_managed_fields(value) };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// Values that have broken parsers: brackets and quotes in strings, escapes, keys of other fields.
fn hostile(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => json!(random.pick(&[
            "]",
            "\"]",
            "\\",
            "\\\"]",
            "\"managedFields\":[",
            "\"managedFields\":[\\",
            "[[[",
            "{",
            "\u{2028}",
        ])),
        1 => texts::ugly(random).into(),
        2 => json!(random.pick(&[0.5, 1e300, -0.0, 18_446_744_073_709_551_615.0])),
        3 => json!(random.next_u64()),
        4 => json!(null),
        5 => (0..random.below(4)).map(|_| hostile(random, depth - 1)).collect(),
        _ => {
            let names = [
                "k:{\"uid\":\"]\"}",
                "f:metadata",
                "managedFields",
                "uid",
                "request",
                "object",
                "\\",
                "",
            ];
            let members = (0..random.below(4)).map(|_| random.pick(&names));
            let names: Vec<_> = members.collect();
            let members =
                names.into_iter().map(|name| (name.to_owned(), hostile(random, depth - 1)));
            Value::Object(members.collect())
        }
    }
}

/// Inserts a member at a random place.
fn insert(fields: &mut Map<String, Value>, random: &mut Random, name: &str, value: Value) {
    fields.remove(name);
    let at = random.below(fields.len() + 1);
    fields.shift_insert(at, name.to_owned(), value);
}
