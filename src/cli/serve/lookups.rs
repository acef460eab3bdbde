//! Where a server in a cluster looks objects up.

use std::sync::Arc;

use injectd_cluster::{KnownObjects, Owners, WatchedNamespaces, sources::Sources};
use injectd_istio::openshift;
use injectd_telemetry::metrics::{CacheMetrics, WatchMetrics};
use tracing::info;

use super::process::{Cluster, Process};

impl Process {
    /// The namespaces, owners and service accounts of a cluster.
    pub(super) fn sources(&self, cluster: &Cluster) -> Sources {
        let Cluster { client, lookups } = cluster;
        let metrics = WatchMetrics::register(self.registry(), "namespaces");
        let namespaces = WatchedNamespaces::new(client.clone(), Arc::clone(lookups), metrics);
        let namespaces = Arc::new(namespaces);
        if self.args.config.is_on_openshift() {
            // The revisions come later, and the first list is complete.
            namespaces.will_read(&openshift::namespace_reads());
        }
        let metrics = CacheMetrics::register(self.registry(), "owners");
        let owners = Owners::new(client.clone(), Arc::clone(lookups), metrics);
        let metrics = CacheMetrics::register(self.registry(), "objects");
        let objects = KnownObjects::new(client.clone(), Arc::clone(lookups), metrics);
        Sources::Cluster(namespaces, Arc::new(owners), Arc::new(objects))
    }

    /// Watches all namespaces. The process becomes ready once they are listed.
    pub(super) fn watch_namespaces(&self, sources: &Sources) {
        if let Sources::Cluster(namespaces, ..) = sources {
            info!("waiting for caches to sync");
            tokio::spawn(Arc::clone(namespaces).follow(self.readiness.hold()));
        }
    }
}
