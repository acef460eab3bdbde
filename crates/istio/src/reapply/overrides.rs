//! The forms of a user's container: the patch that merges it again, and the record of it.

use injectd_gocompat::quantity;
use injectd_merge::schema::{Field, Kind, POD, Struct};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value};

/// The image of a user's container that stands for the one of the template.
const AUTO_IMAGE: &str = "auto";

/// The container without empty fields, which would otherwise replace those of the template, and
/// without lists that change nothing in the `current` container.
pub(super) fn patch(container: &Value, current: Option<&Value>) -> Value {
    let repeats = |field: &Field, value: &Value| {
        let current = current.and_then(|container| container.get(field.name));
        current.is_some_and(|current| injectd_merge::repeats_list(current, value, field))
    };
    written(container, repeats)
}

/// A copy of the container without its image if that is `auto`, and without what is left out.
fn written(container: &Value, is_left_out: impl Fn(&Field, &Value) -> bool) -> Value {
    let (Some(types), Value::Object(fields)) = (container_type(), container) else {
        return container.clone();
    };
    let is_left_out = |key: &str, value: &Value| {
        is_auto_image(key, value) || types.field(key).is_some_and(|field| is_left_out(field, value))
    };
    let kept = fields.iter().filter(|(key, value)| !is_left_out(key, value));
    Value::Object(fields_of(kept, types))
}

fn is_auto_image(key: &str, value: &Value) -> bool {
    key == "image" && value == AUTO_IMAGE
}

/// Writes a container as Kubernetes does: `resources` always, quantities in their canonical form, and
/// known fields only, without an image that is `auto`.
pub(super) struct Record<'c>(pub(super) &'c Value);

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Some(types), Value::Object(fields)) = (container_type(), self.0) else {
            return self.0.serialize(serializer);
        };
        let mut map = serializer.serialize_map(None)?;
        let kept = fields.iter().filter(|(key, value)| !is_auto_image(key, value));
        let mut has_resources = false;
        for (key, value) in recorded_fields(kept, types) {
            has_resources |= key == "resources";
            map.serialize_entry(key, &value)?;
        }
        if !has_resources {
            map.serialize_entry("resources", &Map::new())?;
        }
        map.end()
    }
}

/// A value of a container, as Kubernetes writes one of its kind.
struct RecordedValue<'c>(&'c Value, &'c Kind);

impl Serialize for RecordedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.1, self.0) {
            (Kind::Struct(inner), Value::Object(fields)) => {
                serializer.collect_map(recorded_fields(fields.iter(), inner.get()))
            }
            (Kind::List(inner), Value::Array(list)) => {
                serializer.collect_seq(list.iter().map(|item| RecordedValue(item, inner)))
            }
            (Kind::Map(_, inner), Value::Object(map)) => {
                serializer.collect_map(map.iter().map(|(key, it)| (key, RecordedValue(it, inner))))
            }
            (Kind::Quantity, value) => canonical(value).serialize(serializer),
            (_, value) => value.serialize(serializer),
        }
    }
}

/// The known fields that Go writes.
fn recorded_fields<'c>(
    fields: impl Iterator<Item = (&'c String, &'c Value)>,
    types: &'static Struct,
) -> impl Iterator<Item = (&'c str, RecordedValue<'c>)> {
    fields.filter(|(_, value)| !value.is_null()).filter_map(move |(key, value)| {
        let field = types.field(key).filter(|field| is_written(value, field))?;
        Some((key.as_str(), RecordedValue(value, &field.kind)))
    })
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
) -> Map<String, Value> {
    let mut written = Map::with_capacity(fields.size_hint().1.unwrap_or_default());
    for (key, value) in fields {
        let Some(field) = types.field(key) else {
            if !value.is_null() {
                written.insert(key.clone(), value.clone());
            }
            continue;
        };
        if value.is_null() {
            continue;
        }
        if is_written(value, field) {
            written.insert(key.clone(), value_of(value, &field.kind));
        }
    }
    written
}

fn value_of(value: &Value, kind: &Kind) -> Value {
    match (kind, value) {
        (Kind::Struct(inner), Value::Object(fields)) => {
            Value::Object(fields_of(fields.iter(), inner.get()))
        }
        (Kind::List(inner), Value::Array(list)) => {
            list.iter().map(|value| value_of(value, inner)).collect()
        }
        (Kind::Map(_, inner), Value::Object(map)) => {
            let entry = |(key, value): (&String, &Value)| (key.clone(), value_of(value, inner));
            Value::Object(map.iter().map(entry).collect())
        }
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

/// Go: without `omitempty`, or not empty. A struct that is a value and not a pointer is written even
/// if it is empty.
fn is_written(value: &Value, field: &Field) -> bool {
    let is_omitted = match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && matches!(field.kind, Kind::Map(..)),
        Value::String(text) => !field.pointer && text.is_empty(),
        Value::Bool(truth) => !field.pointer && !truth,
        // A quantity is written as a string.
        Value::Number(_) if matches!(field.kind, Kind::Quantity) => false,
        Value::Number(number) => !field.pointer && number.as_f64() == Some(0.0),
        Value::Null => true,
    };
    field.written || !is_omitted
}
