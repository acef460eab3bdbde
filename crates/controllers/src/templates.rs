//! The keeper of sidecar templates in a cluster: their revisions and their status.
//!
//! Every replica has a Lease with a digest of the revisions that it serves, and with the errors of the last
//! hour. One replica, the leader, keeps each revision in a `ControllerRevision`, and writes the status of each
//! template: whether it is accepted, whether all replicas serve it, and how many pods have it. The rules are
//! pure (`plan.rs`, `revisions.rs`, `status.rs`); the API server is behind a trait (`rim.rs`), so that a
//! simulation can take its place. `docs/templates/in-a-cluster.md` describes what a user sees.
//!
//! Not for what a replica serves, and not for the watches: `injectd_profiles::template_plane` has them.

mod keeper;

mod objects;
mod replica;

mod plan;

mod conditions;
mod findings;
mod revisions;
mod status;

mod pods;
mod replicas;
mod report;

mod rim;

mod metrics;
mod pauses;
mod permissions;
mod text;
mod write;

pub use keeper::{Keeper, Options};
pub use metrics::KeeperMetrics;
pub use permissions::{PERMISSIONS, Permission};

/// Field manager of the writes.
const FIELD_MANAGER: &str = "injectd";

#[cfg(test)]
mod model;
