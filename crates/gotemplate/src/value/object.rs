//! Values that this crate does not know: structs, pointers and named types of the data.

use std::{any::Any, borrow::Cow, fmt};

use super::{Signature, Value};
use crate::text::Text;

/// What a value looks like to a template.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A struct.
    Struct,
    /// A pointer to a struct.
    Pointer,
    /// A nil pointer. Its methods can be called.
    NilPointer,
    /// A named type of this value: an enum of protobuf, a named string, list or map.
    Named(Value),
}

/// A struct, pointer or named value of the data.
///
/// Names are those of Go: `ContainerPort`, `GetConcurrency`.
pub trait Object: fmt::Debug + Send + Sync {
    /// The type as `%T` prints it: `v1.Container`, `*v1alpha1.ProxyConfig`.
    fn type_name(&self) -> Cow<'static, str>;

    /// What it looks like.
    fn shape(&self) -> Shape;

    /// The value of a field, also through a pointer; `None` if the type has no such field. Of a nil
    /// pointer any value says that the type has the field.
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    /// All fields in their order, for printing.
    fn fields(&self) -> Vec<(Cow<'static, str>, Value)> {
        Vec::new()
    }

    /// The parameters of a method; `None` if the type and its pointer have no such method.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls a method with arguments of its signature.
    ///
    /// # Errors
    /// The text of the error or panic of the method.
    fn call(&self, name: &str, _args: &[Value]) -> Result<Value, String> {
        Err(format!("{name} is not a method"))
    }

    /// What its method `String` or `Error` returns; `None` if it has none.
    fn text(&self) -> Option<Text> {
        None
    }

    /// What an action prints, if that is not what `printf` prints. A struct that is a place in the
    /// data has the methods of its pointer, and a pointer is followed; `printf` gets a copy of the
    /// struct, and the pointer as it is.
    fn text_in_place(&self) -> Option<Text> {
        None
    }

    /// Its compact JSON, as `json.Marshal` makes it. `toYaml` prints the value in it.
    ///
    /// # Errors
    /// Why there is none.
    fn json(&self) -> Result<String, String> {
        Err(format!("json: unsupported type: {}", self.type_name()))
    }

    /// Whether it implements this interface, such as `proto.Message`.
    fn implements(&self, _interface: &str) -> bool {
        false
    }

    /// Whether two structs of one type are equal; `None` if their type cannot be compared.
    fn equals(&self, _other: &dyn Object) -> Option<bool> {
        None
    }

    /// Itself, for functions that know the type.
    fn as_any(&self) -> &dyn Any;
}
