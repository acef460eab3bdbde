//! The findings of many pods, by workload.

use std::{cmp::Reverse, collections::BTreeMap, fmt, io};

use injectd_k8s::workload::Workload;
use injectd_webhooks::injectors::Product;
use serde::Serialize;

use super::{Audited, Finding, Judgement, audit_log::FailedOpen, restart_command};
use crate::restart::{Evidence, MAX_REPLICA_SETS, ReplicaSet, Seen};

mod tainted;

use tainted::Tainted;
pub use tainted::TaintedRow;

/// Most workloads that a summary has; the pods of others are only counted.
// Kubernetes is tested with 150,000 pods in a cluster, and most workloads have several.
pub const MAX_WORKLOADS: usize = 100_000;
/// Most `ReplicaSet`s that pods of a finding claim of which the pods are counted. The
/// [`MAX_REPLICA_SETS`] with the most pods are kept.
const MAX_CLAIMS: usize = 16;
/// Most reasons why pods cannot be judged.
// A reason may quote its pod, so that each pod has a reason of its own.
const MAX_UNKNOWN: usize = 10;
/// Most pods of a finding whose names are kept.
pub const MAX_NAMED: usize = 5;

/// The findings of an audit.
#[derive(Debug, Default)]
pub struct Summary {
    counts: Counts,
    /// Pods of each workload.
    totals: BTreeMap<Workload, Total>,
    /// Whether some workloads are not in `totals`.
    is_cut: bool,
    findings: BTreeMap<(Workload, Finding), Group>,
    unknown: BTreeMap<String, u64>,
    without_webhook: BTreeMap<Product, u64>,
    not_called: BTreeMap<Product, u64>,
    tainted: Tainted,
    failed_open: Vec<FailedOpen>,
    not_read: Vec<String>,
    follower: Option<Follower>,
}

/// Gets each verdict, until it fails.
struct Follower {
    tell: Box<dyn FnMut(Verdict<'_>) -> io::Result<()> + Send>,
    failed: io::Result<()>,
}

/// The judgement on one pod.
#[derive(Debug, Clone, Copy)]
pub struct Verdict<'p> {
    /// The pod.
    pub pod: &'p Audited,
    /// The field of [`Counts`] that has the pod.
    pub judgement: &'static str,
    /// What is wrong, if something is.
    pub finding: Option<Finding>,
    /// Why; empty for pods that are as they should be.
    pub reason: &'p str,
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
    /// With values that change other fields than their own, whatever the judgement.
    pub tainted: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    pods: u64,
    seen: Seen,
}

#[derive(Debug)]
struct Group {
    pods: u64,
    names: Vec<String>,
    reason: String,
    restart_cures: bool,
    /// Without `ReplicaSet`s.
    evidence: Evidence,
    claims: Claims,
}

/// `ReplicaSet`s that pods claim, with a number of pods: at least that of those that claim it.
#[derive(Debug, Default)]
struct Claims(BTreeMap<ReplicaSet, u64>);

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
    /// The names of the first of them, at most [`MAX_NAMED`].
    pub pod_names: Vec<String>,
    /// All pods of the workload.
    pub total: u64,
    /// Why, of the first pod.
    pub reason: String,
    /// What to do.
    pub remedy: String,
    /// Whether new pods would be as they should be.
    pub restart_cures: bool,
    /// What a restart must know.
    #[serde(flatten)]
    pub evidence: Evidence,
}

impl Counts {
    /// Counts a judgement; returns the name of the field that has it.
    fn add(&mut self, judgement: &Judgement) -> &'static str {
        self.total += 1;
        let (name, count) = match judgement {
            Judgement::Meshed | Judgement::NotCompared | Judgement::Unserved { .. } => {
                ("meshed", &mut self.meshed)
            }
            Judgement::Unmeshed => ("unmeshed", &mut self.unmeshed),
            Judgement::Ended => ("ended", &mut self.ended),
            Judgement::Static => ("static", &mut self.r#static),
            Judgement::Unknown(_) => ("unknown", &mut self.unknown),
            Judgement::Wrong(Finding::Missing, _) | Judgement::Uncalled { .. } => {
                ("missing", &mut self.missing)
            }
            Judgement::Wrong(Finding::Outdated, _) => ("outdated", &mut self.outdated),
            Judgement::Wrong(Finding::Unexpected, _) => ("unexpected", &mut self.unexpected),
        };
        *count += 1;
        name
    }
}

