//! What the restarter needs besides its rules: a cluster to read and to write, and the time.
//!
//! One trait, so that a simulation can take the place of the API server.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use injectd_k8s::workload::Workload;
use jiff::Timestamp;

use super::{
    budget::Budget, finding::ReplicaSet, namespace::NamespaceSettings, workload::Observed,
};

/// How long the API server may take to answer; for a page of a list, with the renewals of its token.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// The statuses of requests that may be repeated soon: unauthorized, too many requests.
const REPEATED: [u16; 2] = [401, 429];
/// Maximum number of budgets of a namespace: the workloads of a tenant with more are not restarted.
pub(super) const MAX_BUDGETS: usize = 1_000;

/// Why the API server was asked in vain.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No answer in time.
    #[error("the API server did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// The object changed since it was read, or is another one now.
    #[error("the workload changed since it was read")]
    Changed,
    /// A list is too long.
    #[error("the namespace has more than {MAX_BUDGETS} PodDisruptionBudgets; delete some")]
    TooMany,
    /// An error, or no connection.
    #[error("the request to the API server failed")]
    Failed(#[source] Box<kube::Error>),
}

impl RequestError {
    /// Whether the API server may have done what was asked, although it did not say so.
    pub(super) fn may_have_acted(&self) -> bool {
        match self {
            Self::Timeout => true,
            Self::Changed | Self::TooMany => false,
            Self::Failed(error) => {
                !matches!(&**error, kube::Error::Api(status) if (400..500).contains(&status.code))
            }
        }
    }

    /// Whether the API server refuses: the same request is refused again.
    pub(super) fn is_refusal(&self) -> bool {
        let Self::Failed(error) = self else { return false };
        !self.may_have_acted()
            && !matches!(&**error, kube::Error::Api(status) if REPEATED.contains(&status.code))
    }
}

/// The answer to a request.
pub(super) type Answer<'a, T> = BoxFuture<'a, Result<T, RequestError>>;

/// What a restart writes into a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark<'a> {
    /// The workload as it was read.
    pub(super) observed: &'a Observed,
    /// The time of the restart.
    pub(super) at: Timestamp,
    /// The digest of what the restart is for, if it is known.
    pub(super) digest: Option<&'a str>,
}

/// A cluster with workloads, and the time.
pub(super) trait Rim: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// The annotations of a namespace; empty if it does not exist.
    fn settings<'a>(&'a self, namespace: &'a str) -> Answer<'a, NamespaceSettings>;

    /// All budgets of a namespace.
    fn budgets<'a>(&'a self, namespace: &'a str) -> Answer<'a, Arc<[Budget]>>;

    /// A workload; `None` if it does not exist, or its kind has no rollout.
    fn workload<'a>(&'a self, workload: &'a Workload) -> Answer<'a, Option<Observed>>;

    /// Whether one of these `ReplicaSet`s, as pods name them, exists and is controlled by the
    /// workload with this uid. What a pod says of its controller, anyone may have written.
    fn is_owner<'a>(
        &'a self,
        workload: &'a Workload,
        uid: &'a str,
        named: &'a [ReplicaSet],
    ) -> Answer<'a, bool>;

    /// The workloads that injectd restarted since this time, and whose rollout is not finished.
    fn unfinished(&self, since: Timestamp) -> Answer<'_, Vec<(Workload, Observed)>>;

    /// Restarts a workload as `kubectl rollout restart` does, if it is the one that was read.
    fn restart<'a>(&'a self, workload: &'a Workload, mark: Mark<'a>) -> Answer<'a, ()>;
}
