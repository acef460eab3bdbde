//! What a template sees of a message: Go's struct, its fields and its methods.

mod member;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use injectd_gocompat::number::format_float;
use thiserror::Error;

use super::{
    message::{Message, Value},
    schema::{EnumRef, Field, Kind, MessageRef, Shape, Wrapped},
};

/// A pointer to a message in Go; it may be nil.
#[derive(Clone, Copy, Debug)]
pub struct Pointer<'m> {
    /// What it points to.
    pub of: MessageRef,
    /// `None` if it is nil.
    pub target: Option<&'m Message>,
}

/// The value of a field as Go has it. A field that is not set has its zero.
#[derive(Clone, Copy, Debug)]
pub enum View<'m> {
    /// `string`.
    Text(&'m str),
    /// `bool`.
    Bool(bool),
    /// `int32`.
    Int32(i32),
    /// `uint32`.
    Uint32(u32),
    /// `int64`.
    Int64(i64),
    /// `float64`.
    Double(f64),
    /// An enum, which prints its name.
    Enum {
        /// Its type.
        of: EnumRef,
        /// Its number.
        number: i32,
    },
    /// A pointer to a message.
    Message(Pointer<'m>),
    /// A pointer to `BoolValue` or the like.
    Wrapper {
        /// What it holds.
        of: Wrapped,
        /// `None` if it is nil.
        value: Option<&'m Value>,
    },
    /// A pointer to a duration in nanoseconds; `None` if it is nil.
    Duration(Option<i64>),
    /// A pointer to an object of JSON; `None` if it is nil.
    Struct(Option<&'m serde_json::Value>),
    /// A list.
    List {
        /// What each element is.
        of: Kind,
        /// Empty if the list is nil.
        items: &'m [Value],
    },
    /// A map from strings.
    Map {
        /// What each value is.
        of: Kind,
        /// `None` if the map is nil.
        entries: Option<&'m BTreeMap<String, Value>>,
    },
    /// The interface of a group (oneof); `None` if no field of it is set.
    Oneof(Option<(&'static Field, &'m Value)>),
}

/// Why a field cannot be read. The texts are those of Go's `text/template`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldError {
    /// The type has no such field.
    #[error("can't evaluate field {field} in type {go_type}")]
    Unknown {
        /// The name that the template wrote.
        field: String,
        /// The type, such as `*v1alpha1.Tracing`.
        go_type: String,
    },
    /// The pointer is nil.
    #[error("nil pointer evaluating {go_type}.{field}")]
    Nil {
        /// The name that the template wrote.
        field: String,
        /// The type, such as `*v1alpha1.Tracing`.
        go_type: String,
    },
}

impl<'m> Pointer<'m> {
    /// `.Name`: a field, or the interface of a group.
    ///
    /// # Errors
    ///
    /// If the message has no such field, or the pointer is nil. A field that is in a group is only
    /// reachable by its getter. [`View::member`] finds both.
    pub fn field(self, name: &str) -> Result<View<'m>, FieldError> {
        let of = self.of.get();
        let (field, go_type) = (name.to_owned(), format!("*{}", of.go_name()));
        let is_field = of.field_of_go(name).is_some_and(|(_, field)| field.oneof.is_none());
        if !is_field && of.oneof_of_go(name).is_none() {
            return Err(FieldError::Unknown { field, go_type });
        }
        if self.target.is_none() {
            return Err(FieldError::Nil { field, go_type });
        }
        self.zero_or_set(name).ok_or(FieldError::Unknown { field, go_type })
    }

    /// `.GetName`: the field, or its zero if the pointer is nil. `None` if there is no such method.
    #[must_use]
    pub fn getter(self, method: &str) -> Option<View<'m>> {
        self.zero_or_set(method.strip_prefix("Get")?)
    }

    fn zero_or_set(self, name: &str) -> Option<View<'m>> {
        let of = self.of.get();
        if let Some((index, field)) = of.field_of_go(name) {
            return Some(View::of_field(field, self.target.and_then(|message| message.at(index))));
        }
        let group = of.oneof_of_go(name)?;
        let mut fields = self.target.into_iter().flat_map(Message::fields);
        Some(View::Oneof(
            fields.find_map(|(field, value)| {
                (field.oneof == Some(group)).then_some(field).zip(value)
            }),
        ))
    }
}

impl<'m> View<'m> {
    /// The view of a whole message.
    #[must_use]
    pub fn of_message(message: &'m Message) -> Self {
        Self::Message(Pointer { of: message.of(), target: Some(message) })
    }

