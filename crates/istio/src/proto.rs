//! Istio's `MeshConfig` and `ProxyConfig`: their fields and their JSON.
//!
//! [`schema`] knows the messages and the release that each field came with. [`Message`] holds values
//! and reads the JSON of Protobuf as Istio does.
//!
//! Not a general library for Protobuf: there is no binary form, and only these messages are known.

mod message;
mod read;
pub mod schema;
mod write;

pub use message::{Message, Value};
pub use read::ReadError;
