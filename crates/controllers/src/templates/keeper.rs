//! The task of one replica. It reports what it serves. While it holds the Lease, it also writes revisions and
//! status (`keeper/leader.rs`).

use std::sync::Arc;

use injectd_cluster::lease::{Elector, LeaseOptions};
use injectd_profiles::template_plane::KnownTemplates;
use injectd_telemetry::recent_errors::RecentErrors;
use kube::Client;
use tokio::sync::watch;

use super::{metrics::KeeperMetrics, objects::Objects, replica::Reported, rim::Rim};

mod leader;
mod writer;

use writer::Writer;

/// What a keeper of templates needs to know of its process.
#[derive(Debug, Clone)]
pub struct Options {
    /// injectd's own namespace: revisions and Leases are there.
    pub namespace: String,
    /// The name of the pod, or another one that no other process has.
    pub replica: String,
    /// The uid of the pod, if it is known: the Lease of the replica goes with the pod.
    pub pod_uid: Option<String>,
    /// The Lease that the writer holds.
    pub lease: LeaseOptions,
}

/// Keeps revisions and status of sidecar templates, in one of the replicas of injectd.
pub struct Keeper {
    client: Client,
    lease: LeaseOptions,
    reported: Reported,
    writer: Writer,
    metrics: KeeperMetrics,
}

impl Keeper {
    /// A keeper of the templates that a process knows; `errors` are those of its reviews.
    #[must_use]
    pub fn new(
        client: Client,
        options: Options,
        known: watch::Receiver<Arc<KnownTemplates>>,
        errors: Arc<RecentErrors>,
        metrics: KeeperMetrics,
    ) -> Self {
        let rim: Arc<dyn Rim> = Arc::new(Objects::new(client.clone(), &options.namespace));
        let Options { namespace, replica, pod_uid, lease } = options;
        let reported = Reported {
            rim: Arc::clone(&rim),
            namespace: namespace.clone(),
            replica,
            pod_uid,
            known: known.clone(),
            errors,
            metrics: metrics.clone(),
        };
        let writer = Writer::new(rim, namespace, known, metrics.clone());
        Self { client, lease, reported, writer, metrics }
    }

    /// Runs until `end`; then gives its Leases away. What is served never waits for it.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let mut elector = Elector::new(self.client.clone(), self.lease.clone());
        let mut term = elector.term();
        tokio::pin!(end);
        tokio::select! {
            () = &mut end => {}
            () = elector.hold("the templates") => {}
            () = self.reported.keep() => {}
            () = self.writer.keep(&mut term) => {}
        }
        self.metrics.leads(false);
        self.reported.end().await;
        elector.release().await;
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("lease", &self.lease).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod simulation;
