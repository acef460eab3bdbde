//! `serve --mesh templates` in a cluster: one replica keeps the revisions of templates, and their status.

use std::sync::Arc;

use injectd_cluster::lease::LeaseOptions;
use injectd_controllers::templates::{Keeper, KeeperMetrics, Options};
use injectd_profiles::template_plane::KnownTemplates;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    pod,
    process::{Cluster, Process},
};

/// Name of the Lease of the replica that writes. The Leases of all replicas begin with it.
// Installations in a namespace share it: a template has one status, and one list of revisions.
const LEASE: &str = "injectd-templates";

impl Process {
    /// Starts to keep the templates that the process knows, and the scope of their webhook if the flags ask for
    /// it. The tasks end at shutdown, after they have given their Leases away.
    pub(super) fn keep_templates(
        &self,
        cluster: Option<&Cluster>,
        known: Option<watch::Receiver<Arc<KnownTemplates>>>,
    ) -> Vec<JoinHandle<()>> {
        let (Some(cluster), Some(known)) = (cluster, known) else { return Vec::new() };
        let scope = self.manage_webhook(cluster, known.clone());
        scope.into_iter().chain([self.keep(cluster, known)]).collect()
    }

    fn keep(
        &self,
        cluster: &Cluster,
        known: watch::Receiver<Arc<KnownTemplates>>,
    ) -> JoinHandle<()> {
        let namespace = self.args.templates.namespace().unwrap_or_default();
        let options = Options {
            lease: LeaseOptions::new(&*namespace, LEASE, pod::identity()),
            replica: pod::replica(),
            pod_uid: pod::object_uid(),
            namespace,
        };
        let metrics = KeeperMetrics::new(Arc::clone(self.registry()));
        let errors = Arc::clone(&self.template_errors);
        let keeper = Keeper::new(cluster.client.clone(), options, known, errors, metrics);
        let mut shutdown = self.shutdown.clone();
        tokio::spawn(keeper.run(async move {
            shutdown.begun().await;
        }))
    }
}
