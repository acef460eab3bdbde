//! What a keeper needs besides its rules: Secret and webhook configurations, and the time.
//!
//! One trait, so that a simulation can take the place of the API server.

use futures_util::future::BoxFuture;
use injectd_cluster::watch::KindMetrics;
use k8s_openapi::api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret};
use tokio::sync::mpsc;

use super::{state::Data, view::Found};

/// What the API server says of a JSON Patch whose `test` fails.
const TEST_FAILED: &str = "the server rejected our request due to an error in our request";

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the API server rejected the request")]
    Api(#[from] kube::Error),
    #[error("the API server does not answer")]
    Timeout,
    #[error("the CA cannot sign")]
    Sign(#[from] rcgen::Error),
}

/// The answer to a request.
pub(crate) type Answer<'a, T> = BoxFuture<'a, Result<T, RequestError>>;

/// The `caBundle` of entries of a webhook configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bundle<'a> {
    /// The name of the configuration.
    pub(super) name: &'a str,
    /// The version that was read.
    pub(super) version: &'a str,
    /// The places of the entries in the list of webhooks.
    pub(super) indices: &'a [usize],
    /// The certificates.
    pub(super) pem: &'a str,
}

/// The Secret, the webhook configurations, and the time.
pub(super) trait Rim: Send + Sync {
    /// The time in seconds since 1970.
    fn now(&self) -> i64;

    /// Sends the Secret and these configurations when they change, until the receiver is gone.
    fn watch(
        &self,
        configurations: &[String],
        metrics: &KindMetrics,
        sender: &mpsc::Sender<Found>,
    ) -> BoxFuture<'static, ()>;

    /// The Secret; `None` if it does not exist.
    fn read_secret(&self) -> Answer<'_, Option<Secret>>;

    /// A configuration; `None` if it does not exist.
    fn read_webhooks<'a>(
        &'a self,
        name: &'a str,
    ) -> Answer<'a, Option<MutatingWebhookConfiguration>>;

    /// Writes this data into the Secret if it is still as it was read, or creates the Secret.
    fn write_secret(&self, read: Option<Secret>, data: Data) -> Answer<'_, Secret>;

    /// Writes the `caBundle` of entries, if the configuration has this version still.
    fn write_bundle<'a>(&'a self, bundle: Bundle<'a>) -> Answer<'a, MutatingWebhookConfiguration>;
}

impl RequestError {
    /// Whether the object has changed since it was read.
    pub(crate) fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| match status.code {
            409 => true,
            422 => status.message == TEST_FAILED,
            _ => false,
        })
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }

    /// Whether the API server does not take such an object.
    pub(crate) fn is_invalid(&self) -> bool {
        !self.is_conflict() && self.status().is_some_and(|status| matches!(status.code, 400 | 422))
    }

    fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status),
            _ => None,
        }
    }
}
