//! Managed certificates: `serve --manage-certs`.
//!
//! A Secret keeps a CA, its key, and the webhook's certificate. One replica holds a Lease, renews
//! the certificates and writes the CAs into the `caBundle` of the webhooks. Every replica watches
//! Secret and webhooks, and serves a certificate only once the API server can verify it. The rules
//! are pure (`plan.rs`, `serving.rs`, `repairs.rs`); `docs/certificates.md` describes them and their
//! invariants. Secret, webhooks and time are behind a trait (`rim.rs`): the API server (`objects.rs`), or a
//! simulation.
//!
//! Not for certificates from files: the reload of files replaces them.

mod authority;
mod culprit;
mod keeper;
mod metrics;
mod objects;
mod plan;
mod repairs;
mod report;
mod revoked;
mod rim;
mod serving;
mod state;
mod view;

pub use authority::{Leaf, Lifetimes};
pub use keeper::{Keeper, Options};
pub use metrics::CertificateMetrics;
pub(crate) use objects::in_time;
pub(crate) use rim::{Answer, RequestError};

/// Field manager of the writes.
pub(crate) const FIELD_MANAGER: &str = "injectd";

#[cfg(test)]
mod model;
