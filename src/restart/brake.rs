//! Stops restarts that do not help. Pure: it is given what audits and the cluster show.
//!
//! That a workload is not restarted twice for the same is read from the workload (`plan.rs`). This is
//! about the others: if restarts do not help, their cause is elsewhere, such as a webhook that API
//! servers cannot reach, and further ones disturb workloads for nothing.
//!
//! No tenant stops the restarts of others: those of all namespaces stop only after failures in
//! several.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    decision::Wait,
    finding::{Evidence, Finding, Trigger},
    plan::{CLOCK_STEP, InFlight},
    workload::Workload,
};

/// After restarts that did not help in as many namespaces all restarts stop: one tenant alone has
/// fewer, and the fault is a common one.
pub const MAX_NAMESPACES: usize = 3;
/// After as many restarts of a namespace that did not help its restarts stop.
pub const MAX_WORKLOADS: usize = 3;
/// As many restarts may have no verdict of an audit yet, until one of them has helped.
pub const MAX_UNVERIFIED: usize = 3;

/// Restarts that helped, and that did not.
#[derive(Debug, Default)]
pub(super) struct Brake {
    /// The environment of the last audit; empty if nothing audits.
    environment: String,
    /// Workloads whose last restart did not help. Keys have no uid.
    failures: BTreeMap<Workload, Failure>,
    /// Restarts whose rollout is finished, without a verdict. Keys have no uid.
    trials: BTreeMap<Workload, Trial>,
    /// The newest restart that helped in this environment, of each namespace.
    cures: BTreeMap<String, Timestamp>,
}

/// What is stopped.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// All restarts; the namespaces where they did not help.
    all: Option<String>,
    /// Namespaces, with the number of their restarts that did not help.
    namespaces: BTreeMap<String, usize>,
    /// All, until an audit; the number of restarts without a verdict.
    unverified: Option<usize>,
}

/// A restart that did not help.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    restarted_at: Timestamp,
    trigger: Trigger,
}

/// A restart whose rollout is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trial {
    failure: Failure,
    finished_at: Timestamp,
}

impl Brake {
    /// Takes the findings of an audit that began at this time.
    pub(super) fn audited(&mut self, findings: &[Finding], begun: Timestamp) {
        let environment = findings.first().map(|it| it.evidence.environment.clone());
        if let Some(environment) = environment
            && environment != self.environment
        {
            // Whether restarts help now is not known.
            self.cures.clear();
            self.environment = environment;
        }
        let found: BTreeMap<_, _> =
            findings.iter().map(|it| (it.workload.named(), &it.evidence)).collect();
        let same = |workload: &Workload, it: &Failure| {
            found.get(workload).filter(|found| found.cause == it.trigger.cause).copied()
        };
        self.failures.retain(|workload, it| same(workload, it).is_some());
        let trials = std::mem::take(&mut self.trials);
        for (workload, trial) in trials {
            let Trial { failure, finished_at } = &trial;
            if *finished_at >= begun {
                self.trials.insert(workload, trial);
            } else if !found.contains_key(&workload) {
                self.cured(&workload, failure.restarted_at);
            } else if same(&workload, failure).is_some_and(|it| failure.is_seen_by(it)) {
                self.failures.insert(workload, trial.failure);
            }
        }
    }

    /// The rollout of a restart is finished.
    pub(super) fn finished(&mut self, it: InFlight, finished_at: Timestamp) {
        let InFlight { workload, since, trigger: Some(trigger), .. } = it else { return };
        if !self.environment.is_empty() {
            let failure = Failure { restarted_at: since, trigger };
            self.trials.insert(workload.named(), Trial { failure, finished_at });
        }
    }

    /// The cluster shows that a restart did not help.
    pub(super) fn failed(
        &mut self,
        workload: &Workload,
        restarted_at: Timestamp,
        trigger: Trigger,
    ) {
        self.failures.insert(workload.named(), Failure { restarted_at, trigger });
    }

    /// A workload may be restarted again, or is not to be restarted.
    pub(super) fn forget(&mut self, workload: &Workload) {
        self.failures.remove(&workload.named());
    }

    /// When a workload was restarted, if an audit showed that it did not help, and each one since.
    pub(super) fn failure(&self, workload: &Workload, trigger: &Trigger) -> Option<Timestamp> {
        let failure = self.failures.get(&workload.named())?;
        (failure.trigger == *trigger).then_some(failure.restarted_at)
    }

    /// A workload whose restart did not help, for an event about all.
    pub(super) fn example(&self) -> Option<&Workload> {
        self.failures.iter().max_by_key(|(_, it)| it.restarted_at).map(|(workload, _)| workload)
    }

    /// What is stopped now.
    pub(super) fn stops(&self, in_flight: &[InFlight]) -> Stops {
        let mut namespaces = BTreeMap::<_, usize>::new();
        for (Workload { namespace, .. }, failure) in &self.failures {
            if failure.is_after(self.cures.get(namespace)) {
                *namespaces.entry(namespace.clone()).or_default() += 1;
            }
        }
        namespaces.retain(|_, count| *count >= MAX_WORKLOADS);
        let is_proven = self.environment.is_empty() || !self.cures.is_empty();
        let count = self.trials.len() + in_flight.iter().filter(|it| it.stuck.is_none()).count();
        let unverified = (!is_proven && count >= MAX_UNVERIFIED).then_some(count);
        Stops { all: self.stopped(in_flight), namespaces, unverified }
    }

    /// The namespaces of restarts that did not help, or do not finish, since one has helped; if they
    /// are so many that all restarts stop.
    pub(super) fn stopped(&self, in_flight: &[InFlight]) -> Option<String> {
        let stuck = in_flight.iter().filter(|it| it.stuck.is_some());
        let stuck = stuck.map(|it| &*it.workload.namespace);
        let cure = self.cures.values().max();
        let failed = self.failures.iter().filter(|(_, it)| it.is_after(cure));
        let failed = failed.map(|(workload, _)| &*workload.namespace);
        let all: BTreeSet<_> = failed.chain(stuck).collect();
        (all.len() >= MAX_NAMESPACES).then(|| all.into_iter().collect::<Vec<_>>().join(", "))
    }

    fn cured(&mut self, workload: &Workload, restarted_at: Timestamp) {
        let newest = self.cures.entry(workload.namespace.clone()).or_insert(restarted_at);
        *newest = restarted_at.max(*newest);
    }
}

impl Stops {
    /// Why no workload of a namespace is restarted, if so.
    pub(super) fn wait(&self, namespace: &str) -> Option<Wait> {
        if let Some(namespaces) = self.all.clone() {
            return Some(Wait::Stopped { namespaces });
        }
        if let Some(&count) = self.namespaces.get(namespace) {
            return Some(Wait::NamespaceStopped { count });
        }
        self.unverified.map(|count| Wait::Unverified { count })
    }
}

impl Failure {
    /// Whether the restart was after one that helped.
    fn is_after(&self, cure: Option<&Timestamp>) -> bool {
        cure.is_none_or(|cure| self.restarted_at > *cure)
    }

    /// Whether pods that were found are those that the restart created.
    fn is_seen_by(&self, found: &Evidence) -> bool {
        found.since().is_some_and(|since| since.duration_since(self.restarted_at) >= -CLOCK_STEP)
    }
}

#[cfg(test)]
mod tests;
