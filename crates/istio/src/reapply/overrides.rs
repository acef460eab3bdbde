//! The forms of a user's container: the patch that merges it again, and the record of it.

#![expect(clippy::disallowed_types, reason = "templates are merged into trees")]

use injectd_gocompat::quantity;
use injectd_merge::schema::{Field, Kind, POD, Struct};
use serde_json::{Map, Value, json};

/// What a form does with what Go would not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Unknown fields and quantities stay as the user wrote them.
    Patch,
    /// As Kubernetes writes the container.
    Record,
}

/// A copy of the container, without its image if that is `auto`.
pub(super) fn without_image(container: &Value, auto: &str) -> Value {
    let mut container = container.clone();
    let image = container.get("image").and_then(Value::as_str);
    if let (true, Some(fields)) = (image == Some(auto), container.as_object_mut()) {
        fields.shift_remove("image");
    }
    container
}

/// The container without empty fields, which would otherwise replace those of the template.
pub(super) fn patch(container: &Value) -> Value {
    written(container, Form::Patch)
}

/// The container as Kubernetes writes it: `resources` always, quantities in their canonical form,
/// and known fields only.
pub(super) fn record(container: &Value) -> Value {
    let mut record = written(container, Form::Record);
    if let Some(fields) = record.as_object_mut() {
        fields.entry("resources").or_insert_with(|| json!({}));
    }
    record
}

fn written(container: &Value, form: Form) -> Value {
    match (container_type(), container) {
        (Some(types), Value::Object(fields)) => Value::Object(fields_of(fields, types, form)),
        _ => container.clone(),
    }
}

fn container_type() -> Option<&'static Struct> {
    let spec = POD.as_struct()?.field("spec")?.kind.as_struct()?;
    match &spec.field("containers")?.kind {
        Kind::List(container) => container.as_struct(),
        _ => None,
    }
}

fn fields_of(fields: &Map<String, Value>, types: &Struct, form: Form) -> Map<String, Value> {
    let mut written = Map::with_capacity(fields.len());
    for (key, value) in fields {
        let Some(field) = types.field(key) else {
            if form == Form::Patch && !value.is_null() {
                written.insert(key.clone(), value.clone());
            }
            continue;
        };
        if value.is_null() {
            continue;
        }
        let value = value_of(value, &field.kind, form);
        if field.written || !is_omitted(&value, field) {
            written.insert(key.clone(), value);
        }
    }
    written
}

fn value_of(value: &Value, kind: &Kind, form: Form) -> Value {
    match (kind, value) {
        (Kind::Struct(inner), Value::Object(fields)) => {
            Value::Object(fields_of(fields, inner.get(), form))
        }
        (Kind::List(inner), Value::Array(list)) => {
            list.iter().map(|value| value_of(value, inner, form)).collect()
        }
        (Kind::Map(_, inner), Value::Object(map)) => {
            let entry =
                |(key, value): (&String, &Value)| (key.clone(), value_of(value, inner, form));
            Value::Object(map.iter().map(entry).collect())
        }
        (Kind::Quantity, value) if form == Form::Record => canonical(value),
        _ => value.clone(),
    }
}

fn canonical(quantity: &Value) -> Value {
    let text = match quantity {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return quantity.clone(),
    };
    quantity::parse(&text).map_or_else(|| quantity.clone(), |parsed| parsed.canonical().into())
}

/// Go: `omitempty`. A struct that is a value and not a pointer is written even if it is empty.
fn is_omitted(value: &Value, field: &Field) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(field.kind, Kind::Map(..)),
        Value::String(text) => !field.pointer && text.is_empty(),
        Value::Bool(truth) => !field.pointer && !truth,
        Value::Number(number) => !field.pointer && number.as_f64() == Some(0.0),
        Value::Null => true,
    }
}