impl Summary {
    /// Adds the judgement on a pod, with what a restart must know of it.
    pub fn add(&mut self, pod: Audited, judgement: Judgement, evidence: Evidence) {
        let name = self.counts.add(&judgement);
        self.tell(&pod, name, &judgement);
        self.tainted.add(&pod);
        let Audited { name, workload, created, replica_set, .. } = pod;
        if judgement == Judgement::Ended {
            return;
        }
        if let Judgement::Unknown(reason) = &judgement
            && (self.unknown.len() < MAX_UNKNOWN || self.unknown.contains_key(reason))
        {
            *self.unknown.entry(reason.clone()).or_default() += 1;
        }
        match &judgement {
            Judgement::Unserved { product, has_webhook: false }
            | Judgement::Uncalled { product, has_webhook: false, .. } => {
                *self.without_webhook.entry(*product).or_default() += 1;
            }
            Judgement::Unserved { product, .. } => {
                *self.not_called.entry(*product).or_default() += 1;
            }
            _ => {}
        }
        // A workload has one entry, whatever its pods say.
        let is_known = self.totals.contains_key(&workload);
        if !is_known && self.totals.len() >= MAX_WORKLOADS {
            self.is_cut = true;
            return;
        }
        let total = self.totals.entry(workload.clone()).or_default();
        total.pods += 1;
        total.seen = total.seen.and(Seen {
            is_meshed: judgement == Judgement::Meshed,
            is_unknown: matches!(
                judgement,
                Judgement::Unknown(_) | Judgement::NotCompared | Judgement::Unserved { .. }
            ),
        });
        let wrong = match judgement {
            Judgement::Wrong(finding, reason) => Some((finding, reason, true)),
            Judgement::Uncalled { reason, .. } => Some((Finding::Missing, reason, false)),
            _ => None,
        };
        if let Some((finding, reason, restart_cures)) = wrong {
            let group = self.findings.entry((workload, finding)).or_insert_with(|| {
                let evidence = Evidence { since: created.clone(), ..evidence };
                let (names, claims) = (Vec::new(), Claims::default());
                Group { pods: 0, names, reason, restart_cures, evidence, claims }
            });
            group.pods += 1;
            group.restart_cures &= restart_cures;
            if group.names.len() < MAX_NAMED {
                group.names.push(name);
            }
            // RFC 3339 times in UTC compare as texts.
            if created < group.evidence.since {
                group.evidence.since = created;
            }
            if let Some(claimed) = replica_set {
                group.claims.add(claimed);
            }
        }
    }

    /// Adds a pod that was let in while a webhook failed.
    pub fn add_failed_open(&mut self, found: FailedOpen) {
        self.failed_open.push(found);
    }

    /// Notes what could not be read, once.
    pub fn add_not_read(&mut self, problem: String) {
        if !self.not_read.contains(&problem) {
            self.not_read.push(problem);
        }
    }

