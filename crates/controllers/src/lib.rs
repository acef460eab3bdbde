//! What injectd keeps right in a cluster, beside the answers to reviews: pods that lack their sidecar
//! are found and restarted, certificates are renewed, webhook configurations are watched, sidecar templates have
//! revisions and a status, and their webhook selects the pods that they are for.
//!
//! Each module has rules that are pure, and one part that reads and writes the cluster. Each uses only
//! modules below it.

#![expect(clippy::disallowed_types, reason = "objects of a cluster have any shape")]

pub mod audit;
pub mod restart;

pub mod webhook_scope;

pub mod certificates;
pub mod templates;
pub mod webhook_watch;
