//! The sources of lookups: a cluster, or objects from a file.

use std::{sync::Arc, time::Instant};

use crate::{
    cluster::{Owners, WatchedNamespaces},
    injector,
    linkerd::workload::has_claimed_uid,
    lookups::{Annotations, FoundOwner, LookupError, Lookups},
    objects::Objects,
    pod::OwnerReference,
};

/// The injection core with the sources of this process.
pub type Injector = injector::Injector<Sources>;

/// A source of namespaces and owners.
#[derive(Debug, Clone)]
pub enum Sources {
    /// Standalone: every namespace exists and has these annotations. There are no owners.
    Every(Annotations),
    /// Standalone: only the objects of a file exist.
    Listed(Arc<Objects>),
    /// Standalone: only the namespaces of a file exist; owners that it lacks may exist.
    ListedInPart(Arc<Objects>),
    /// A cluster: namespaces are watched, owners are looked up when a pod names them.
    Cluster(Arc<WatchedNamespaces>, Arc<Owners>),
}

impl Sources {
    /// Records the number of cached objects.
    pub async fn record_cache_sizes(&self) {
        if let Self::Cluster(namespaces, owners) = self {
            namespaces.record_cache_size().await;
            owners.record_cache_size().await;
        }
    }
}

impl Lookups for Sources {
    async fn namespace(&self, name: &str) -> Result<Option<Annotations>, LookupError> {
        match self {
            Self::Every(annotations) => Ok(Some(Arc::clone(annotations))),
            Self::Listed(objects) | Self::ListedInPart(objects) => Ok(objects.namespace(name)),
            Self::Cluster(namespaces, _) => namespaces.lookup(name).await,
        }
    }

    async fn owner(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
        deadline: Option<Instant>,
    ) -> Result<FoundOwner, LookupError> {
        match self {
            Self::Cluster(_, owners) => owners.lookup(namespace, owner, deadline).await,
            _ => self.owner_in_memory(namespace, owner).await,
        }
    }

    async fn owner_in_memory(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
    ) -> Result<FoundOwner, LookupError> {
        match self {
            Self::Every(_) => Err(LookupError::NotInMemory),
            Self::Listed(objects) => Ok(objects.owner(namespace, &owner.kind, &owner.name)),
            Self::ListedInPart(objects) => {
                let found = claimed_owner(objects, namespace, owner);
                found.map(Some).ok_or(LookupError::NotInMemory)
            }
            Self::Cluster(_, owners) => {
                let found = owners.known(namespace, owner).await;
                found.map(Some).ok_or(LookupError::NotInMemory)
            }
        }
    }

    fn has(&self, namespace: &str, kind: &str, name: &str) -> bool {
        match self {
            Self::Every(_) | Self::ListedInPart(_) | Self::Cluster(..) => true,
            Self::Listed(objects) => objects.owner(namespace, kind, name).is_some(),
        }
    }
}

/// The object that a reference names, if the file has it with the claimed uid.
#[must_use]
pub fn claimed_owner(objects: &Objects, namespace: &str, owner: &OwnerReference<'_>) -> FoundOwner {
    let found = objects.owner(namespace, &owner.kind, &owner.name);
    found.filter(|object| has_claimed_uid(object, owner))
}

#[cfg(test)]
mod tests;
