//! The gRPC API of injectd, for components that call it: messages and services ([`v1`]), and a
//! client ([`client`]). The definition is `proto/injectd/v1/injectd.proto`.

pub mod client;
mod codec;

/// Messages and services, generated from `proto/`; `tests/generated.rs` fails if they are stale.
#[allow(
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    missing_docs,
    unreachable_pub,
    reason = "generated"
)]
pub mod v1 {
    include!("injectd.v1.rs");
}

/// File descriptors of `proto/`, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("injectd.v1.bin");
/// Maximum size of a message, request or response.
// The webhook takes bodies of the same size: an object that one server takes, the other one takes
// as well. gRPC's own default is 4 MiB.
pub const MAX_MESSAGE_BYTES: usize = 10 << 20;
/// Start of the address of a Unix domain socket.
pub const UNIX_SCHEME: &str = "unix:";
