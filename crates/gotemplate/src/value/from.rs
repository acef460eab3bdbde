//! Conversions into values.

#![expect(clippy::disallowed_types, reason = "configuration and JSON in annotations")]

use std::sync::Arc;

use super::{IntKind, List, Map, Object, Value};
use crate::text::Text;

impl Value {
    /// JSON as Go's `json.Unmarshal` reads it into an `interface {}`: numbers are `float64`, objects
    /// are maps of the data.
    #[must_use]
    pub fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => Self::Float(number.as_f64().unwrap_or_default()),
            serde_json::Value::String(text) => text.as_str().into(),
            serde_json::Value::Array(items) => {
                Self::List(List::new(items.iter().map(Self::from_json).collect()))
            }
            serde_json::Value::Object(entries) => {
                let entry = |(key, value): (&String, &serde_json::Value)| {
                    (Text::from(key.as_str()), Self::from_json(value))
                };
                Self::Map(Map::frozen(entries.iter().map(entry).collect()))
            }
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

/// An `int`.
impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value, IntKind::Int)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Vec<u8>> for Value {
    fn from(text: Vec<u8>) -> Self {
        Self::Text(text.into())
    }
}

impl From<&[u8]> for Value {
    fn from(text: &[u8]) -> Self {
        Self::Text(text.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl From<Arc<dyn Object>> for Value {
    fn from(object: Arc<dyn Object>) -> Self {
        Self::Object(object)
    }
}
