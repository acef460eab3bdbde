//! What the replicas report in their Leases, and what the leader makes of it.
//!
//! Whether a replica lives is measured by this process: from when it saw the Lease change last.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use injectd_cluster::digest::digest;
use injectd_profiles::template_plane::KnownTemplates;
use injectd_telemetry::recent_errors::TemplateErrors;
use injectd_templates::object::Identity;
use k8s_openapi::api::coordination::v1::Lease;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{
    text::plain,
    write::{Found, Write},
};

/// The label of the Leases of replicas, and its value.
pub(super) const REPLICA_LABEL: &str = "injectd.dev/replica-of";
pub(super) const REPLICA: &str = "templates";
/// The digest of the revisions that a replica serves.
pub(super) const DIGEST_ANNOTATION: &str = "injectd.dev/templates-digest";
/// The errors of templates in the last hour, as JSON: by the key of the template, count and field.
pub(super) const ERRORS_ANNOTATION: &str = "injectd.dev/templates-errors";

/// A Lease that does not change for this time is one of a replica that is gone.
// Four times the interval of renewals: a replica that misses three is busy rather than gone.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(40);
/// After this time it is removed.
// A replica that was killed cannot remove its own.
const REMOVAL: Duration = Duration::from_mins(5);
/// A replica whose digest is not known is taken for what it served before, for this time: it may have seen a
/// change earlier than this process.
const SETTLING: Duration = Duration::from_mins(1);
/// Number of digests that are remembered.
// Each edit of a template makes one. A replica that is further behind counts as unknown.
const DIGESTS: usize = 64;
/// Maximum number of templates with errors in a Lease.
pub(super) const MAX_REPORTED: usize = 100;
/// Maximum number of bytes of the annotation with errors, and of a field in it.
// Half of what Kubernetes allows for all annotations of an object.
const MAX_ERRORS: usize = 128 << 10;
const MAX_FIELD: usize = 256;

/// The hashes of the revisions that a replica serves, by their templates.
pub(super) type Served = BTreeMap<Identity, String>;

/// Errors of a template in the annotation.
#[derive(Debug, Serialize, Deserialize)]
struct Reported {
    count: u64,
    field: String,
}

/// The Leases of all replicas, as a leader has seen them.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    leases: BTreeMap<String, Seen>,
    digests: VecDeque<(String, Arc<Served>)>,
    is_read: bool,
}

/// A Lease of a replica.
#[derive(Debug)]
struct Seen {
    version: Found,
    /// When it was first seen as it is.
    since: Instant,
    digest: String,
    errors: Vec<TemplateErrors>,
    /// What the replica served when that was known last, and when that was.
    known: Option<(Arc<Served>, Instant)>,
}

/// A replica that lives.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    /// What it serves; `None` if that is not known.
    pub(super) served: Option<Arc<Served>>,
    /// Whether it has the digest of this process.
    pub(super) is_in_step: bool,
    pub(super) errors: Vec<TemplateErrors>,
}

impl Replicas {
    /// Takes note of what this process serves; whether it has changed.
    pub(super) fn note(&mut self, known: &KnownTemplates) -> bool {
        let served = served(known);
        let digest = digest_of(&served);
        if self.digests.back().is_some_and(|(last, _)| *last == digest) {
            return false;
        }
        self.digests.retain(|(other, _)| *other != digest);
        if self.digests.len() >= DIGESTS {
            self.digests.pop_front();
        }
        self.digests.push_back((digest, Arc::new(served)));
        true
    }

    /// Takes note of the Leases that were read.
    pub(super) fn see(&mut self, leases: &[Lease], now: Instant) {
        let mut seen = BTreeMap::new();
        for lease in leases {
            let version = Found::of(&lease.metadata);
            let before = self.leases.remove(&version.name);
            let is_same = before.as_ref().is_some_and(|before| before.version == version);
            // When they could not be read, they could not be written, either.
            let is_same = is_same && self.is_read;
            let since = before.as_ref().filter(|_| is_same).map_or(now, |before| before.since);
            let known = before.and_then(|before| before.known);
            let digest = plain(annotation(lease, DIGEST_ANNOTATION), MAX_FIELD);
            let errors = errors(annotation(lease, ERRORS_ANNOTATION));
            seen.insert(version.name.clone(), Seen { version, since, digest, errors, known });
        }
        self.leases = seen;
        self.is_read = true;
        self.resolve(now);
    }

    /// The Leases could not be read: which replicas live is not known.
    pub(super) fn lose(&mut self) {
        self.is_read = false;
    }

    /// Whether the Leases were read last time.
    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    /// The replicas that live.
    pub(super) fn live(&mut self, now: Instant) -> Vec<Replica> {
        self.resolve(now);
        let own = self.digests.back().map(|(digest, _)| digest.as_str());
        let lives = self.leases.values().filter(|seen| now < seen.since + LEASE_DURATION);
        let replica = |seen: &Seen| Replica {
            served: seen
                .known
                .as_ref()
                .filter(|(_, at)| now < *at + SETTLING)
                .map(|(served, _)| Arc::clone(served)),
            is_in_step: own == Some(&seen.digest),
            errors: seen.errors.clone(),
        };
        lives.map(replica).collect()
    }

    /// Removes the Leases of replicas that have been gone for some time.
    pub(super) fn removals(&self, now: Instant) -> Vec<Write> {
        let gone = self.leases.values().filter(|seen| now >= seen.since + REMOVAL);
        gone.map(|seen| Write::DeleteLease(seen.version.clone())).collect()
    }

