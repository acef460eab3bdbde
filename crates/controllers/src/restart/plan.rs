//! The planner: which workloads are restarted now. Pure; `restarter.rs` reads and writes.

use std::{sync::Arc, time::Duration};

use injectd_k8s::workload::Workload;
use jiff::{SignedDuration, Timestamp};

use super::{
    budget::Budget,
    decision::{Decision, Wait},
    finding::{Evidence, Trigger},
    namespace::{Mode, NamespaceSettings},
    window::Windows,
    workload::{Observed, Rollout, RolloutKind},
};

/// Time between two restarts of a workload, by injectd or by others.
// Longer than a rollout and the audit after it, which shows whether the restart has helped.
pub const PAUSE: SignedDuration = SignedDuration::from_hours(1);
/// Time between two looks at a rollout that is stuck, so that many of them cost few requests.
pub(super) const STUCK_INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// Default of `--max-restarting`.
// Few enough that a fault of a restart shows before many workloads have it.
pub const DEFAULT_MAX_RESTARTING: usize = 3;
/// Default of `--rollout-timeout`: the progress deadline of a Deployment.
pub const DEFAULT_ROLLOUT_TIMEOUT: Duration = Duration::from_mins(10);

/// The rules of a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Which workloads are restarted.
    pub mode: Mode,
    /// When, if the namespace does not say.
    pub windows: Windows,
    /// Maximum number of workloads that roll out at the same time, each in a namespace of its own.
    pub max_restarting: usize,
    /// Time after which a rollout that is not finished stops the restarts of its namespace.
    pub rollout_timeout: Duration,
}

/// A workload of which a restart is asked, and what the cluster has of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The workload; `None` if it does not exist, or its kind has no rollout.
    pub observed: Option<Observed>,
    /// The annotations of its namespace.
    pub settings: NamespaceSettings,
    /// All budgets of its namespace.
    pub budgets: Arc<[Budget]>,
    /// Whether all `ReplicaSet`s that the pods name are of others.
    pub is_not_owner: bool,
    /// When it was restarted, if that did not help and nothing changed since.
    pub did_not_help: Option<Timestamp>,
    /// When the API server last refused to restart it.
    pub refused: Option<Timestamp>,
}

/// A restarted workload whose rollout is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// The workload.
    pub workload: Workload,
    /// When it was restarted.
    pub since: Timestamp,
    /// Why its rollout does not finish; `None` while it may.
    pub stuck: Option<String>,
    /// Whether it is stuck because someone paused it.
    pub is_paused: bool,
    /// When the cluster was last asked about it.
    pub asked_at: Timestamp,
    /// What it was restarted for; `None` if an audit did not find it, or a predecessor restarted it.
    pub trigger: Option<Trigger>,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            windows: Windows::default(),
            max_restarting: DEFAULT_MAX_RESTARTING,
            rollout_timeout: DEFAULT_ROLLOUT_TIMEOUT,
        }
    }
}

impl Policy {
    /// Decides about workloads, in their order: an earlier one may leave no room for a later one.
    #[must_use]
    pub fn plan(
        &self,
        now: Timestamp,
        candidates: &[(Workload, Candidate)],
        in_flight: &[InFlight],
    ) -> Vec<Decision> {
        let mut in_flight = in_flight.to_vec();
        let decide = |(workload, candidate): &(Workload, Candidate)| {
            if let Some(wait) = self.wait(now, workload, candidate, &in_flight) {
                return Decision::Wait(wait);
            }
            in_flight.push(InFlight::new(workload.clone(), now));
            Decision::Restart
        };
        candidates.iter().map(decide).collect()
    }

    /// Why a workload is not restarted now, if so.
    fn wait(
        &self,
        now: Timestamp,
        workload: &Workload,
        candidate: &Candidate,
        in_flight: &[InFlight],
    ) -> Option<Wait> {
        if RolloutKind::of(workload).is_none() {
            return Some(Wait::NoRollout { by_hand: by_hand(&workload.kind) });
        }
        let rules = candidate.settings.wait(now, self.mode, &self.windows);
        rules
            .or_else(|| candidate.wait(now, workload))
            .or_else(|| candidate.budget())
            .or_else(|| self.room(&workload.namespace, in_flight))
            .or_else(|| (self.mode == Mode::DryRun).then_some(Wait::DryRun))
    }

    /// Why no workload of a namespace can be restarted now, if so. A rollout that is stuck takes the
    /// room of its namespace only: no tenant stops the restarts of others.
    #[must_use]
    pub fn room(&self, namespace: &str, in_flight: &[InFlight]) -> Option<Wait> {
        let mut own = in_flight.iter().filter(|restart| restart.workload.namespace == namespace);
        let stuck = own.clone().find(|restart| restart.stuck.is_some());
        if let Some(stuck) = stuck {
            return Some(Wait::Stuck { workload: stuck.workload.to_string() });
        }
        if let Some(other) = own.next() {
            return Some(Wait::Namespace { other: other.workload.to_string() });
        }
        let count = in_flight.iter().filter(|restart| restart.stuck.is_none()).count();
        (count >= self.max_restarting).then_some(Wait::Others { count })
    }

