//! Lookups in the API server of which concurrent ones for one object are one request.

use std::{fmt, hash::Hash, sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use injectd_core::lookups::LookupError;
use moka::future;

use crate::client::LookupLimits;

/// Merges lookups; keeps no results.
pub(crate) struct MergedLookups<K, V> {
    in_flight: future::Cache<K, V>,
    limits: Arc<LookupLimits>,
}

/// A request that is sent if no other is under way. In a box: it is part of the futures around it.
type Request<'r, V> = BoxFuture<'r, Result<V, kube::Error>>;

/// What names an object of a namespace.
pub(crate) trait Namespaced {
    /// The namespace of the object.
    fn namespace(&self) -> &str;
}

impl<K, V> MergedLookups<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(limits: Arc<LookupLimits>) -> Self {
        // No result stays here: the cache is only asked who waits for the same key.
        Self { in_flight: future::Cache::new(1), limits }
    }

    pub(crate) fn limits(&self) -> &LookupLimits {
        &self.limits
    }

    /// As [`Self::once`], within the share of the object's namespace.
    ///
    /// # Errors
    /// As [`Self::once`], or too many wait for objects of the namespace.
    pub(crate) async fn once_within_share(
        &self,
        key: &K,
        deadline: Option<Instant>,
        request: Request<'_, V>,
        keep: impl FnOnce(&V),
    ) -> Result<V, LookupError>
    where
        K: Namespaced,
    {
        let share = self.limits.share(key.namespace());
        // The share of the namespace comes before the places of all: a burst is refused before it
        // takes the places of other namespaces.
        let _waiting = share.begin()?;
        // The permit belongs to the request: callers who join one need none.
        let request = Box::pin(async {
            let _permit = share.request().await;
            request.await
        });
        self.once(key, deadline, request, keep).await
    }

    /// What this request finds, or that of another caller for the same object which is under way. `keep` has it
    /// before the next request for the object may begin.
    ///
    /// # Errors
    /// Too many wait, the request fails, or it does not end in time or by `deadline`.
    pub(crate) async fn once(
        &self,
        key: &K,
        deadline: Option<Instant>,
        request: Request<'_, V>,
        keep: impl FnOnce(&V),
    ) -> Result<V, LookupError> {
        let requested = self.in_flight.try_get_with_by_ref(key, request);
        let found = self.limits.wait_for(requested, deadline).await;
        if let Ok(found) = &found {
            keep(found);
        }
        self.in_flight.invalidate(key).await;
        found
    }
}

impl<K, V> fmt::Debug for MergedLookups<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergedLookups").field("limits", &self.limits).finish_non_exhaustive()
    }
}
