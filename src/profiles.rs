//! The choice between meshes.

use std::sync::Arc;

use injectd_istio::{envelope, mesh::Istio};

use crate::{
    injector::{self, Answer, ReviewError},
    linkerd::snapshot::Snapshot,
    lookups::CallerFacts,
    mesh::Mesh,
    outcome::SkipReason,
    sources::Sources,
};

/// The injection core for Linkerd with the sources of this process.
pub type Injector = injector::Injector<Snapshot, Sources>;

/// The injection core for Istio with the sources of this process.
pub type IstioInjector = injector::Injector<Istio, Sources>;

/// A mesh with its configuration and its lookups, which the servers call; cheap to clone. Wherever
/// meshes differ, a `match` on it makes a missing mesh a compile error.
#[derive(Debug, Clone)]
pub enum Profile {
    /// Linkerd.
    Linkerd(Arc<Injector>),
    /// Istio, one revision.
    Istio(Arc<IstioInjector>),
}

impl Profile {
    /// The name in gRPC requests.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linkerd(_) => Snapshot::NAME,
            Self::Istio(_) => Istio::NAME,
        }
    }

    /// Why pods are skipped.
    #[must_use]
    pub fn skip_reasons(&self) -> &'static [SkipReason] {
        match self {
            Self::Linkerd(_) => Snapshot::SKIP_REASONS,
            Self::Istio(_) => Istio::SKIP_REASONS,
        }
    }

    /// Answers a review with facts of the caller.
    ///
    /// # Errors
    /// As [`Injector::review_with`](crate::injector::Injector::review_with).
    pub async fn review_with<'a>(
        &'a self,
        facts: CallerFacts<'a>,
        body: &'a [u8],
    ) -> Result<Answer<'a>, ReviewError> {
        match self {
            Self::Linkerd(injector) => injector.review_with(facts, body).await,
            Self::Istio(injector) => envelope::review(injector, facts, body).await,
        }
    }
}