    /// Tells each further verdict, until that fails.
    pub fn follow(&mut self, tell: impl FnMut(Verdict<'_>) -> io::Result<()> + Send + 'static) {
        self.follower = Some(Follower { tell: Box::new(tell), failed: Ok(()) });
    }

    /// Whether it got all verdicts.
    ///
    /// # Errors
    /// The error of the first one that was not.
    pub fn followed(&mut self) -> io::Result<()> {
        let follower = self.follower.as_mut();
        follower.map_or(Ok(()), |follower| std::mem::replace(&mut follower.failed, Ok(())))
    }

    fn tell(&mut self, pod: &Audited, judgement: &'static str, of: &Judgement) {
        let Some(Follower { tell, failed }) = &mut self.follower else { return };
        let (finding, reason) = match of {
            Judgement::Wrong(finding, reason) => (Some(*finding), &**reason),
            Judgement::Uncalled { reason, .. } => (Some(Finding::Missing), &**reason),
            Judgement::Unserved { .. } => (None, "no webhook would be called for a new pod"),
            Judgement::Unknown(reason) => (None, &**reason),
            _ => (None, ""),
        };
        if failed.is_ok() {
            *failed = tell(Verdict { pod, judgement, finding, reason });
        }
    }

    /// Pods by judgement.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { tainted: self.tainted.pods(), ..self.counts }
    }

    /// Why pods cannot be judged, and how many.
    pub fn unknown(&self) -> impl Iterator<Item = (&str, u64)> {
        self.unknown.iter().map(|(reason, count)| (reason.as_str(), *count))
    }

    /// Meshes without a webhook, with the pods that have their sidecar or ask for it.
    #[must_use]
    pub fn without_webhook(&self) -> &BTreeMap<Product, u64> {
        &self.without_webhook
    }

    /// Meshes whose webhooks would not be called for new pods, with the pods that have their sidecar.
    #[must_use]
    pub fn not_called(&self) -> &BTreeMap<Product, u64> {
        &self.not_called
    }

    /// Workloads whose pods have values that change other fields than their own.
    pub fn tainted(&self) -> impl Iterator<Item = TaintedRow> {
        self.tainted.rows()
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
            pod_names: group.names.clone(),
            total: self.totals.get(workload).map_or(group.pods, |total| total.pods),
            reason: group.reason.clone(),
            evidence: Evidence { replica_sets: group.claims.most(), ..group.evidence.clone() },
            restart_cures: group.restart_cures,
            remedy: match finding {
                _ if !group.restart_cures => {
                    "let the webhook be called for its pods first: see injectd explain".to_owned()
                }
                Finding::Missing | Finding::Outdated => restart_command(workload),
                Finding::Unexpected => format!(
                    "{}, if the sidecar should go; else see injectd explain",
                    restart_command(workload)
                ),
            },
        })
    }

    /// The pods of some workloads.
    pub fn total(&self, is_one: impl Fn(&Workload) -> bool) -> u64 {
        let totals = self.totals.iter().filter(|(workload, _)| is_one(workload));
        totals.map(|(_, total)| total.pods).sum()
    }

    /// All workloads, without their uids, and whether some are left out.
    #[must_use]
    pub fn into_seen(self) -> (BTreeMap<Workload, Seen>, bool) {
        let mut all = BTreeMap::<_, Seen>::new();
        for (workload, Total { seen, .. }) in self.totals {
            let known = all.entry(workload.named()).or_default();
            *known = known.and(seen);
        }
        (all, self.is_cut)
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("failed", &self.failed).finish_non_exhaustive()
    }
}

impl Claims {
    /// Counts a pod. If there is no room, the one with the fewest pods gives its place and its number
    /// away: what more than one in [`MAX_CLAIMS`] of the pods claim is in the list.
    fn add(&mut self, claimed: ReplicaSet) {
        let mut count = 0;
        if self.0.len() >= MAX_CLAIMS && !self.0.contains_key(&claimed) {
            let fewest = self.0.iter().min_by_key(|(_, count)| **count);
            if let Some(fewest) = fewest.map(|(it, _)| it.clone()) {
                // The new one inherits the count (the algorithm Space-Saving): forged names that
                // come once each cannot displace one that many pods have.
                count = self.0.remove(&fewest).unwrap_or_default();
            }
        }
        *self.0.entry(claimed).or_insert(count) += 1;
    }

    /// Those that the most pods claim.
    fn most(&self) -> Vec<ReplicaSet> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, count)| Reverse(**count));
        all.into_iter().take(MAX_REPLICA_SETS).map(|(it, _)| it.clone()).collect()
    }
}
