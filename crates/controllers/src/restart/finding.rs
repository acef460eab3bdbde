//! What an audit found about a workload.
//!
//! Not for the state of the workload, which is read again before each decision (`workload.rs`).

use std::collections::BTreeMap;

use injectd_cluster::digest::digest;
use injectd_k8s::workload::Workload;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::workload::{Observed, RolloutKind};

/// Maximum number of `ReplicaSet`s of a finding. A Deployment has pods of one, or of two while it
/// rolls out; more are claimed by pods that were made to mislead.
pub const MAX_REPLICA_SETS: usize = 4;
/// How far clocks of a cluster may differ: API servers write when a pod was created, injectd when it
/// audited and restarted.
const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(1);

/// What follows the number of pods in a reason.
const OF_PODS: &str = " pods: ";

/// What an audit saw of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// A time before the first pod was read.
    pub begun: Timestamp,
    /// That of the evidence; empty if it is not known.
    pub environment: String,
    /// The workloads whose pods should be replaced. A workload may have several.
    pub findings: Vec<Finding>,
    /// All workloads with pods, without their uids.
    pub seen: BTreeMap<Workload, Seen>,
    /// Whether some workloads are not in `seen`: there are too many.
    pub is_cut: bool,
}

/// What an audit saw of the pods of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// A pod has the sidecar that it should have.
    pub is_meshed: bool,
    /// A pod could not be judged.
    pub is_unknown: bool,
}

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
    /// When the audit began, in RFC 3339; empty for pods of files.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub audited: String,
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
    /// Digest of the cause and of the workload's pod template. While it stays the same, another restart
    /// does not help either.
    pub digest: String,
}

// === impl Audit ===

impl Audit {
    /// What the audit saw of a workload without uid.
    pub(super) fn seen(&self, workload: &Workload) -> Seen {
        let unlisted = Seen { is_unknown: self.is_cut, ..Seen::default() };
        self.seen.get(workload).copied().unwrap_or(unlisted)
    }
}

impl Seen {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            is_meshed: self.is_meshed || other.is_meshed,
            is_unknown: self.is_unknown || other.is_unknown,
        }
    }
}

// === impl Finding ===

impl Finding {
    /// A finding about pods, with the reason as people read it.
    #[must_use]
    pub fn about(
        workload: Workload,
        [pods, total]: [u64; 2],
        reason: &str,
        evidence: Evidence,
    ) -> Self {
        Self { workload, reason: format!("{pods} of {total}{OF_PODS}{reason}"), evidence }
    }

    /// The reason without the number of pods, which changes all the time.
    pub(super) fn without_count(&self) -> &str {
        self.reason.split_once(OF_PODS).map_or(&*self.reason, |(_, reason)| reason)
    }

    /// Whether pods were found that name a Deployment itself as their controller. Deployments control
    /// `ReplicaSet`s only, so that such pods are not of it.
    #[must_use]
    pub fn is_forged(&self) -> bool {
        let Evidence { cause, since, replica_sets, .. } = &self.evidence;
        let is_of_audit = !cause.is_empty() || !since.is_empty();
        let is_deployment = RolloutKind::of(&self.workload) == Some(RolloutKind::Deployment);
        is_of_audit && is_deployment && replica_sets.is_empty()
    }
}

// === impl Evidence ===

impl Evidence {
    /// Whether the pods that were found are those of a rollout that was finished at this time, if both
    /// times are known: the audit began later, and the oldest of the pods is not newer.
    ///
    /// How old it is does not matter: at the end of a rollout all pods are of the rollout. Newer pods
    /// have been let in by something later, such as the next outage of a webhook.
    #[must_use]
    pub fn is_of_rollout(&self, finished_at: Timestamp) -> bool {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        let is_audited_later = time(&self.audited).is_some_and(|audited| audited > finished_at);
        let age = |since: Timestamp| since.duration_since(finished_at);
        is_audited_later && time(&self.since).is_some_and(|since| age(since) <= CLOCK_DIFFERENCE)
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
