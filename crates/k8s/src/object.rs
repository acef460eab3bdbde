//! Parts of an object of any shape.

#![expect(clippy::disallowed_types, reason = "objects of a cluster have any shape")]

use std::collections::BTreeMap;

use serde_json::Value;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// The labels of an object.
#[must_use]
pub fn labels(object: &Value) -> Labels {
    texts(object, "/metadata/labels").collect()
}

/// The texts of the map at a JSON pointer, by key; other values are left out.
pub fn texts<'o>(
    object: &'o Value,
    pointer: &str,
) -> impl Iterator<Item = (String, String)> + use<'o> {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let texts = map.into_iter().flatten();
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_are_no_texts_are_left_out() {
        let object = json!({"metadata": {"labels": {"b": "1", "a": 2, "c": null, "d": ""}}});
        let of = |pointer| texts(&object, pointer).collect::<Vec<_>>();
        let expected =
            [("b", "1"), ("d", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(of("/metadata/labels"), expected);
        assert_eq!(labels(&object), expected.into());
        assert_eq!(of("/metadata/annotations"), []);
        assert_eq!(of("/metadata/labels/b"), []);
    }
}
