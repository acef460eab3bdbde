//! Lookup of a namespace's annotations: one of the two places where a review may wait.
//!
//! Evicted or unknown never means "no annotations": a source that cannot tell says so.

use std::sync::Arc;

use crate::objects::Objects;

/// Where namespaces are known from.
#[derive(Debug, Clone)]
pub enum Namespaces {
    /// Standalone: every namespace exists and has these annotations.
    Every(Arc<[(String, String)]>),
    /// Standalone: only those of a file exist.
    Listed(Arc<Objects>),
}

/// Why a namespace's annotations are not known.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// It does not exist; in the API server's words.
    #[error("namespaces \"{0}\" not found")]
    NotFound(String),
}

impl Namespaces {
    /// The annotations of a namespace.
    ///
    /// # Errors
    /// When it does not exist.
    #[expect(clippy::unused_async, reason = "in a cluster a miss waits for the API server")]
    pub async fn lookup(&self, name: &str) -> Result<&[(String, String)], NamespaceError> {
        match self {
            Self::Every(annotations) => Ok(annotations),
            Self::Listed(objects) => {
                objects.namespace(name).ok_or_else(|| NamespaceError::NotFound(name.to_owned()))
            }
        }
    }
}
