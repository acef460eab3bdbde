//! Which restarts helped, and which did not: stops restarts that do not help. Pure: it is given what
//! audits and the cluster show.
//!
//! That a workload is not restarted twice for the same is read from the workload (`plan.rs`). This is
//! about the others: if restarts do not help, their cause is elsewhere, such as a webhook that API
//! servers cannot reach, and further ones disturb workloads for nothing.
//!
//! A namespace stops the restarts of others only together with [`MAX_NAMESPACES`] - 1 others, and until
//! a restart elsewhere helps. A tenant with as many namespaces can stop them: nothing shows whose a
//! namespace is.

use std::collections::{BTreeMap, BTreeSet};

use injectd_core::text::first_names;
use injectd_k8s::workload::Workload;
use jiff::Timestamp;

use super::{
    decision::Wait,
    finding::{Audit, Evidence, Trigger},
    plan::{InFlight, PAUSE},
};

/// After restarts that did not help in as many namespaces all restarts stop: a fault of one namespace
/// does not show in others.
pub const MAX_NAMESPACES: usize = 3;
/// After as many restarts of a namespace that did not help its restarts stop.
// One workload may have a reason of its own. Three in a row have one in common.
pub const MAX_WORKLOADS: usize = 3;
/// As many restarts may have no verdict of an audit yet, until one of them has helped.
// As many as [`MAX_WORKLOADS`]: before the first verdict no more are disturbed than after bad ones.
pub const MAX_UNVERIFIED: usize = 3;
/// Namespaces that a text names, so that the line of a log stays short.
const MAX_NAMED: usize = 10;

/// Restarts that helped, and that did not.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// The environment of the last audit; empty if nothing audits.
    environment: String,
    /// Workloads whose last restart did not help. Keys have no uid.
    failures: BTreeMap<Workload, Failure>,
    /// Restarts whose rollout is finished, without a verdict. Keys have no uid.
    unverified: BTreeMap<Workload, Unverified>,
    /// The newest restart that helped in this environment, of each namespace.
    successes: BTreeMap<String, Timestamp>,
}

/// What is stopped.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// All restarts.
    all: Option<Stopped>,
    /// Namespaces, with the number of their restarts that did not help.
    namespaces: BTreeMap<String, usize>,
    /// All, until an audit; the number of restarts without a verdict.
    unverified: Option<usize>,
}

/// Why all restarts are stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stopped {
    /// The newest of the workloads whose restart did not help or does not finish.
    pub(super) example: Workload,
    /// Their namespaces, in words.
    pub(super) namespaces: String,
}

/// A restart that did not help.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    restarted_at: Timestamp,
    trigger: Trigger,
}

/// A restart whose rollout is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unverified {
    restart: Failure,
    finished_at: Timestamp,
}

/// What an audit says about a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Helped,
    DidNotHelp,
    /// A later audit may say it.
    Open,
    /// No audit will say it: the pods are gone, or are found for another cause.
    Never,
}

/// What an audit found, by workloads without uid.
struct Found<'a> {
    audit: &'a Audit,
    /// A workload may have several findings.
    evidence: BTreeMap<Workload, Vec<&'a Evidence>>,
}

// === impl Outcomes ===

impl Outcomes {
    /// Takes what an audit saw.
    pub(super) fn audited(&mut self, audit: &Audit) {
        if !audit.environment.is_empty() && audit.environment != self.environment {
            // Whether restarts help now is not known.
            self.successes.clear();
            self.environment.clone_from(&audit.environment);
        }
        let found = Found::new(audit);
        self.failures.retain(|workload, it| found.keeps(workload, it));
        for (workload, it) in std::mem::take(&mut self.unverified) {
            match found.verdict(&workload, &it) {
                Verdict::Helped => self.helped(&workload, it.restart.restarted_at),
                Verdict::DidNotHelp => drop(self.failures.insert(workload, it.restart)),
                Verdict::Open => drop(self.unverified.insert(workload, it)),
                Verdict::Never => {}
            }
        }
    }

