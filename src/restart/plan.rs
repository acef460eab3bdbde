//! The planner: which workloads are restarted now. Pure; `restarter.rs` reads and writes.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{
    budget::Budget,
    decision::{Decision, Wait},
    namespace::{Mode, NamespaceSettings},
    window::Windows,
    workload::{Observed, Rollout, Workload},
};

/// Time between two restarts of a workload, by injectd or by others.
pub const PAUSE: SignedDuration = SignedDuration::from_hours(1);
/// Default of `--max-restarting`.
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
    /// Maximum number of workloads that roll out at the same time.
    pub max_restarting: usize,
    /// Time after which a rollout that is not finished stops all restarts.
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
    pub budgets: Vec<Budget>,
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
    /// The labels of its pods.
    pub pod_labels: BTreeMap<String, String>,
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
            if let Some(observed) = &candidate.observed {
                in_flight.push(InFlight::new(workload.clone(), now, observed));
            }
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
        let Candidate { observed, settings, budgets } = candidate;
        if workload.rollout_kind().is_none() {
            return Some(Wait::NoRollout { by_hand: by_hand(&workload.kind) });
        }
        let rules = settings.wait(now, self.mode, &self.windows);
        let state = || observed.as_ref().map_or(Some(Wait::Gone), |it| it.wait(now, workload));
        let budget = || {
            let observed = observed.as_ref()?;
            budgets
                .iter()
                .filter(|budget| budget.covers(&observed.pod_labels))
                .find_map(|budget| wait_for(budget, workload, in_flight))
        };
        rules
            .or_else(state)
            .or_else(budget)
            .or_else(|| self.room(in_flight))
            .or_else(|| (self.mode == Mode::DryRun).then_some(Wait::DryRun))
    }

    /// Why no workload can be restarted now, if so.
    #[must_use]
    pub fn room(&self, in_flight: &[InFlight]) -> Option<Wait> {
        if let Some(stuck) = in_flight.iter().find(|it| it.stuck.is_some()) {
            return Some(Wait::Stuck { workload: stuck.workload.to_string() });
        }
        let count = in_flight.len();
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
            // Whoever paused it stopped the rollout on purpose.
            Rollout::InProgress if observed.is_paused => None,
            Rollout::DeadlineExceeded => Some("its progressDeadlineSeconds are over".to_owned()),
            Rollout::InProgress => {
                let age = now.duration_since(in_flight.since).unsigned_abs();
                let limit = self.rollout_timeout;
                (age >= limit && now > in_flight.since)
                    .then(|| format!("it is not finished after {limit:?}"))
            }
        };
        Some(InFlight { stuck, ..in_flight })
    }
}

/// Why a budget does not allow a restart, if so.
fn wait_for(budget: &Budget, workload: &Workload, in_flight: &[InFlight]) -> Option<Wait> {
    let name = || budget.name.clone();
    let other = in_flight.iter().find(|other| {
        other.workload.namespace == workload.namespace && budget.covers(&other.pod_labels)
    });
    match other {
        // Its pods may be available still, and the budget not used yet.
        Some(other) => {
            Some(Wait::SharedBudget { budget: name(), other: other.workload.to_string() })
        }
        None => budget.is_exhausted.then(|| Wait::Budget { budget: name() }),
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
    pub fn new(workload: Workload, since: Timestamp, observed: &Observed) -> Self {
        Self { workload, since, stuck: None, pod_labels: observed.pod_labels.clone() }
    }

    fn is_of(&self, observed: &Observed) -> bool {
        self.workload.uid.as_ref().is_none_or(|uid| *uid == observed.uid)
    }
}

impl Observed {
    /// Why the workload itself is not ready for a restart, if so.
    fn wait(&self, now: Timestamp, workload: &Workload) -> Option<Wait> {
        if workload.uid.as_ref().is_some_and(|uid| *uid != self.uid) {
            return Some(Wait::Gone);
        }
        if let Some(by_hand) = self.no_rollout {
            return Some(Wait::NoRollout { by_hand });
        }
        if self.is_paused {
            return Some(Wait::Paused);
        }
        // A time in the future comes from a clock that is ahead.
        if let Some(at) = self.restarted_at.filter(|&at| now.duration_since(at) < PAUSE) {
            return Some(Wait::Recent { at });
        }
        (self.rollout != Rollout::Finished).then_some(Wait::RollingOut)
    }
}

#[cfg(test)]
mod tests;