    /// Looks up what the digests of replicas stand for.
    fn resolve(&mut self, now: Instant) {
        for seen in self.leases.values_mut() {
            let known = self.digests.iter().find(|(digest, _)| *digest == seen.digest);
            if let Some((_, served)) = known {
                seen.known = Some((Arc::clone(served), now));
            }
        }
    }
}

/// The hashes of the revisions that this process serves. Not of orphans: a replica that starts later does not
/// know them.
pub(super) fn served(known: &KnownTemplates) -> Served {
    let there = known.templates.iter().filter(|(_, template)| !template.is_orphan);
    let served = there.filter_map(|(identity, template)| {
        Some((identity.clone(), template.served.as_ref()?.hash.clone()))
    });
    served.collect()
}

/// A digest of what is served: replicas with the same digest serve the same revisions.
pub(super) fn digest_of(served: &Served) -> String {
    let lines = served.iter().map(|(identity, hash)| format!("{identity}={hash}"));
    let lines: Vec<_> = lines.collect();
    digest(lines.iter().map(String::as_str))
}

fn annotation<'l>(lease: &'l Lease, key: &str) -> &'l str {
    let annotations = lease.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(key)).map_or("", String::as_str)
}

/// The annotation with errors: those that come up most often, if there are too many.
pub(super) fn errors_text(mut errors: Vec<TemplateErrors>) -> String {
    errors.sort_by(|one, other| (other.count, &one.template).cmp(&(one.count, &other.template)));
    let reported = errors.into_iter().take(MAX_REPORTED).map(|errors| {
        let TemplateErrors { template, count, field } = errors;
        (template, Reported { count, field: plain(&field, MAX_FIELD) })
    });
    let reported: BTreeMap<_, _> = reported.collect();
    // A map with texts as keys is always JSON.
    serde_json::to_string(&reported).unwrap_or_default()
}

/// The errors in an annotation; none if it cannot be read.
fn errors(text: &str) -> Vec<TemplateErrors> {
    if text.len() > MAX_ERRORS {
        return Vec::new();
    }
    let reported: BTreeMap<String, Reported> = serde_json::from_str(text).unwrap_or_default();
    let errors = reported.into_iter().take(MAX_REPORTED).map(|(template, reported)| {
        let Reported { count, field } = reported;
        TemplateErrors { template, count, field: plain(&field, MAX_FIELD) }
    });
    errors.collect()
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;

    use super::*;

    fn lease(name: &str, version: u64, digest: &str) -> Lease {
        let annotations = [
            (DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
            (ERRORS_ANNOTATION.to_owned(), r#"{"a":{"count":3,"field":"spec.match"}}"#.to_owned()),
        ];
        Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                resource_version: Some(version.to_string()),
                annotations: Some(annotations.into()),
                ..ObjectMeta::default()
            },
            ..Lease::default()
        }
    }

    #[test]
    fn a_replica_is_gone_when_its_lease_does_not_change() {
        let (mut replicas, begin) = (Replicas::default(), Instant::now());
        assert!(!replicas.is_read());
        for second in 0..60 {
            let now = begin + Duration::from_secs(second);
            replicas.see(&[lease("a", second / 10, ""), lease("b", 0, "")], now);
            let live = replicas.live(now).len();
            assert_eq!(live, if second < 40 { 2 } else { 1 }, "{second} s");
        }
        let later = begin + REMOVAL;
        replicas.see(&[lease("a", 6, ""), lease("b", 0, "")], later);
        let removed = replicas.removals(later);
        assert_eq!(removed.iter().map(Write::object).collect::<Vec<_>>(), ["Lease b"]);
    }

    #[test]
    fn replicas_live_when_their_leases_are_read_again() {
        let (mut replicas, begin) = (Replicas::default(), Instant::now());
        replicas.see(&[lease("a", 1, "")], begin);
        replicas.lose();
        assert!(!replicas.is_read());
        let later = begin + REMOVAL;
        replicas.see(&[lease("a", 1, "")], later);
        assert!(replicas.is_read() && replicas.removals(later).is_empty());
        assert_eq!(replicas.live(later).len(), 1);
    }

    #[test]
    fn a_digest_that_is_not_known_counts_as_the_one_before_for_a_while() {
        let (mut replicas, begin) = (Replicas::default(), Instant::now());
        let known = KnownTemplates::default();
        replicas.note(&known);
        replicas.see(&[lease("a", 0, &digest_of(&served(&known)))], begin);
        assert!(replicas.live(begin)[0].is_in_step);
        let mut found = Vec::new();
        for second in [1, 59, 61] {
            let now = begin + Duration::from_secs(second);
            replicas.see(&[lease("a", second, "newer")], now);
            let replica = replicas.live(now).remove(0);
            assert!(!replica.is_in_step);
            found.push(replica.served.is_some());
        }
        assert_eq!(found, [true, true, false]);
    }

    #[test]
    fn errors_are_bounded_and_read_again() {
        let errors = (0..MAX_REPORTED as u64 + 50).map(|count| TemplateErrors {
            template: format!("{count:03}"),
            count,
            field: format!("spec\n{}", "x".repeat(10_000)),
        });
        let text = errors_text(errors.collect());
        assert!(text.len() < MAX_ERRORS, "{}", text.len());
        let read = super::errors(&text);
        assert_eq!(read.len(), MAX_REPORTED);
        assert!(read.iter().all(|errors| errors.count >= 50 && errors.field.starts_with("spec x")));
        for text in ["", "[]", "{\"a\":1}", &"[".repeat(MAX_ERRORS + 1)] {
            assert_eq!(super::errors(text), []);
        }
    }
}
