//! What a leader has read, and when it reads again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use injectd_profiles::template_plane::KnownTemplates;
use tokio::{task::JoinHandle, time::Instant};

use super::super::{
    findings::Findings,
    pods::PodCounts,
    replicas::{Replica, Replicas},
    revisions::{kind_of, orphans},
    rim::RequestError,
};

/// Time between two reads of the Leases, and while a replica serves something else.
const LEASES: Duration = Duration::from_secs(10);
// While an edit spreads, the person who made it may look at its status.
const LEASES_UNSETTLED: Duration = Duration::from_secs(2);
/// Time between two counts of pods, and after one that failed.
// A count reads all pods of the cluster that have a mark.
const COUNTS: Duration = Duration::from_mins(5);
/// Revisions of a template that is gone are kept for this time.
// When a CustomResourceDefinition is removed, its templates go first.
const GONE: Duration = Duration::from_mins(10);

/// What a leader knows besides the templates.
#[derive(Debug, Default)]
pub(super) struct Leader {
    pub(super) replicas: Replicas,
    /// When the Leases are read again; `None`: now.
    leases_at: Option<Instant>,
    pub(super) counts: Option<Arc<PodCounts>>,
    counts_at: Option<Instant>,
    pub(super) counting: Option<Counting>,
    /// What was found, and the digest of the templates.
    findings: Option<(String, Arc<Findings>)>,
    /// Since when templates are gone, by uid.
    gone_since: BTreeMap<String, Instant>,
}

/// A count of pods that is on its way.
#[derive(Debug)]
pub(super) struct Counting(pub(super) JoinHandle<Result<PodCounts, RequestError>>);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Leader {
    /// Whether the Leases are to be read.
    pub(super) fn reads_leases(&self, now: Instant) -> bool {
        self.leases_at.is_none_or(|at| at <= now)
    }

    /// The Leases were read, or could not be read.
    pub(super) fn has_read_leases(&mut self, now: Instant) {
        let replicas = self.replicas.live(now);
        let is_settled = replicas.iter().all(|replica: &Replica| replica.is_in_step);
        self.leases_at = Some(now + if is_settled { LEASES } else { LEASES_UNSETTLED });
    }

    /// Takes note of templates. Their Leases are read soon if what is served has changed.
    pub(super) fn note(&mut self, known: &KnownTemplates, now: Instant) {
        if self.replicas.note(known) {
            self.leases_at = self.leases_at.map(|at| at.min(now + LEASES_UNSETTLED));
        }
        let orphans: BTreeSet<_> = orphans(known).collect();
        self.gone_since.retain(|uid, _| orphans.contains(uid.as_str()));
        for uid in orphans {
            self.gone_since.entry(uid.to_owned()).or_insert(now);
        }
    }

    /// Whether pods are to be counted.
    pub(super) fn counts_pods(&self, now: Instant) -> bool {
        self.counting.is_none() && self.counts_at.is_none_or(|at| at <= now)
    }

    /// A count of pods begins.
    pub(super) fn begin_count(&mut self, counting: Counting, now: Instant) {
        self.counting = Some(counting);
        self.counts_at = Some(now + COUNTS);
    }

    /// What was found about these templates before.
    pub(super) fn found(&self, digest: &str) -> Option<Arc<Findings>> {
        let (of, findings) = self.findings.as_ref()?;
        (of == digest).then(|| Arc::clone(findings))
    }

    /// Remembers what was found.
    pub(super) fn keep_findings(&mut self, digest: String, findings: Arc<Findings>) {
        self.findings = Some((digest, findings));
    }

    /// The templates that have been gone for long, by uid.
    pub(super) fn long_gone(&self, now: Instant) -> BTreeSet<String> {
        let gone = self.gone_since.iter().filter(|(_, since)| now >= **since + GONE);
        gone.map(|(uid, _)| uid.clone()).collect()
    }

    /// When something is due next.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let gone = self.gone_since.values().map(|since| *since + GONE).filter(|at| *at > now);
        let reads = [self.leases_at, self.counts_at].into_iter().flatten();
        reads.chain(gone).fold(now + COUNTS, Instant::min)
    }
}

/// Of the templates that are gone, those of a kind that is there: with a `CustomResourceDefinition`, templates
/// go that may come back.
pub(super) fn of_kinds(
    known: &KnownTemplates,
    gone: BTreeSet<String>,
    kinds: &BTreeSet<String>,
) -> BTreeSet<String> {
    gone.into_iter()
        .filter(|uid| kind_of(known, uid).is_some_and(|kind| kinds.contains(kind)))
        .collect()
}
