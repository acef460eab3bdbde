//! `.Name` on any value of a message, as templates write it.

use super::{FieldError, View};
use crate::proto::{
    message::Value,
    schema::{Kind, Shape, Wrapped},
};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl View<'_> {
    /// `.Name`: a field or a method without arguments. Methods work on nil pointers.
    ///
    /// Messages have their fields and getters, wrappers `Value` and `GetValue`, durations `Seconds`,
    /// `Nanos` and their getters, enums `String` and `Number`, the interface of a group its field.
    /// Keys of a map are not members: the caller looks them up.
    ///
    /// # Errors
    ///
    /// If there is no such member, or a field of a nil pointer is asked for.
    pub fn member(self, name: &str) -> Result<Self, FieldError> {
        let (field, go_type) = (name.to_owned(), self.go_type());
        let unknown = FieldError::Unknown { field: field.clone(), go_type: go_type.clone() };
        let (is_nil, found) = match self {
            Self::Message(pointer) => {
                return pointer.getter(name).map_or_else(|| pointer.field(name), Ok);
            }
            Self::Wrapper { value, .. } if name == "Value" => (value.is_none(), self.wrapped()),
            Self::Wrapper { .. } if name == "GetValue" => (false, self.wrapped()),
            Self::Duration(nanos) => duration(nanos, name),
            Self::Enum { of, number } => (
                false,
                match name {
                    "String" => of.get().name_of(number).map(Self::Text),
                    "Number" => Some(Self::Int32(number)),
                    _ => None,
                },
            ),
            Self::Oneof(set) => (
                set.is_none(),
                set.filter(|(field, _)| field.go == name)
                    .map(|(field, value)| Self::of_field(field, Some(value))),
            ),
            _ => (false, None),
        };
        if is_nil { Err(FieldError::Nil { field, go_type }) } else { found.ok_or(unknown) }
    }

    /// The type in Go, for error texts: `map[string]string`, `*v1alpha1.Tracing`.
    #[must_use]
    pub fn go_type(self) -> String {
        match self {
            Self::Text(_) => "string".to_owned(),
            Self::Bool(_) => "bool".to_owned(),
            Self::Int32(_) => "int32".to_owned(),
            Self::Uint32(_) => "uint32".to_owned(),
            Self::Int64(_) => "int64".to_owned(),
            Self::Double(_) => "float64".to_owned(),
            Self::Enum { of, .. } => of.get().go_name(),
            Self::Message(pointer) => format!("*{}", pointer.of.get().go_name()),
            Self::Wrapper { of, .. } => Kind::Wrapper(of).go_type(Shape::One),
            Self::Duration(_) => Kind::Duration.go_type(Shape::One),
            Self::Struct(_) => Kind::Struct.go_type(Shape::One),
            Self::List { of, .. } => of.go_type(Shape::List),
            Self::Map { of, .. } => of.go_type(Shape::Map),
            Self::Oneof(_) => "interface {}".to_owned(),
        }
    }
}

/// Whether the pointer is nil and may not be, and the member.
fn duration<'m>(nanos: Option<i64>, name: &str) -> (bool, Option<View<'m>>) {
    let value = nanos.unwrap_or(0);
    let rest = i32::try_from(value % NANOS_PER_SECOND).unwrap_or(0);
    match name.strip_prefix("Get").unwrap_or(name) {
        "Seconds" => {
            (nanos.is_none() && name == "Seconds", Some(View::Int64(value / NANOS_PER_SECOND)))
        }
        "Nanos" => (nanos.is_none() && name == "Nanos", Some(View::Int32(rest))),
        _ => (false, None),
    }
}

impl Kind {
    /// The type of a field of this kind in Go.
    fn go_type(self, shape: Shape) -> String {
        let one = match self {
            Self::Wrapper(Wrapped::Bool) => "*wrapperspb.BoolValue".to_owned(),
            Self::Wrapper(Wrapped::Int32) => "*wrapperspb.Int32Value".to_owned(),
            Self::Wrapper(Wrapped::Uint32) => "*wrapperspb.UInt32Value".to_owned(),
            Self::Wrapper(Wrapped::Int64) => "*wrapperspb.Int64Value".to_owned(),
            Self::Duration => "*durationpb.Duration".to_owned(),
            Self::Struct => "*structpb.Struct".to_owned(),
            plain => View::of(plain, None::<&Value>).go_type(),
        };
        match shape {
            Shape::One => one,
            Shape::List => format!("[]{one}"),
            Shape::Map => format!("map[string]{one}"),
        }
    }
}
