//! The choice between meshes.

use std::{sync::Arc, time::Instant};

use crate::{
    injector::{self, Answer, ReviewError},
    linkerd::snapshot::Snapshot,
    mesh::Mesh,
    outcome::SkipReason,
    sources::Sources,
};

/// The injection core for Linkerd with the sources of this process.
pub type Injector = injector::Injector<Snapshot, Sources>;

/// A mesh with its configuration and its lookups, which the servers call; cheap to clone. Wherever
/// meshes differ, a `match` on it makes a missing mesh a compile error.
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
