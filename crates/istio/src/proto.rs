//! Istio's `MeshConfig` and `ProxyConfig`: their fields, their JSON, and the layers of a pod.
//!
//! [`schema`] knows the messages and the release that each field came with. [`Message`] holds values;
//! it reads the JSON of Protobuf as Istio does, and [`View`] shows a template what Go would show.
//! [`mesh`] applies a mesh config over the built-in defaults, [`layers`] finds the `ProxyConfig` of a
//! pod, [`elide`] writes it for the sidecar, [`validate`] checks it.
//!
//! Not a general library for Protobuf: there is no binary form, and only these messages are known.

#[cfg(test)]
mod corpus;
pub mod defaults;
pub mod elide;
pub mod layers;
pub mod mesh;
mod message;
mod read;
pub mod schema;
pub mod validate;
mod view;
mod write;

pub use message::{Message, Value};
pub use read::ReadError;
pub use view::{FieldError, Pointer, View};
