//! Lookup of a namespace's annotations: one of the two places where a review may wait.
//!
//! Evicted or unknown never means "no annotations": a source that cannot tell says so.

use std::sync::Arc;

use crate::{
    cluster::{LookupError, WatchedNamespaces},
    objects::Objects,
};

/// Annotations of a namespace, those that matter at least.
pub type Annotations = Arc<[(String, String)]>;

/// Where namespaces are known from.
#[derive(Debug, Clone)]
pub enum Namespaces {
    /// Standalone: every namespace exists and has these annotations.
    Every(Annotations),
    /// Standalone: only those of a file exist.
    Listed(Arc<Objects>),
    /// Those of a cluster.
    Watched(Arc<WatchedNamespaces>),
}

/// Why a namespace's annotations are not known.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// It does not exist; in the API server's words.
    #[error("namespaces \"{0}\" not found")]
    NotFound(String),
    /// Nobody can tell at the moment.
    #[error("namespace {0:?} is not known")]
    Unknown(String, #[source] LookupError),
}

impl Namespaces {
    /// The annotations of a namespace.
    ///
    /// # Errors
    /// When it does not exist, or the API server does not tell.
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
