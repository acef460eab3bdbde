//! What Go's types do to a value, as far as our result keeps more.

use injectd_merge::schema::{Kind, POD};
use serde_json::Value;

/// A Pod without the fields that Go's types do not have.
pub(crate) fn without_unknown_fields(pod: &Value) -> Value {
    known(pod, &POD)
}

fn known(value: &Value, kind: &'static Kind) -> Value {
    match (kind, value) {
        (Kind::Struct(inner), Value::Object(map)) => {
            let entries = map.iter().filter_map(|(key, value)| {
                let field = inner.get().field(key)?;
                Some((key.clone(), known(value, &field.kind)))
            });
            entries.collect()
        }
        (Kind::List(inner), Value::Array(list)) => {
            list.iter().map(|value| known(value, inner)).collect()
        }
        _ => value.clone(),
    }
}
