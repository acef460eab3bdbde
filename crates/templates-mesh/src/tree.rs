//! The text of an excerpt as a tree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Fields of an object for which there is room from the beginning.
// A table of hashes with eight buckets has room for seven; for one more it doubles.
const USUAL_FIELDS: usize = 7;

/// A tree of JSON. Objects have room for the fields that most of a pod have, and grow less often.
struct Tree(Value);

/// Reads a text.
///
/// # Errors
/// It is not JSON.
pub(crate) fn read(text: &[u8]) -> Result<Value, serde_json::Error> {
    let tree: Result<Tree, _> = match std::str::from_utf8(text) {
        // A text that was checked once is not checked again for each string.
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(text),
    };
    tree.map(|Tree(tree)| tree)
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfTree)
    }
}

struct OfTree;

impl<'de> Visitor<'de> for OfTree {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree(value.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(Tree(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Tree(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            // Empty objects, of which pods have many, allocate nothing.
            if fields.is_empty() {
                fields = Map::with_capacity(USUAL_FIELDS);
            }
            let Tree(value) = access.next_value()?;
            fields.insert(key, value);
        }
        Ok(Tree(Value::Object(fields)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_what_json_has() {
        for text in [
            r#"{"a":[1,-2,1.5,18446744073709551615,"x\u00e9\n",null,true,{}],"b":{"c":[]},"a":7}"#,
            r#"{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8}"#,
            "[",
            "{\"a\":1}x",
            "\"\u{1}\"",
            "1e400",
            "-0",
            "12345678901234567890123",
        ] {
            let expected = serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
            let found = read(text.as_bytes()).map_err(|error| error.to_string());
            assert_eq!(found, expected, "{text}");
        }
        assert!(read(b"\"\xff\"").is_err());
    }
}
