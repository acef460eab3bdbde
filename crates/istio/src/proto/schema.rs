//! The messages: fields in the order of the `.proto` files, which is the order of the JSON.
//!
//! They come from `mesh.txt`: `mesh/v1alpha1` of `istio.io/api` 1.31 with the messages it uses, and
//! the resource `ProxyConfig` of `networking/v1beta1`. `since N` means release 1.N; of fields that
//! came after 1.24 in `MeshConfig`, and whose release is not known, it is the earliest possible one.

mod names;
mod parse;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::release::Release;

static TABLE: LazyLock<Table> = LazyLock::new(|| parse::table(include_str!("schema/mesh.txt")));

/// `istio.mesh.v1alpha1.MeshConfig`.
pub static MESH_CONFIG: LazyLock<MessageRef> = LazyLock::new(|| of("MeshConfig"));
/// `istio.mesh.v1alpha1.ProxyConfig`.
pub static PROXY_CONFIG: LazyLock<MessageRef> = LazyLock::new(|| of("ProxyConfig"));
/// `istio.networking.v1beta1.ProxyConfig`, the specification of the resource.
pub static PROXY_CONFIG_RESOURCE: LazyLock<MessageRef> =
    LazyLock::new(|| of("istio.networking.v1beta1.ProxyConfig"));

/// All types.
struct Table {
    messages: Vec<MessageType>,
    enums: Vec<EnumType>,
}

/// A message.
#[derive(Debug)]
pub struct MessageType {
    /// The full name, such as `istio.mesh.v1alpha1.Tracing.Zipkin`.
    pub name: String,
    /// In the order of declaration.
    pub fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    /// The name in the `.proto` file: `mesh_id`.
    pub name: &'static str,
    /// The key in JSON: `meshId`.
    pub json: String,
    /// The name in Go: `MeshId`.
    pub go: String,
    /// One value, a list, or a map from strings.
    pub shape: Shape,
    /// What a value is.
    pub kind: Kind,
    /// The name of the group, such as `cluster_name`, of which only one field can be set.
    pub oneof: Option<&'static str>,
    /// The first release that knows the field.
    pub since: Release,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// At most one.
    One,
    /// A list.
    List,
    /// A map from strings.
    Map,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `string`.
    Text,
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `uint32`.
    Uint32,
    /// `double`.
    Double,
    /// An enum.
    Enum(EnumRef),
    /// A message.
    Message(MessageRef),
    /// `google.protobuf.BoolValue` and its like: a value that can be unset.
    Wrapper(Wrapped),
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Struct`: any object of JSON.
    Struct,
}

/// What a wrapper holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapped {
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `uint32`.
    Uint32,
    /// `int64`, which is a string in JSON.
    Int64,
}

/// An enum.
#[derive(Debug)]
pub struct EnumType {
    /// The full name, such as `istio.mesh.v1alpha1.AuthenticationPolicy`.
    pub name: String,
    /// Names and numbers.
    values: Vec<(&'static str, i32)>,
}

/// A reference to one of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRef(usize);

/// A reference to one of the enums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumRef(usize);

impl MessageRef {
    /// The message.
    ///
    /// # Panics
    ///
    /// Never: references are made for messages of the table only.
    #[must_use]
    pub fn get(self) -> &'static MessageType {
        TABLE.messages.get(self.0).expect("a reference must be to a message of the table")
    }
}

impl EnumRef {
    /// The enum.
    ///
    /// # Panics
    ///
    /// Never: references are made for enums of the table only.
    #[must_use]
    pub fn get(self) -> &'static EnumType {
        TABLE.enums.get(self.0).expect("a reference must be to an enum of the table")
    }
}

impl MessageType {
    /// Where the field with this name of the `.proto` file is.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The field with this name in Go, and where it is.
    #[must_use]
    pub fn field_of_go(&self, name: &str) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.go == name)
    }

    /// The group of this name in Go (`ClusterName`) as it is called in the `.proto` file.
    #[must_use]
    pub fn oneof_of_go(&self, name: &str) -> Option<&'static str> {
        self.fields.iter().filter_map(|field| field.oneof).find(|group| names::go(group) == name)
    }

    /// The name of the type in Go, such as `v1alpha1.Tracing_Zipkin`.
    #[must_use]
    pub fn go_name(&self) -> String {
        names::go_type(&self.name)
    }
}

impl EnumType {
    /// The name of a number.
    #[must_use]
    pub fn name_of(&self, number: i32) -> Option<&'static str> {
        self.values.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
    }

    /// The number of a name, which is case-sensitive.
    #[must_use]
    pub fn number_of(&self, name: &str) -> Option<i32> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }

    /// The name of the type in Go, such as `v1alpha1.ProxyConfig_InboundInterceptionMode`.
    #[must_use]
    pub fn go_name(&self) -> String {
        names::go_type(&self.name)
    }
}

/// The message of this name; names of `istio.mesh.v1alpha1` are without the package.
fn of(name: &str) -> MessageRef {
    let full = parse::full_name(name);
    let at = TABLE.messages.iter().position(|message| message.name == full);
    MessageRef(at.expect("a message must be in the table"))
}
