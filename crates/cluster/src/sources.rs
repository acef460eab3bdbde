//! The sources of lookups: a cluster, or objects without a cluster.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use injectd_core::{
    lookups::{FoundObject, FoundOwner, LookupError, Lookups, Metadata},
    namespace::NamespaceReads,
    object::OwnerReference,
    standalone::Standalone,
};
use injectd_telemetry::metrics::{CacheMetrics, Registry, WatchMetrics};
use kube::Client;

use crate::{KnownObjects, LookupLimits, Owners, WatchedNamespaces};

/// A source of namespaces, owners and service accounts.
#[derive(Debug, Clone)]
pub enum Sources {
    /// No cluster.
    Standalone(Standalone),
    /// A cluster: namespaces are watched, other objects are looked up when a pod names them.
    Cluster(Arc<WatchedNamespaces>, Arc<Owners>, Arc<KnownObjects>),
}

/// Lookups that wait at a time for the API server, and how long each does, where nobody serves reviews.
const WAITING: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(10);

impl Sources {
    /// A cluster that a command reads: nothing is watched, and nobody reads the metrics.
    #[must_use]
    pub fn of_command(client: &Client) -> Self {
        let registry = Registry::new();
        let lookups = Arc::new(LookupLimits::new(WAITING, TIMEOUT));
        let watch = WatchMetrics::register(&registry, "namespaces");
        let namespaces = WatchedNamespaces::new(client.clone(), Arc::clone(&lookups), watch);
        let owners = CacheMetrics::register(&registry, "owners");
        let owners = Owners::new(client.clone(), Arc::clone(&lookups), owners);
        let objects = CacheMetrics::register(&registry, "objects");
        let objects = KnownObjects::new(client.clone(), lookups, objects);
        Self::Cluster(Arc::new(namespaces), Arc::new(owners), Arc::new(objects))
    }

    /// Records the number of cached objects.
    pub fn record_cache_sizes(&self) {
        if let Self::Cluster(namespaces, owners, objects) = self {
            namespaces.record_cache_size();
            owners.record_cache_size();
            objects.record_cache_size();
        }
    }
}

impl Lookups for Sources {
    async fn namespace(
        &self,
        name: &str,
        reads: &NamespaceReads,
    ) -> Result<Option<Arc<Metadata>>, LookupError> {
        match self {
            Self::Standalone(objects) => objects.namespace(name, reads).await,
            Self::Cluster(namespaces, ..) => namespaces.lookup(name, reads).await,
        }
    }

    async fn owner(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
        deadline: Option<Instant>,
    ) -> Result<FoundOwner, LookupError> {
        match self {
            Self::Standalone(objects) => objects.owner(namespace, owner, deadline).await,
            Self::Cluster(_, owners, _) => owners.lookup(namespace, owner, deadline).await,
        }
    }

    async fn owner_in_memory(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
    ) -> Result<FoundOwner, LookupError> {
        match self {
            Self::Standalone(objects) => objects.owner_in_memory(namespace, owner).await,
            Self::Cluster(_, owners, _) => {
                let found = owners.known(namespace, owner);
                found.map(Some).ok_or(LookupError::NotInMemory)
            }
        }
    }

    async fn object(
        &self,
        namespace: &str,
        object: &OwnerReference<'_>,
        deadline: Option<Instant>,
    ) -> Result<FoundObject, LookupError> {
        match self {
            Self::Standalone(objects) => objects.object(namespace, object, deadline).await,
            Self::Cluster(.., objects) => objects.lookup(namespace, object, deadline).await,
        }
    }

    fn will_read(&self, reads: &NamespaceReads) {
        if let Self::Cluster(namespaces, ..) = self {
            namespaces.will_read(reads);
        }
    }

    fn has(&self, namespace: &str, kind: &str, name: &str) -> bool {
        match self {
            Self::Standalone(objects) => objects.has(namespace, kind, name),
            Self::Cluster(..) => true,
        }
    }
}

impl From<Standalone> for Sources {
    fn from(objects: Standalone) -> Self {
        Self::Standalone(objects)
    }
}

#[cfg(test)]
mod tests;
