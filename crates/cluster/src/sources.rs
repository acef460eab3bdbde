//! The sources of lookups: a cluster, or objects without a cluster.

use std::{sync::Arc, time::Instant};

use injectd_core::{
    lookups::{Annotations, FoundOwner, LookupError, Lookups},
    namespace::NamespaceReads,
    object::OwnerReference,
    standalone::Standalone,
};

use crate::{Owners, WatchedNamespaces};

/// A source of namespaces and owners.
#[derive(Debug, Clone)]
pub enum Sources {
    /// No cluster.
    Standalone(Standalone),
    /// A cluster: namespaces are watched, owners are looked up when a pod names them.
    Cluster(Arc<WatchedNamespaces>, Arc<Owners>),
}

impl Sources {
    /// Records the number of cached objects.
    pub fn record_cache_sizes(&self) {
        if let Self::Cluster(namespaces, owners) = self {
            namespaces.record_cache_size();
            owners.record_cache_size();
        }
    }
}

impl Lookups for Sources {
    async fn namespace(
        &self,
        name: &str,
        reads: &NamespaceReads,
    ) -> Result<Option<Annotations>, LookupError> {
        match self {
            Self::Standalone(objects) => objects.namespace(name, reads).await,
            Self::Cluster(namespaces, _) => namespaces.lookup(name, reads).await,
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
            Self::Cluster(_, owners) => owners.lookup(namespace, owner, deadline).await,
        }
    }

    async fn owner_in_memory(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
    ) -> Result<FoundOwner, LookupError> {
        match self {
            Self::Standalone(objects) => objects.owner_in_memory(namespace, owner).await,
            Self::Cluster(_, owners) => {
                let found = owners.known(namespace, owner);
                found.map(Some).ok_or(LookupError::NotInMemory)
            }
        }
    }

    fn will_read(&self, reads: &NamespaceReads) {
        if let Self::Cluster(namespaces, _) = self {
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
