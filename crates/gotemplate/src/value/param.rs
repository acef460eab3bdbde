//! The types of parameters: of functions and of methods.

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

/// The parameters of a method.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The types of the fixed parameters.
    pub params: &'static [Param],
    /// The type of the arguments after them.
    pub variadic: Option<Param>,
}

impl Signature {
    /// No parameters, as getters have.
    pub const NONE: Self = Self { params: &[], variadic: None };

    /// The type of an argument.
    pub(crate) fn param(&self, index: usize) -> Param {
        self.params.get(index).copied().or(self.variadic).unwrap_or(Param::Any)
    }
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
}