    /// The rollout of a restart is finished.
    pub(super) fn finished(&mut self, it: InFlight, finished_at: Timestamp) {
        let InFlight { workload, since, trigger: Some(trigger), .. } = it else { return };
        if !self.environment.is_empty() {
            let restart = Failure { restarted_at: since, trigger };
            self.unverified.insert(workload.named(), Unverified { restart, finished_at });
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

    /// What is stopped now.
    pub(super) fn stops(&self, in_flight: &[InFlight]) -> Stops {
        let mut namespaces = BTreeMap::<_, usize>::new();
        for (Workload { namespace, .. }, failure) in &self.failures {
            if is_after(failure.restarted_at, self.successes.get(namespace)) {
                *namespaces.entry(namespace.clone()).or_default() += 1;
            }
        }
        namespaces.retain(|_, count| *count >= MAX_WORKLOADS);
        let is_proven = self.environment.is_empty() || !self.successes.is_empty();
        let rolling_out = in_flight.iter().filter(|restart| restart.stuck.is_none()).count();
        let count = self.unverified.len() + rolling_out;
        let unverified = (!is_proven && count >= MAX_UNVERIFIED).then_some(count);
        Stops { all: self.stopped(in_flight), namespaces, unverified }
    }

    /// Whether all restarts stop: in several namespaces they did not help, or do not finish, since one
    /// has helped.
    pub(super) fn stopped(&self, in_flight: &[InFlight]) -> Option<Stopped> {
        let success = self.successes.values().max();
        let stuck =
            in_flight.iter().filter(|restart| restart.stuck.is_some() && !restart.is_paused);
        let stuck = stuck.map(|restart| (restart.since, &restart.workload));
        let failed = self.failures.iter().map(|(workload, it)| (it.restarted_at, workload));
        let counted: Vec<_> =
            failed.chain(stuck).filter(|(at, _)| is_after(*at, success)).collect();
        let namespaces: BTreeSet<_> = counted.iter().map(|(_, it)| &*it.namespace).collect();
        let (_, example) = counted.iter().max()?;
        (namespaces.len() >= MAX_NAMESPACES).then(|| {
            let named = first_names(namespaces.iter().copied(), namespaces.len(), MAX_NAMED);
            Stopped { example: (*example).clone(), namespaces: named }
        })
    }

    fn helped(&mut self, workload: &Workload, restarted_at: Timestamp) {
        let newest = self.successes.entry(workload.namespace.clone()).or_insert(restarted_at);
        *newest = restarted_at.max(*newest);
    }
}

/// Whether a restart was after one that helped.
fn is_after(restarted_at: Timestamp, success: Option<&Timestamp>) -> bool {
    success.is_none_or(|success| restarted_at > *success)
}

// === impl Found ===

impl<'a> Found<'a> {
    fn new(audit: &'a Audit) -> Self {
        let mut evidence = BTreeMap::<_, Vec<_>>::new();
        for it in &audit.findings {
            evidence.entry(it.workload.named()).or_default().push(&it.evidence);
        }
        Self { audit, evidence }
    }

    fn of(&self, workload: &Workload) -> &[&'a Evidence] {
        self.evidence.get(workload).map_or(&[], Vec::as_slice)
    }

    /// Whether a restart that did not help still counts.
    fn keeps(&self, workload: &Workload, failure: &Failure) -> bool {
        match self.of(workload) {
            [] => self.audit.seen(workload).is_unknown,
            found => found.iter().any(|evidence| evidence.cause == failure.trigger.cause),
        }
    }

    fn verdict(&self, workload: &Workload, it: &Unverified) -> Verdict {
        let Unverified { restart, finished_at } = it;
        if *finished_at >= self.audit.begun {
            return Verdict::Open;
        }
        let seen = self.audit.seen(workload);
        match self.of(workload) {
            [] if seen.is_unknown => {
                // Pods that can never be judged must not hold up all restarts for ever.
                let is_new = self.audit.begun.duration_since(*finished_at) < PAUSE;
                if is_new { Verdict::Open } else { Verdict::Never }
            }
            [] if seen.is_meshed => Verdict::Helped,
            found if found.iter().any(|evidence| restart.is_seen_by(evidence, *finished_at)) => {
                Verdict::DidNotHelp
            }
            _ => Verdict::Never,
        }
    }
}

// === impl Failure ===

impl Failure {
    /// Whether the pods that were found are those of this restart, for the same cause.
    fn is_seen_by(&self, found: &Evidence, finished_at: Timestamp) -> bool {
        found.cause == self.trigger.cause && found.is_of_rollout(finished_at)
    }
}

// === impl Stops ===

impl Stops {
    /// Why no workload of a namespace is restarted, if so.
    pub(super) fn wait(&self, namespace: &str) -> Option<Wait> {
        if let Some(Stopped { namespaces, .. }) = self.all.clone() {
            return Some(Wait::Stopped { namespaces });
        }
        if let Some(&count) = self.namespaces.get(namespace) {
            return Some(Wait::NamespaceStopped { count });
        }
        self.unverified.map(|count| Wait::Unverified { count })
    }
}

#[cfg(test)]
mod tests;