    /// The view of a field.
    #[must_use]
    pub fn of_field(field: &'static Field, value: Option<&'m Value>) -> Self {
        match (field.shape, value) {
            (Shape::List, Some(Value::List(items))) => Self::List { of: field.kind, items },
            (Shape::List, _) => Self::List { of: field.kind, items: &[] },
            (Shape::Map, Some(Value::Map(entries))) => {
                Self::Map { of: field.kind, entries: Some(entries) }
            }
            (Shape::Map, _) => Self::Map { of: field.kind, entries: None },
            (Shape::One, value) => Self::of(field.kind, value),
        }
    }

    /// The view of an element of a list, a value of a map, or a single field.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "integers are in the range of their kind since they were read"
    )]
    pub fn of(kind: Kind, value: Option<&'m Value>) -> Self {
        let integer = match value {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        };
        match (kind, value) {
            (Kind::Text, Some(Value::Text(text))) => Self::Text(text),
            (Kind::Text, _) => Self::Text(""),
            (Kind::Bool, value) => Self::Bool(matches!(value, Some(Value::Bool(true)))),
            (Kind::Int32, _) => Self::Int32(integer as i32),
            (Kind::Uint32, _) => Self::Uint32(integer as u32),
            (Kind::Double, Some(Value::Double(number))) => Self::Double(*number),
            (Kind::Double, _) => Self::Double(0.0),
            (Kind::Enum(of), _) => Self::Enum { of, number: integer as i32 },
            (Kind::Message(of), Some(Value::Message(message))) => {
                Self::Message(Pointer { of, target: Some(message) })
            }
            (Kind::Message(of), _) => Self::Message(Pointer { of, target: None }),
            (Kind::Wrapper(of), value) => Self::Wrapper { of, value },
            (Kind::Duration, Some(Value::Duration(nanos))) => Self::Duration(Some(*nanos)),
            (Kind::Duration, _) => Self::Duration(None),
            (Kind::Struct, Some(Value::Struct(object))) => Self::Struct(Some(object)),
            (Kind::Struct, _) => Self::Struct(None),
        }
    }

    /// `.GetValue` of a wrapper: what it holds, or the zero if it is nil. `None` for all others.
    #[must_use]
    pub fn wrapped(self) -> Option<Self> {
        let Self::Wrapper { of, value } = self else { return None };
        Some(match of {
            Wrapped::Bool => Self::of(Kind::Bool, value),
            Wrapped::Int32 => Self::of(Kind::Int32, value),
            Wrapped::Uint32 => Self::of(Kind::Uint32, value),
            Wrapped::Int64 => match value {
                Some(Value::Integer(number)) => Self::Int64(*number),
                _ => Self::Int64(0),
            },
        })
    }
}

/// Go's `%v`. A message prints its JSON: the text of Go's library differs from build to build.
impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Text(text) => f.write_str(text),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int32(number) => write!(f, "{number}"),
            Self::Uint32(number) => write!(f, "{number}"),
            Self::Int64(number) => write!(f, "{number}"),
            Self::Double(number) => f.write_str(&format_float(number)),
            Self::Enum { of, number } => match of.get().name_of(number) {
                Some(name) => f.write_str(name),
                None => write!(f, "{number}"),
            },
            Self::Message(Pointer { target: Some(message), .. }) => f.write_str(&message.to_json()),
            Self::Wrapper { value: Some(_), .. } => match self.wrapped() {
                Some(Self::Bool(false) | Self::Int32(0) | Self::Uint32(0) | Self::Int64(0))
                | None => Ok(()),
                Some(value) => write!(f, "value:{value}"),
            },
            Self::Duration(Some(nanos)) => duration(f, nanos),
            Self::Struct(Some(object)) => write!(f, "{object}"),
            Self::List { of, items } => {
                let items = items.iter().map(|item| View::of(of, Some(item)).to_string());
                write!(f, "[{}]", items.collect::<Vec<_>>().join(" "))
            }
            Self::Map { of, entries } => {
                let entries = entries.into_iter().flatten();
                let entries =
                    entries.map(|(key, value)| format!("{key}:{}", View::of(of, Some(value))));
                write!(f, "map[{}]", entries.collect::<Vec<_>>().join(" "))
            }
            Self::Oneof(Some((field, value))) => {
                write!(f, "&{{{}}}", View::of(field.kind, Some(value)))
            }
            Self::Message(_)
            | Self::Wrapper { .. }
            | Self::Duration(None)
            | Self::Struct(None)
            | Self::Oneof(None) => f.write_str("<nil>"),
        }
    }
}

fn duration(f: &mut fmt::Formatter<'_>, nanos: i64) -> fmt::Result {
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    match (seconds, nanos) {
        (0, 0) => Ok(()),
        (seconds, 0) => write!(f, "seconds:{seconds}"),
        (0, nanos) => write!(f, "nanos:{nanos}"),
        (seconds, nanos) => write!(f, "seconds:{seconds} nanos:{nanos}"),
    }
}
