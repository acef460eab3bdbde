//! Istio's `MeshConfig` and `ProxyConfig`: their fields and their JSON.
//!
//! [`schema`] knows the messages and the release that each field came with. [`Message`] holds values
//! and reads the JSON of Protobuf as Istio does, [`View`] shows a template what Go would show.
//!
//! Not a general library for Protobuf: there is no binary form, and only these messages are known.

mod message;
mod read;
pub mod schema;
mod view;
mod write;

pub use message::{Message, Value};
pub use read::ReadError;
pub use view::{FieldError, Pointer, View};
