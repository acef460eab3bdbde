//! The Lease of one replica: it says what the replica serves, and which errors it met.

use std::{sync::Arc, time::Duration};

use injectd_cluster::{causes::with_causes, digest::digest};
use injectd_profiles::template_plane::KnownTemplates;
use injectd_telemetry::recent_errors::RecentErrors;
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference},
};
use kube::api::ObjectMeta;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    metrics::{KeeperMetrics, Stage},
    replicas::{
        DIGEST_ANNOTATION, ERRORS_ANNOTATION, LEASE_DURATION, REPLICA, REPLICA_LABEL, digest_of,
        errors_text, served,
    },
    report::Reporter,
    rim::Rim,
};

/// Time between two writes of a Lease that does not change.
const RENEWAL: Duration = Duration::from_secs(10);
/// Time between two writes, however often it changes.
// Templates that are applied together come one by one, and each changes what is served.
const PAUSE: Duration = Duration::from_millis(500);
/// Time after which a write that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long the removal of the Lease may take at the end.
// A process that ends needs its grace period for reviews.
const END: Duration = Duration::from_secs(2);
/// Maximum number of characters of the name of a Lease.
// An API server takes no longer name.
const MAX_NAME: usize = 253;
/// Hexadecimal digits that stand for a name that is not part of another one as it is.
const NAME_DIGITS: usize = 8;
/// What the names of the Leases of replicas begin with.
const PREFIX: &str = "injectd-templates-";

/// What a replica reports.
pub(super) struct Reported {
    pub(super) rim: Arc<dyn Rim>,
    pub(super) namespace: String,
    /// The name of the pod, or another one that no other process has.
    pub(super) replica: String,
    /// The uid of the pod, if it is known.
    pub(super) pod_uid: Option<String>,
    pub(super) known: watch::Receiver<Arc<KnownTemplates>>,
    pub(super) errors: Arc<RecentErrors>,
    pub(super) metrics: KeeperMetrics,
}

impl Reported {
    /// Writes the Lease at intervals, and when what is served changes.
    pub(super) async fn keep(&mut self) {
        let mut reporter = Reporter::default();
        let mut is_open = true;
        let mut digest = String::new();
        loop {
            let known = Arc::clone(&self.known.borrow_and_update());
            // Until the templates are known, a replica serves what it was given before.
            let mut next = Instant::now() + RENEWAL;
            if known.is_listed {
                digest = digest_of(&served(&known));
                let lease = self.lease(&digest);
                let written = self.rim.write_lease(&lease).await;
                self.metrics.done(Stage::WriteLease, written.is_ok());
                match written {
                    Ok(()) => reporter.worked("write the Lease of this replica"),
                    Err(error) => {
                        reporter.failed("write the Lease of this replica", &with_causes(&error));
                        next = Instant::now() + RETRY;
                    }
                }
            }
            sleep(PAUSE).await;
            while is_open {
                tokio::select! {
                    changed = self.known.changed() => {
                        is_open = changed.is_ok();
                        let known = self.known.borrow_and_update();
                        if known.is_listed && digest_of(&served(&known)) != digest {
                            break;
                        }
                    }
                    () = sleep_until(next) => break,
                }
            }
            if !is_open {
                sleep_until(next).await;
            }
        }
    }

    /// Removes the Lease: the replica serves no longer.
    pub(super) async fn end(&self) {
        let name = lease_name(&self.replica);
        // It expires otherwise.
        drop(timeout(END, self.rim.remove_lease(&name)).await);
    }

    fn lease(&self, digest: &str) -> Lease {
        let annotations = [
            (DIGEST_ANNOTATION.to_owned(), digest.to_owned()),
            (ERRORS_ANNOTATION.to_owned(), errors_text(self.errors.last_hour())),
        ];
        let now: Timestamp = self.rim.now();
        let owner = self.pod_uid.as_ref().map(|pod_uid| OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: self.replica.clone(),
            uid: pod_uid.clone(),
            ..OwnerReference::default()
        });
        Lease {
            metadata: ObjectMeta {
                name: Some(lease_name(&self.replica)),
                namespace: Some(self.namespace.clone()),
                labels: Some([(REPLICA_LABEL.to_owned(), REPLICA.to_owned())].into()),
                annotations: Some(annotations.into()),
                owner_references: owner.map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.replica.clone()),
                lease_duration_seconds: LEASE_DURATION.as_secs().try_into().ok(),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        }
    }
}

/// The name of the Lease of a replica.
fn lease_name(replica: &str) -> String {
    let plain = |char: char| match char.to_ascii_lowercase() {
        char @ ('a'..='z' | '0'..='9' | '-') => char,
        _ => '-',
    };
    let mut name = PREFIX.to_owned();
    name.extend(replica.chars().map(plain));
    if name.len() > MAX_NAME || name[PREFIX.len()..] != *replica || name.ends_with('-') {
        name.truncate(MAX_NAME - NAME_DIGITS - 1);
        name.push('-');
        name.push_str(&digest([replica])[..NAME_DIGITS]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_replica_has_a_lease_of_its_own() {
        assert_eq!(lease_name("injectd-7d9f-x2x"), "injectd-templates-injectd-7d9f-x2x");
        let of = ["injectd-a_1", "injectd-a-1", "injectd.a_1", "Injectd-a-1", "", "-"];
        let long = ["x".repeat(300), format!("{}y", "x".repeat(300))];
        let names: std::collections::BTreeSet<_> = of
            .iter()
            .map(|text| lease_name(text))
            .chain(long.iter().map(|text| lease_name(text)))
            .collect();
        assert_eq!(names.len(), 8);
        for name in names {
            assert!(name.len() <= MAX_NAME && name.is_ascii() && !name.ends_with('-'), "{name}");
        }
    }
}
