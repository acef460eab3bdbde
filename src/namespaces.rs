//! Lookup of a namespace's annotations: one of the two places where a review may wait.
//!
//! A namespace that is unknown or evicted never means "no annotations": its lookup fails.

use std::sync::Arc;

use crate::{
    cluster::{LookupError, WatchedNamespaces},
    objects::Objects,
};

/// Annotations of a namespace, at least those that injection reads.
pub type Annotations = Arc<[(String, String)]>;

/// The source of namespaces.
#[derive(Debug, Clone)]
pub enum Namespaces {
    /// Standalone: every namespace exists and has these annotations.
    Every(Annotations),
    /// Standalone: only the namespaces of a file exist.
    Listed(Arc<Objects>),
    /// The namespaces of a cluster.
    Watched(Arc<WatchedNamespaces>),
}

/// Why the lookup of a namespace failed.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The namespace does not exist; the text is the API server's.
    #[error("namespaces \"{0}\" not found")]
    NotFound(String),
    /// The lookup in the API server failed.
    #[error("cannot look up namespace {0:?}")]
    Unknown(String, #[source] LookupError),
}

impl Namespaces {
    /// The annotations of a namespace.
    ///
    /// # Errors
    /// When the namespace does not exist, or the lookup in the API server fails.
    pub async fn lookup(&self, name: &str) -> Result<Annotations, NamespaceError> {
        let found = match self {
            Self::Every(annotations) => Some(Arc::clone(annotations)),
            Self::Listed(objects) => objects.namespace(name),
            Self::Watched(watched) => {
                let unknown = |error| NamespaceError::Unknown(name.to_owned(), error);
                watched.lookup(name).await.map_err(unknown)?
            }
        };
        found.ok_or_else(|| NamespaceError::NotFound(name.to_owned()))
    }
}
