//! The values of templates, with Go's types.

mod from;
mod list;
mod map;
mod nested;
mod object;
mod param;

use std::{borrow::Cow, sync::Arc};

pub use list::List;
pub use map::{Entries, Map};
pub use object::{Object, Shape};
pub use param::{Param, Signature};

use crate::text::Text;

/// Go's signed integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntKind {
    /// `int`, of 64 bits.
    Int,
    /// `int8`.
    Int8,
    /// `int16`.
    Int16,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
}

/// Go's unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UintKind {
    /// `uint`, of 64 bits.
    Uint,
    /// `uint8`.
    Uint8,
    /// `uint16`.
    Uint16,
    /// `uint32`.
    Uint32,
    /// `uint64`.
    Uint64,
}

/// A value of Go. Clones are cheap: they share texts, lists, maps and objects.
///
/// A missing key has *no value*, which is not one of these: functions see it as [`Value::Nil`].
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `nil` of type `interface {}`.
    #[default]
    Nil,
    /// `bool`.
    Bool(bool),
    /// A signed integer of this type.
    Int(i64, IntKind),
    /// An unsigned integer of this type.
    Uint(u64, UintKind),
    /// `float64`.
    Float(f64),
    /// `complex128`: real and imaginary part.
    Complex(f64, f64),
    /// `string`.
    Text(Text),
    /// A slice.
    List(List),
    /// A map whose keys are strings.
    Map(Map),
    /// A struct, a pointer or a value of a named type.
    Object(Arc<dyn Object>),
}

/// The type of the elements of a list or map.
#[derive(Clone, Copy, Debug)]
pub enum Element {
    /// `interface {}`.
    Any,
    /// `string`.
    Text,
    /// `int`.
    Int,
    /// `[]interface {}`.
    List,
    /// Another type: its name and its zero value.
    Other(&'static str, fn() -> Value),
}

impl Element {
    /// The name in Go.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Text => "string",
            Self::Int => "int",
            Self::List => "[]interface {}",
            Self::Other(name, _) => name,
        }
    }

    /// Whether elements may have any type.
    #[must_use]
    pub fn is_any(self) -> bool {
        matches!(self, Self::Any)
    }

    /// The zero value.
    #[must_use]
    pub fn zero(self) -> Value {
        match self {
            Self::Any => Value::Nil,
            Self::Text => Value::Text(Text::default()),
            Self::Int => Value::from(0_i64),
            Self::List => Value::List(List::nil(Self::Any)),
            Self::Other(_, zero) => zero(),
        }
    }
}

/// Go's kinds of types, as far as values here have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Invalid,
    Bool,
    Int(IntKind),
    Uint(UintKind),
    Float,
    Complex,
    String,
    Slice,
    Map,
    Struct,
    Pointer,
}

impl Kind {
    /// Go: `reflect.Kind.String`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int(kind) => kind.name(),
            Self::Uint(kind) => kind.name(),
            Self::Float => "float64",
            Self::Complex => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Pointer => "ptr",
        }
    }
}

impl IntKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }
}

impl UintKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }
}

impl Value {
    /// Go's name of the type, as `%T` prints it; of nil: `<nil>`.
    #[must_use]
    pub fn type_name(&self) -> Cow<'static, str> {
        match self {
            Self::Nil => "<nil>".into(),
            Self::List(list) => format!("[]{}", list.element().name()).into(),
            Self::Map(map) => map.type_name().into(),
            Self::Object(object) => object.type_name(),
            value => value.kind().name().into(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_, kind) => Kind::Int(*kind),
            Self::Uint(_, kind) => Kind::Uint(*kind),
            Self::Float(_) => Kind::Float,
            Self::Complex(..) => Kind::Complex,
            Self::Text(_) => Kind::String,
            Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Object(object) => match object.shape() {
                Shape::Struct => Kind::Struct,
                Shape::Pointer | Shape::NilPointer => Kind::Pointer,
                Shape::Named(value) => value.kind(),
            },
        }
    }

    /// The value without the name of its type: the number of an enum, the text of a named string.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, Self> {
        if let Self::Object(object) = self
            && let Shape::Named(value) = object.shape()
        {
            return Cow::Owned(value);
        }
        Cow::Borrowed(self)
    }

    /// Whether `if` takes it for true: it is not zero, empty or nil. Structs are always true.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value, _) => *value != 0,
            Self::Uint(value, _) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => match object.shape() {
                Shape::Struct | Shape::Pointer => true,
                Shape::NilPointer => false,
                Shape::Named(value) => value.is_true(),
            },
        }
    }

    /// Whether it is nil, or a nil list, map or pointer.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::List(list) => list.is_nil(),
            Self::Map(map) => map.is_nil(),
            Self::Object(object) => match object.shape() {
                Shape::NilPointer => true,
                Shape::Named(value) => value.is_nil(),
                Shape::Struct | Shape::Pointer => false,
            },
            _ => false,
        }
    }
}
