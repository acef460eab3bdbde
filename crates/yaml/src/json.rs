//! Values of JSON, with our limits.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::{DuplicateKeys, MAX_NESTING};

/// The first value of a text and the rest of the text; `None` if the text is only blanks.
pub(crate) fn first(
    text: &str,
    duplicates: DuplicateKeys,
) -> Option<Result<(Value, &str), serde_json::Error>> {
    match duplicates {
        DuplicateKeys::LastWins | DuplicateKeys::Noted | DuplicateKeys::Kept => next::<false>(text),
        DuplicateKeys::Error => next::<true>(text),
    }
}

fn next<const UNIQUE: bool>(text: &str) -> Option<Result<(Value, &str), serde_json::Error>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let mut values = reader.into_iter::<Tree<UNIQUE>>();
    let value = values.next()?;
    Some(value.map(|Tree(value)| (value, &text[values.byte_offset()..])))
}

/// Whether brackets are too deep for JSON to be read.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let mut depth: usize = 0;
    let mut quoted = false;
    let mut escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return true;
        }
    }
    false
}

/// A value; with `UNIQUE`, equal keys of an object are an error.
struct Tree<const UNIQUE: bool>(Value);

impl<'de, const UNIQUE: bool> Deserialize<'de> for Tree<UNIQUE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if UNIQUE {
            deserializer.deserialize_any(Unique).map(Self)
        } else {
            Value::deserialize(deserializer).map(Self)
        }
    }
}

struct Unique;

impl<'de> Visitor<'de> for Unique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree::<true>(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Tree::<true>(value))) = entries.next_entry::<String, _>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate mapping key: {key}")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Whether the text is not JSON at all. Go reads other errors only later.
pub(crate) fn may_be_yaml(error: &serde_json::Error) -> bool {
    (error.is_syntax() || error.is_eof()) && !error.to_string().starts_with("number out of range")
}

/// Whether the error is a key that is written twice: the only one that is not about JSON itself.
pub(crate) fn is_duplicate_key(error: &serde_json::Error) -> bool {
    error.is_data()
}

/// The message of an error without its place.
pub(crate) fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => {
            let message = message.replace("EOF while parsing", "the text ends in");
            format!("not valid JSON: {message}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_are_an_error_if_asked() {
        let text = r#"{"a":{"b":1,"b":2}}"#;
        assert!(first(text, DuplicateKeys::LastWins).is_some_and(|value| value.is_ok()));
        let error = first(text, DuplicateKeys::Error).and_then(Result::err).expect("an error");
        assert!(is_duplicate_key(&error));
        for text in [r#"{"a":1e999}"#, r#"{"a":"\ud83d"}"#, "{1:2}", "{"] {
            let error = first(text, DuplicateKeys::Error).and_then(Result::err).expect("an error");
            assert!(!is_duplicate_key(&error), "{error}");
        }
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert!(!is_too_deep(&format!("[\"{}\\\"[\"]", "[".repeat(2000))));
        assert!(is_too_deep(&"[".repeat(MAX_NESTING + 1)));
    }
}
