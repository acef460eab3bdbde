//! Certificates that look after themselves: `serve --manage-certs`.
//!
//! A Secret keeps a CA, its key, and the webhook's certificate. One replica holds a Lease, renews
//! the certificates and writes the CAs into the `caBundle` of the webhooks. Every replica watches
//! Secret and webhooks, and serves a certificate only once the API server can verify it. The rules
//! are pure (`plan.rs`, `serving.rs`); `docs/certificates.md` describes them and their invariants.
//!
//! Not for certificates from files: the reload of files replaces them.

mod authority;
mod keeper;
mod metrics;
mod plan;
mod report;
mod rules;
mod serving;
mod state;
mod view;

pub use authority::{CLOCK_SKEW, Certificate, Leaf, Lifetimes};
pub use keeper::{Keeper, Options};
pub use metrics::CertificateMetrics;
pub use rules::{LEASE_VERBS, SECRET_VERBS, WEBHOOK_VERBS};
pub use serving::PROPAGATION;

#[cfg(test)]
mod model;
