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

/// The image of a user's container that stands for the one of the template.
const AUTO_IMAGE: &str = "auto";

/// The container without empty fields, which would otherwise replace those of the template, and
/// without lists that change nothing in the `current` container.
pub(super) fn patch(container: &Value, current: Option<&Value>) -> Value {
    let repeats = |field: &Field, value: &Value| {
        let current = current.and_then(|container| container.get(field.name));
        current.is_some_and(|current| injectd_merge::repeats_list(current, value, field))
    };
    written(container, Form::Patch, repeats)
}

/// The container as Kubernetes writes it: `resources` always, quantities in their canonical form,
/// and known fields only.
pub(super) fn record(container: &Value) -> Value {
    let mut record = written(container, Form::Record, |_, _| false);
    if let Some(fields) = record.as_object_mut() {
        fields.entry("resources").or_insert_with(|| json!({}));
    }
    record
}

/// A copy of the container in a form, without its image if that is `auto`, and without what is left out.
fn written(container: &Value, form: Form, is_left_out: impl Fn(&Field, &Value) -> bool) -> Value {
    let (Some(types), Value::Object(fields)) = (container_type(), container) else {
        return container.clone();
    };
    let is_left_out = |key: &str, value: &Value| {
        key == "image" && value == AUTO_IMAGE
            || types.field(key).is_some_and(|field| is_left_out(field, value))
    };
    let kept = fields.iter().filter(|(key, value)| !is_left_out(key, value));
    Value::Object(fields_of(kept, types, form))
}

fn container_type() -> Option<&'static Struct> {
    let spec = POD.as_struct()?.field("spec")?.kind.as_struct()?;
    match &spec.field("containers")?.kind {
        Kind::List(container) => container.as_struct(),
        _ => None,
    }
}

fn fields_of<'v>(
    fields: impl Iterator<Item = (&'v String, &'v Value)>,
    types: &Struct,
    form: Form,
) -> Map<String, Value> {
    let mut written = Map::with_capacity(fields.size_hint().1.unwrap_or_default());
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
            Value::Object(fields_of(fields.iter(), inner.get(), form))
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
