//! Lookups without a cluster: every namespace, or the objects of a file.

use std::{sync::Arc, time::Instant};

use crate::{
    lookups::{FoundObject, FoundOwner, LookupError, Lookups, Metadata},
    namespace::NamespaceReads,
    object::OwnerReference,
    objects::Objects,
};

/// The objects that exist.
#[derive(Debug, Clone)]
pub enum Standalone {
    /// Every namespace exists and has these labels and annotations. There are no other objects.
    Every(Arc<Metadata>),
    /// Every namespace exists: those of a file, and others with these labels and annotations. There are no
    /// other objects.
    EveryBut(Arc<Objects>, Arc<Metadata>),
    /// Only the objects of a file exist.
    Listed(Arc<Objects>),
    /// Only the namespaces of a file exist; owners that it lacks may exist.
    ListedInPart(Arc<Objects>),
}

impl Standalone {
    /// Every namespace exists and has these annotations.
    pub fn annotated(annotations: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::Every(Metadata::annotated(annotations))
    }
}

impl Default for Standalone {
    /// Every namespace exists and has neither labels nor annotations.
    fn default() -> Self {
        Self::Every(Metadata::none())
    }
}

impl Lookups for Standalone {
    async fn namespace(
        &self,
        name: &str,
        _: &NamespaceReads,
    ) -> Result<Option<Arc<Metadata>>, LookupError> {
        match self {
            Self::Every(metadata) => Ok(Some(Arc::clone(metadata))),
            Self::EveryBut(objects, metadata) => {
                Ok(objects.namespace(name).or_else(|| Some(Arc::clone(metadata))))
            }
            Self::Listed(objects) | Self::ListedInPart(objects) => Ok(objects.namespace(name)),
        }
    }

    async fn owner(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
        _: Option<Instant>,
    ) -> Result<FoundOwner, LookupError> {
        self.owner_in_memory(namespace, owner).await
    }

    async fn owner_in_memory(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
    ) -> Result<FoundOwner, LookupError> {
        match self {
            Self::Every(_) | Self::EveryBut(..) => Err(LookupError::NotInMemory),
            Self::Listed(objects) => Ok(objects.owner(namespace, &owner.kind, &owner.name)),
            Self::ListedInPart(objects) => {
                let found = claimed_owner(objects, namespace, owner);
                found.map(Some).ok_or(LookupError::NotInMemory)
            }
        }
    }

    async fn object(
        &self,
        namespace: &str,
        object: &OwnerReference<'_>,
        _: Option<Instant>,
    ) -> Result<FoundObject, LookupError> {
        let (kind, name) = (&*object.kind, &*object.name);
        match self {
            Self::Every(_) | Self::EveryBut(..) => Err(LookupError::NotInMemory),
            Self::Listed(objects) => Ok(objects.object(namespace, kind, name)),
            Self::ListedInPart(objects) => {
                let found = objects.object(namespace, kind, name);
                found.map(Some).ok_or(LookupError::NotInMemory)
            }
        }
    }

    fn has(&self, namespace: &str, kind: &str, name: &str) -> bool {
        match self {
            Self::Every(_) | Self::EveryBut(..) | Self::ListedInPart(_) => true,
            Self::Listed(objects) => objects.owner(namespace, kind, name).is_some(),
        }
    }
}

/// The object that a reference names, if the file has it with the claimed uid.
#[must_use]
pub fn claimed_owner(objects: &Objects, namespace: &str, owner: &OwnerReference<'_>) -> FoundOwner {
    let found = objects.owner(namespace, &owner.kind, &owner.name);
    found.filter(|object| object.has_claimed_uid(owner))
}

#[cfg(test)]
mod tests;
