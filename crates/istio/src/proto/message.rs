//! Values of messages.

use std::collections::BTreeMap;

use super::schema::{Field, Kind, MessageRef, MessageType, Shape};

/// A message: each field is set or not.
///
/// As in Protobuf 3, a plain field that is zero is not set, unless it is in a group (oneof).
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    of: MessageRef,
    /// As many as the message has fields, in its order.
    values: Vec<Option<Value>>,
}

/// The value of a field that is set.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    Text(String),
    /// A boolean, plain or in a wrapper.
    Bool(bool),
    /// An integer, plain or in a wrapper, or the number of an enum.
    Integer(i64),
    /// A double.
    Double(f64),
    /// A message.
    Message(Message),
    /// A duration in nanoseconds.
    Duration(i64),
    /// Any object of JSON.
    Struct(serde_json::Value),
    /// A list. It is not empty.
    List(Vec<Value>),
    /// A map. It is not empty.
    Map(BTreeMap<String, Value>),
}

impl Message {
    /// A message without values.
    #[must_use]
    pub fn new(of: MessageRef) -> Self {
        Self { of, values: vec![None; of.get().fields.len()] }
    }

    /// What message it is.
    #[must_use]
    pub fn of(&self) -> MessageRef {
        self.of
    }

    /// All fields with their values, in the order of the message.
    pub fn fields(&self) -> impl Iterator<Item = (&'static Field, Option<&Value>)> {
        self.of.get().fields.iter().zip(self.values.iter().map(Option::as_ref))
    }

    /// The value of the field with this name of the `.proto` file, if it is set.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.at(self.of.get().index(name)?)
    }

    /// A string; an empty one if it is not set.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// An integer or the number of an enum, plain or in a wrapper; zero if it is not set.
    #[must_use]
    pub fn integer(&self, name: &str) -> i64 {
        match self.value(name) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// A boolean, plain or in a wrapper, if it is set.
    #[must_use]
    pub fn boolean(&self, name: &str) -> Option<bool> {
        match self.value(name) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// A message, if it is set.
    #[must_use]
    pub fn message(&self, name: &str) -> Option<&Message> {
        match self.value(name) {
            Some(Value::Message(message)) => Some(message),
            _ => None,
        }
    }

    /// The elements of a list.
    #[must_use]
    pub fn list(&self, name: &str) -> &[Value] {
        match self.value(name) {
            Some(Value::List(items)) => items,
            _ => &[],
        }
    }

    /// A map, if it is not empty.
    #[must_use]
    pub fn map(&self, name: &str) -> Option<&BTreeMap<String, Value>> {
        match self.value(name) {
            Some(Value::Map(entries)) => Some(entries),
            _ => None,
        }
    }

    /// Sets or clears a field by its name of the `.proto` file. The other fields of its group are
    /// cleared, zeros and empty lists clear the field. Unknown names do nothing.
    pub fn set(&mut self, name: &str, value: Option<Value>) {
        if let Some(index) = self.of.get().index(name) {
            self.set_at(index, value);
        }
    }

    /// The value of a field by its position.
    pub(super) fn at(&self, index: usize) -> Option<&Value> {
        self.values.get(index)?.as_ref()
    }

    /// As [`Message::set`], by the position of the field.
    pub(super) fn set_at(&mut self, index: usize, value: Option<Value>) {
        let kind: &MessageType = self.of.get();
        let Some(field) = kind.fields.get(index) else { return };
        if let (Some(group), Some(_)) = (field.oneof, &value) {
            for (other, slot) in kind.fields.iter().zip(&mut self.values) {
                if other.oneof == Some(group) {
                    *slot = None;
                }
            }
        }
        if let Some(slot) = self.values.get_mut(index) {
            *slot = value.filter(|value| is_present(field, value));
        }
    }
}

/// Whether Protobuf 3 sees a difference between the value and no value.
fn is_present(field: &Field, value: &Value) -> bool {
    match (value, field.shape) {
        (Value::List(items), _) => !items.is_empty(),
        (Value::Map(entries), _) => !entries.is_empty(),
        _ if field.oneof.is_some() || matches!(field.kind, Kind::Wrapper(_)) => true,
        (Value::Text(text), Shape::One) => !text.is_empty(),
        (Value::Bool(value), Shape::One) => *value,
        (Value::Integer(number), Shape::One) => *number != 0,
        // The bits of -0 are not zero, so that Protobuf keeps it.
        (Value::Double(number), Shape::One) => number.to_bits() != 0,
        _ => true,
    }
}
