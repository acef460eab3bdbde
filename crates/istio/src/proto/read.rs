//! Messages from JSON, as strict as Istio is and with its texts.
//!
//! Go: `jsonpb.Unmarshaler` of `github.com/golang/protobuf` with `AllowUnknownFields`. The one of
//! `google.golang.org/protobuf` differs in durations, nulls and texts; Istio does not use it.

mod duration;
mod place;
mod quoted;
mod scalar;

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;

pub(super) use self::place::place;

use serde_json::{Map, Value as Json};
use thiserror::Error;

use super::{
    message::{Message, Value},
    schema::{Field, Kind, MessageRef, Shape, Wrapped},
};
use crate::release::Release;

/// Why JSON is not a message. The texts are those of Go.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// A value has another type than its field.
    #[error("json: cannot unmarshal {found} into Go value of type {go_type}")]
    Type {
        /// What is there: `string`, `array`, `number 1.5`.
        found: String,
        /// Go's type of the field.
        go_type: &'static str,
    },
    /// A quoted number is not JSON.
    #[error("{0}")]
    Syntax(String),
    /// The enum has no value of this name.
    #[error("unknown value {quoted:?} for enum {name}")]
    UnknownEnum {
        /// The name in quotes.
        quoted: String,
        /// The full name of the enum.
        name: &'static str,
    },
    /// Go's `time.ParseDuration` rejects the text.
    #[error("bad Duration: {0}")]
    Duration(String),
    /// A `google.protobuf.Struct` is not an object.
    #[error("bad StructValue: {0}")]
    Struct(Box<ReadError>),
}

impl ReadError {
    /// The error in plain words, for who does not know Go's types.
    #[must_use]
    pub fn plain(&self) -> String {
        match self {
            Self::Type { found, go_type } => {
                let expected = match *go_type {
                    "map[string]json.RawMessage" => "a mapping",
                    "[]json.RawMessage" => "a list",
                    "string" => "a string",
                    "bool" => "a boolean",
                    number => return format!("expected a number of type {number}, found {found}"),
                };
                format!("expected {expected}, found {found}")
            }
            Self::Syntax(problem) => format!("expected a number: {problem}"),
            Self::UnknownEnum { quoted, .. } => format!("unknown value {quoted}"),
            Self::Duration(problem) => format!("expected a duration, such as 5s: {problem}"),
            Self::Struct(error) => error.plain(),
        }
    }
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// If a value has the wrong type. Unknown fields are ignored, and so are fields that came after
    /// the release.
    pub fn read(of: MessageRef, json: &Json, release: Release) -> Result<Self, ReadError> {
        let mut message = Self::new(of);
        message.apply(json, release)?;
        Ok(message)
    }

    /// Replaces the fields that the JSON gives, as a whole; zeros and empty lists clear them. `null`
    /// does nothing, neither for a field nor for the message.
    ///
    /// # Errors
    ///
    /// As for [`Message::read`]. Fields before the wrong one have changed then.
    pub fn apply(&mut self, json: &Json, release: Release) -> Result<(), ReadError> {
        let Some(object) = object(json)? else { return Ok(()) };
        for (index, field) in self.of().get().fields.iter().enumerate() {
            if field.since > release {
                continue;
            }
            let Some(json) = given(object, field) else { continue };
            let value = self::field(field, json, release)?;
            self.set_at(index, Some(value));
        }
        Ok(())
    }
}

/// The value of a field; the spelling of JSON wins over that of the `.proto` file.
fn given<'j>(object: &'j Map<String, Json>, field: &Field) -> Option<&'j Json> {
    object.get(&field.json).or_else(|| object.get(field.name)).filter(|json| !json.is_null())
}

/// The entries of an object; `None` for null.
fn object(json: &Json) -> Result<Option<&Map<String, Json>>, ReadError> {
    match json {
        Json::Null => Ok(None),
        Json::Object(entries) => Ok(Some(entries)),
        other => Err(scalar::mismatch(other, "map[string]json.RawMessage")),
    }
}

fn field(field: &Field, json: &Json, release: Release) -> Result<Value, ReadError> {
    match field.shape {
        Shape::One => single(field.kind, json, release),
        Shape::List => {
            let Json::Array(items) = json else {
                return Err(scalar::mismatch(json, "[]json.RawMessage"));
            };
            let items = items.iter().map(|item| single(field.kind, item, release));
            Ok(Value::List(items.collect::<Result<_, _>>()?))
        }
        Shape::Map => {
            let entries = object(json)?.into_iter().flatten();
            let entries =
                entries.map(|(key, value)| Ok((key.clone(), single(field.kind, value, release)?)));
            Ok(Value::Map(entries.collect::<Result<_, _>>()?))
        }
    }
}

/// One value. `null`, which lists and maps may hold, is the zero.
fn single(kind: Kind, json: &Json, release: Release) -> Result<Value, ReadError> {
    match kind {
        Kind::Text => scalar::text(json).map(|text| Value::Text(text.to_owned())),
        Kind::Bool | Kind::Wrapper(Wrapped::Bool) => scalar::boolean(json).map(Value::Bool),
        Kind::Int32 | Kind::Wrapper(Wrapped::Int32) => {
            scalar::integer(json, &scalar::INT32).map(Value::Integer)
        }
        Kind::Uint32 | Kind::Wrapper(Wrapped::Uint32) => {
            scalar::integer(json, &scalar::UINT32).map(Value::Integer)
        }
        Kind::Wrapper(Wrapped::Int64) => scalar::integer(json, &scalar::INT64).map(Value::Integer),
        Kind::Double => scalar::double(json).map(Value::Double),
        Kind::Enum(of) => scalar::enumeration(json, of.get()).map(Value::Integer),
        Kind::Message(of) => Message::read(of, json, release).map(Value::Message),
        Kind::Duration => duration::nanos(json).map(Value::Duration),
        Kind::Struct => match object(json) {
            Ok(None) => Ok(Value::Struct(Json::Object(Map::new()))),
            Ok(Some(_)) => Ok(Value::Struct(json.clone())),
            Err(error) => Err(ReadError::Struct(Box::new(error))),
        },
    }
}
