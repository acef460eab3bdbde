//! What a keeper needs besides its rules: objects to read and to write, and the time.
//!
//! One trait, so that a simulation can take the place of the API server.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use injectd_templates::object::Identity;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::{pods::PodCounts, write::Write};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the API server rejected the request")]
    Api(#[from] kube::Error),
    #[error("the API server does not answer")]
    Timeout,
}

/// The answer to a request.
pub(super) type Answer<'a, T> = BoxFuture<'a, Result<T, RequestError>>;

/// The objects of a cluster, and the time.
pub(super) trait Rim: Send + Sync {
    /// The time.
    fn now(&self) -> Timestamp;

    /// Writes one object, if it is still as it was read.
    fn write<'a>(&'a self, write: &'a Write) -> Answer<'a, ()>;

    /// The Leases of all replicas.
    fn leases(&self) -> Answer<'_, Vec<Lease>>;

    /// Writes the Lease of this replica.
    fn write_lease<'a>(&'a self, lease: &'a Lease) -> Answer<'a, ()>;

    /// Removes the Lease of this replica.
    fn remove_lease<'a>(&'a self, name: &'a str) -> Answer<'a, ()>;

    /// Counts the pods of these templates.
    fn count_pods(&self, known: BTreeSet<Identity>) -> Answer<'static, PodCounts>;

    /// The kinds that the API server has in the group of templates.
    fn kinds(&self) -> Answer<'_, BTreeSet<String>>;
}

impl RequestError {
    /// Whether the object has changed since it was read, or is there already: the watches have what is there
    /// now, or will have it soon.
    pub(super) fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the object is gone, or its kind.
    pub(super) fn is_gone(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the API server has answered: other requests may succeed.
    pub(super) fn is_answer(&self) -> bool {
        self.code().is_some_and(|code| code < 500 && code != 429)
    }

    fn code(&self) -> Option<u16> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }
}
