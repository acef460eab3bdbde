//! Parts of a JSON text as a tree. The rest of the text is read over and takes no memory, whatever it
//! is: a caller may send megabytes of it.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

/// What is taken of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// A scalar; a list or an object is taken without what is in it.
    Scalar,
    /// These keys of an object; of a repeated key the last one.
    Keys(&'static [(&'static str, Part)]),
    /// The first item of a list.
    First(&'static Part),
}

/// The parts of a text. `None` if the text is not JSON.
pub(crate) fn of(text: &[u8], part: Part) -> Option<Json> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let tree = part.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(tree)
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let keys = if let Self::Keys(keys) = self { keys } else { &[] };
        let mut tree = Map::new();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match keys.iter().find(|(name, _)| *name == key) {
                Some((name, part)) => {
                    tree.insert((*name).to_owned(), map.next_value_seed(*part)?);
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(tree.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        if let Self::First(part) = self {
            items.extend(seq.next_element_seed(*part)?);
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(items.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_parts_become_a_tree() {
        const PART: Part = Part::Keys(&[
            ("kind", Part::Scalar),
            ("list", Part::First(&Part::Keys(&[("a", Part::Scalar)]))),
        ]);
        for (text, expected) in [
            (r#"{"kind":1,"x":[{}],"kind":"Pod"}"#, json!({"kind": "Pod"})),
            (r#"{"kind":{"a":1}}"#, json!({"kind": {}})),
            (r#"{"kind":[1]}"#, json!({"kind": []})),
            (r#"{"list":[{"a":1,"b":2},{"a":3}]}"#, json!({"list": [{"a": 1}]})),
            ("[1,2]", json!([])),
            ("null", Json::Null),
        ] {
            assert_eq!(of(text.as_bytes(), PART), Some(expected), "{text}");
        }
        for text in ["", "{", "{}x", "{\"a\" 1}"] {
            assert_eq!(of(text.as_bytes(), PART), None, "{text}");
        }
    }
}
