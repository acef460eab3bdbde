//! The choice between meshes: a profile is a mesh with its configuration and its lookups.

use std::{sync::Arc, time::Instant};

use crate::{
    injector::{Answer, ReviewError},
    linkerd::snapshot::Snapshot,
    mesh::Mesh,
    outcome::SkipReason,
    sources::Injector,
};

/// An injector that the servers call; cheap to clone.
#[derive(Debug, Clone)]
pub enum Profile {
    /// Linkerd.
    Linkerd(Arc<Injector>),
}

impl Profile {
    /// The name in gRPC requests.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linkerd(_) => Snapshot::NAME,
        }
    }

    /// Why pods are skipped.
    #[must_use]
    pub fn skip_reasons(&self) -> &'static [SkipReason] {
        match self {
            Self::Linkerd(_) => Snapshot::SKIP_REASONS,
        }
    }

    /// Answers a review by the caller's deadline.
    ///
    /// # Errors
    /// As [`Injector::review_by`](crate::injector::Injector::review_by).
    pub async fn review_by<'a>(
        &'a self,
        deadline: Option<Instant>,
        body: &'a [u8],
    ) -> Result<Answer<'a>, ReviewError> {
        match self {
            Self::Linkerd(injector) => injector.review_by(deadline, body).await,
        }
    }
}

/// Whether any mesh reads an annotation with this key; others need not be kept in memory.
#[must_use]
pub fn reads(key: &str) -> bool {
    Snapshot::reads(key)
}
