//! L§7-1: reads a review as JSON. `null` counts as absent, a wrong type in a field that is read is
//! an error, and other fields may have any content.

use serde_json::{Map, Value};

/// A field that is read has the wrong type; the text names the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongType(pub String);

type Fields = Map<String, Value>;

fn present<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn wrong(name: &str, wanted: &str) -> WrongType {
    WrongType(format!("the field {name} must be {wanted}"))
}

/// A string field.
pub fn text(fields: &Fields, name: &str) -> Result<Option<String>, WrongType> {
    match present(fields, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(name, "a string")),
    }
}

/// A boolean field.
pub fn flag(fields: &Fields, name: &str) -> Result<Option<bool>, WrongType> {
    match present(fields, name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(wrong(name, "a boolean")),
    }
}

/// A 32-bit integer field; `8080.0` is not an integer.
pub fn int(fields: &Fields, name: &str) -> Result<Option<i32>, WrongType> {
    let Some(value) = present(fields, name) else {
        return Ok(None);
    };
    let int = value.as_i64().and_then(|wide| i32::try_from(wide).ok());
    int.map(Some).ok_or_else(|| wrong(name, "a 32-bit integer"))
}

/// A field with a number or a name, such as `targetPort`. Returns only the number.
pub fn int_or_name(fields: &Fields, name: &str) -> Result<Option<IntOrName>, WrongType> {
    match present(fields, name) {
        None => Ok(None),
        Some(Value::String(_)) => Ok(Some(IntOrName::Name)),
        Some(_) => Ok(int(fields, name)?.map(IntOrName::Int)),
    }
}

/// The value of a port field of a probe or a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrName {
    /// A number.
    Int(i32),
    /// The name of a port.
    Name,
}

/// An object field.
pub fn object<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a Fields>, WrongType> {
    match present(fields, name) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(wrong(name, "an object")),
    }
}

/// A list field.
pub fn list<'a>(fields: &'a Fields, name: &str) -> Result<Option<&'a [Value]>, WrongType> {
    match present(fields, name) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(_) => Err(wrong(name, "a list")),
    }
}

/// A list of objects; a `null` item is an empty object.
pub fn objects(fields: &Fields, name: &str) -> Result<Vec<Fields>, WrongType> {
    let items = list(fields, name)?.unwrap_or_default().iter();
    items
        .map(|item| match item {
            Value::Null => Ok(Fields::new()),
            Value::Object(object) => Ok(object.clone()),
            _ => Err(wrong(name, "a list of objects")),
        })
        .collect()
}

/// A list of strings; a `null` item is an empty string.
pub fn texts(fields: &Fields, name: &str) -> Result<Vec<String>, WrongType> {
    let items = list(fields, name)?.unwrap_or_default().iter();
    items
        .map(|item| match item {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            _ => Err(wrong(name, "a list of strings")),
        })
        .collect()
}
