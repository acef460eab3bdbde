//! The types of parameters: of functions and of methods.

use super::{Element, IntKind, Shape, Value};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// `interface {}`: any value. The whole argument is recorded as read.
    Any,
    /// `reflect.Value`: any value or none. The function records its own reads.
    Value,
    /// `string`.
    Text,
    /// `int`.
    Int,
    /// `float64`.
    Float,
    /// `bool`.
    Bool,
    /// `map[string]interface {}`.
    Map,
    /// `map[string]string`.
    Texts,
    /// A struct type, or `*` and a struct type; a pointer and its target convert to each other.
    Object(&'static str),
    /// A slice of this type, by the name of the slice type.
    List(&'static str),
    /// An interface with methods.
    Interface(&'static str),
}

impl Param {
    /// The name in Go.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Value => "reflect.Value",
            Self::Text => "string",
            Self::Int => "int",
            Self::Float => "float64",
            Self::Bool => "bool",
            Self::Map => "map[string]interface {}",
            Self::Texts => "map[string]string",
            Self::Object(name) | Self::List(name) | Self::Interface(name) => name,
        }
    }

    /// Whether a value can be passed as it is. Go: `reflect.Type.AssignableTo`.
    pub(crate) fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Value, _)
            | (Self::Text, Value::Text(_))
            | (Self::Int, Value::Int(_, IntKind::Int))
            | (Self::Float, Value::Float(_))
            | (Self::Bool, Value::Bool(_)) => true,
            (Self::Map, Value::Map(map)) => map.has_plain_keys() && map.element().is_any(),
            (Self::Texts, Value::Map(map)) => {
                map.has_plain_keys() && matches!(map.element(), Element::Text)
            }
            (Self::List(name), value) => value.type_name() == name,
            (Self::Interface(name), Value::Object(object)) => object.implements(name),
            (Self::Object(name), Value::Object(object)) => {
                let found = object.type_name();
                name.trim_start_matches('*') == found.trim_start_matches('*')
                    && (name.starts_with('*') || !matches!(object.shape(), Shape::NilPointer))
            }
            _ => false,
        }
    }
}