    /// Looks at the rollout of a restarted workload again; `None` if it ended.
    #[must_use]
    pub fn follow(
        &self,
        now: Timestamp,
        in_flight: InFlight,
        observed: Option<&Observed>,
    ) -> Option<InFlight> {
        let observed = observed.filter(|observed| in_flight.is_of(observed))?;
        let stuck = match observed.rollout {
            Rollout::Finished => return None,
            // It takes no room of other namespaces, for however long it is paused.
            _ if observed.is_paused => Some("it is paused".to_owned()),
            Rollout::DeadlineExceeded => Some("its progressDeadlineSeconds are over".to_owned()),
            Rollout::InProgress => {
                let age = now.duration_since(in_flight.since).unsigned_abs();
                let limit = self.rollout_timeout;
                (age >= limit && now > in_flight.since)
                    .then(|| format!("it is not finished after {limit:?}"))
            }
        };
        let is_paused = observed.is_paused;
        Some(InFlight { stuck, is_paused, asked_at: now, ..in_flight })
    }
}

/// What to do about a workload whose kind has no rollout.
fn by_hand(kind: &str) -> &'static str {
    match kind {
        "Pod" => "a pod without a controller is not created again; delete it and create it again",
        "Job" => "the pods of a Job run to their end; delete the Job and create it again",
        "CronJob" => "the next Job has new pods",
        "ReplicaSet" | "ReplicationController" => "delete its pods one by one",
        _ => "its kind is not Deployment, StatefulSet or DaemonSet of apps/v1; restart it by hand",
    }
}

impl InFlight {
    /// A workload that is restarted at this time.
    #[must_use]
    pub fn new(workload: Workload, since: Timestamp) -> Self {
        Self { workload, since, stuck: None, is_paused: false, asked_at: since, trigger: None }
    }

    /// Whether the cluster is to be asked about it now.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let ago = now.duration_since(self.asked_at).abs();
        self.stuck.is_none() || ago >= STUCK_INTERVAL
    }

    fn is_of(&self, observed: &Observed) -> bool {
        self.workload.uid.as_ref().is_none_or(|uid| *uid == observed.uid)
    }
}

impl Candidate {
    /// Why the workload itself is not ready for a restart, if so.
    fn wait(&self, now: Timestamp, workload: &Workload) -> Option<Wait> {
        let Some(observed) = &self.observed else { return Some(Wait::Gone) };
        if workload.uid.as_ref().is_some_and(|uid| *uid != observed.uid) {
            return Some(Wait::Gone);
        }
        if self.is_not_owner {
            return Some(Wait::NotOwner);
        }
        if let Some(by_hand) = observed.no_rollout {
            return Some(Wait::NoRollout { by_hand });
        }
        if observed.is_paused {
            return Some(Wait::Paused);
        }
        if let Some(at) = self.did_not_help {
            return Some(Wait::DidNotHelp { at });
        }
        if let Some(at) = self.refused.filter(|&at| now.duration_since(at) < PAUSE) {
            return Some(Wait::Refused { at });
        }
        // A time in the future comes from a clock that is ahead.
        if let Some(at) = observed.restarted_at.filter(|&at| now.duration_since(at) < PAUSE) {
            return Some(Wait::Recent { at });
        }
        (observed.rollout != Rollout::Finished).then_some(Wait::RollingOut)
    }

    /// The budget that does not allow a restart, if there is one.
    fn budget(&self) -> Option<Wait> {
        let observed = self.observed.as_ref()?;
        let mut own = self.budgets.iter().filter(|budget| budget.covers(&observed.pod_labels));
        let budget = own.find(|budget| budget.is_exhausted)?.name.clone();
        Some(Wait::Budget { budget })
    }
}

impl Observed {
    /// When the workload was restarted, if that was for the same as now and did not help: the pods that
    /// were found are those of that restart. Of a rollout that is finished it is not known since when;
    /// it is taken to be for as long as it may last.
    #[must_use]
    pub fn did_not_help(
        &self,
        evidence: &Evidence,
        rollout_timeout: Duration,
    ) -> Option<Timestamp> {
        let at = self.restarted_at?;
        let is_same = evidence.trigger(self).map(|trigger| trigger.digest)
            == Some(self.restarted_for.clone()?);
        let finished_at = at.checked_add(rollout_timeout).ok()?;
        let is_of_restart = evidence.is_of_rollout(finished_at);
        (is_same && is_of_restart && self.rollout == Rollout::Finished).then_some(at)
    }
}

#[cfg(test)]
mod tests;
