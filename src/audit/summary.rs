//! The findings of many pods, by workload.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Audited, Finding, Judgement, Workload, audit_log::FailedOpen, restart_command};
use crate::restart::{Evidence, MAX_REPLICA_SETS, ReplicaSet};

/// Most workloads that a summary has; the pods of others are only counted.
pub const MAX_WORKLOADS: usize = 100_000;
/// Most reasons why pods cannot be judged.
const MAX_UNKNOWN: usize = 10;

/// The findings of an audit.
#[derive(Debug, Default)]
pub struct Summary {
    counts: Counts,
    /// Pods of each workload.
    totals: BTreeMap<Workload, u64>,
    findings: BTreeMap<(Workload, Finding), Group>,
    unknown: BTreeMap<String, u64>,
    failed_open: Vec<FailedOpen>,
    not_read: Vec<String>,
}

/// Pods by judgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All pods.
    pub total: u64,
    /// With the sidecar that they should have.
    pub meshed: u64,
    /// Without a sidecar, as they should be.
    pub unmeshed: u64,
    /// Ended, or being deleted.
    pub ended: u64,
    /// Run by a node without admission.
    pub r#static: u64,
    /// Without the sidecar that they should have.
    pub missing: u64,
    /// With an outdated sidecar.
    pub outdated: u64,
    /// With a sidecar that they should not have.
    pub unexpected: u64,
    /// That cannot be judged.
    pub unknown: u64,
}

#[derive(Debug)]
struct Group {
    pods: u64,
    reason: String,
    evidence: Evidence,
}

/// A finding about a workload.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// What is wrong.
    pub finding: Finding,
    /// Pods with this finding.
    pub pods: u64,
    /// All pods of the workload.
    pub total: u64,
    /// Why, of the first pod.
    pub reason: String,
    /// What to do.
    pub remedy: String,
    /// What a restart must know.
    #[serde(flatten)]
    pub evidence: Evidence,
}

impl Summary {
    /// Adds the judgement on a pod, with digests of the environment and of what is wrong.
    pub fn add(
        &mut self,
        pod: Audited,
        judgement: Judgement,
        (environment, cause): (&str, String),
    ) {
        let Audited { workload, created, replica_set } = pod;
        let counts = &mut self.counts;
        counts.total += 1;
        let count = match &judgement {
            Judgement::Meshed => &mut counts.meshed,
            Judgement::Unmeshed => &mut counts.unmeshed,
            Judgement::Ended => &mut counts.ended,
            Judgement::Static => &mut counts.r#static,
            Judgement::Unknown(_) => &mut counts.unknown,
            Judgement::Wrong(Finding::Missing, _) => &mut counts.missing,
            Judgement::Wrong(Finding::Outdated, _) => &mut counts.outdated,
            Judgement::Wrong(Finding::Unexpected, _) => &mut counts.unexpected,
        };
        *count += 1;
        if judgement == Judgement::Ended {
            return;
        }
        if let Judgement::Unknown(reason) = &judgement
            && (self.unknown.len() < MAX_UNKNOWN || self.unknown.contains_key(reason))
        {
            *self.unknown.entry(reason.clone()).or_default() += 1;
        }
        // A workload has one entry, whatever its pods say.
        let is_known = self.totals.contains_key(&workload);
        if !is_known && self.totals.len() >= MAX_WORKLOADS {
            return;
        }
        *self.totals.entry(workload.clone()).or_default() += 1;
        if let Judgement::Wrong(finding, reason) = judgement {
            let group = self.findings.entry((workload, finding)).or_insert_with(|| {
                let environment = environment.to_owned();
                let since = created.clone();
                let evidence = Evidence { environment, cause, since, ..Evidence::default() };
                Group { pods: 0, reason, evidence }
            });
            group.pods += 1;
            let Evidence { since, replica_sets, .. } = &mut group.evidence;
            // RFC 3339 times in UTC compare as texts.
            if created < *since {
                *since = created;
            }
            let is_new = |it: &ReplicaSet| !replica_sets.contains(it);
            let has_room = replica_sets.len() < MAX_REPLICA_SETS;
            let new = replica_set.filter(|it| has_room && is_new(it));
            replica_sets.extend(new);
        }
    }

    /// Adds a pod that was let in while a webhook failed.
    pub fn add_failed_open(&mut self, found: FailedOpen) {
        self.failed_open.push(found);
    }

    /// Notes what could not be read.
    pub fn add_not_read(&mut self, problem: String) {
        self.not_read.push(problem);
    }

    /// Pods by judgement.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Why pods cannot be judged, and how many.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        self.unknown.iter().map(|(reason, count)| (reason.as_str(), *count))
    }

    /// Pods that were let in while a webhook failed.
    #[must_use]
    pub fn failed_open(&self) -> &[FailedOpen] {
        &self.failed_open
    }

    /// What could not be read.
    #[must_use]
    pub fn not_read(&self) -> &[String] {
        &self.not_read
    }

    /// The findings, by workload.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.findings.iter().map(|((workload, finding), group)| Row {
            workload: workload.clone(),
            finding: *finding,
            pods: group.pods,
            total: self.totals.get(workload).copied().unwrap_or(group.pods),
            reason: group.reason.clone(),
            evidence: group.evidence.clone(),
            remedy: match finding {
                Finding::Missing | Finding::Outdated => restart_command(workload),
                Finding::Unexpected => format!(
                    "{}, if the sidecar should go; else see injectd explain",
                    restart_command(workload)
                ),
            },
        })
    }
}
