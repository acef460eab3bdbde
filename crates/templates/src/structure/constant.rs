//! Values without parts.

use serde_json::{Number, Value};

/// A value without parts. It takes a third of the memory of a [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// `null`; it also stands for what has a problem.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Box<str>),
}

impl Constant {
    /// A value; `null` for one that has parts.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(text.as_str().into()),
            Value::Null | Value::Array(_) | Value::Object(_) => Self::Null,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) => None,
        }
    }

    /// Whether it is a value.
    #[must_use]
    pub fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(one), Value::Bool(other)) => one == other,
            (Self::Number(one), Value::Number(other)) => one == other,
            (Self::Text(one), Value::String(other)) => **one == **other,
            _ => false,
        }
    }

    /// The value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(String::from(&**text)),
        }
    }
}
