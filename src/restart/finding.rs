//! What an audit found about a workload.
//!
//! Not for the state of the workload, which is read again before each decision (`workload.rs`).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::workload::{Observed, Workload};
use crate::digest::digest;

/// Maximum number of `ReplicaSet`s of a finding. A Deployment has pods of one, or of two while it
/// rolls out; more are claimed by pods that were made to mislead.
pub const MAX_REPLICA_SETS: usize = 4;

/// A workload and why its pods should be replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// Such as `2 pods have no sidecar`.
    #[serde(default)]
    pub reason: String,
    /// What the audit saw.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// What an audit saw of a workload. All of it is empty if a person names the workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Evidence {
    /// Digest of the injectors' webhooks, and of what their meshes inject.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub environment: String,
    /// Digest of the finding, of the environment and of the namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// When the oldest of the pods was created, in RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// The `ReplicaSet`s that the pods name as their controller, if the workload is the Deployment
    /// that these seem to be of. Anyone who creates a pod can write any name there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replica_sets: Vec<ReplicaSet>,
}

/// A `ReplicaSet` as a pod names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReplicaSet {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What a restart is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// That of the evidence.
    pub cause: String,
    /// Digest of the cause and of the workload's pod template: of all that could make a restart help
    /// that did not.
    pub digest: String,
}

impl Evidence {
    /// When the oldest of the pods was created, if that is known.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        self.since.parse().ok()
    }

    /// What a restart of the workload would be for; `None` if the cause is not known.
    #[must_use]
    pub fn trigger(&self, observed: &Observed) -> Option<Trigger> {
        let is_known = !self.cause.is_empty();
        is_known.then(|| Trigger {
            cause: self.cause.clone(),
            digest: digest([&*self.cause, &*observed.template_digest]),
        })
    }
}
