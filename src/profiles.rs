//! The choice between meshes.

use std::{fmt, sync::Arc};

use injectd_istio::{
    envelope,
    mesh::Istio,
    path::{self, Route},
};

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

/// What is answered to a target without a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoWebhook {
    /// The status of HTTP.
    pub status: u16,
    /// Where the webhook may be: the clean path.
    pub location: Option<String>,
}

impl fmt::Display for NoWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, &self.location) {
            (_, Some(location)) => write!(f, "the path is {location} without repeated slashes"),
            (400, None) => {
                f.write_str("the target of the request is invalid; the webhook is at /inject")
            }
            _ => f.write_str("the webhook is at /inject"),
        }
    }
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

    /// The decoded path of a request's target. Linkerd has its webhook at every path.
    ///
    /// # Errors
    /// The mesh has no webhook there.
    pub fn path(&self, target: &str) -> Result<String, NoWebhook> {
        let Self::Istio(injector) = self else { return Ok(String::new()) };
        match path::route(target, injector.mesh().injector().release()) {
            Route::Inject(path) => Ok(path),
            Route::Redirect { status, location } => {
                Err(NoWebhook { status, location: Some(location) })
            }
            Route::BadRequest => Err(NoWebhook { status: 400, location: None }),
            Route::NotFound => Err(NoWebhook { status: 404, location: None }),
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
