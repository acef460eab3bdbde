//! Owners of pods: looked up when a pod names them, and cached.

use std::{fmt, sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use injectd_core::{
    lookups::{FoundOwner, LookupError, OwnerObject, Reference},
    object::OwnerReference,
    outcome::MAX_OWNER_UID_BYTES,
};
use injectd_k8s::names::is_dns_subdomain;
use injectd_telemetry::metrics::CacheMetrics;
use k8s_openapi::{
    api::{apps::v1::ReplicaSet, batch::v1::Job},
    apimachinery::pkg::apis::meta::v1 as k8s,
};
use kube::{Api, Client, ResourceExt as _, core::PartialObjectMeta};
use moka::{policy::EvictionPolicy, sync};

use crate::{
    client::{LookupLimits, with_retries},
    merged::{MergedLookups, Namespaced},
};

/// Maximum number of cached owners: far more than are created at once. An owner is needed only
/// while its pods are created.
const MAX_OWNERS: u64 = 50_000;

/// The owners of a cluster's pods.
pub struct Owners {
    client: Client,
    known: sync::Cache<Key, FoundOwner>,
    lookups: MergedLookups<Key, FoundOwner>,
    metrics: CacheMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    namespace: String,
    is_job: bool,
    name: String,
    /// The uid that the reference claims.
    owner_uid: String,
}

impl Owners {
    /// Starts with an empty cache.
    #[must_use]
    pub fn new(client: Client, lookups: Arc<LookupLimits>, metrics: CacheMetrics) -> Self {
        Self {
            client,
            known: sync::Cache::builder()
                // Entries do not age: their key has the uid, so an owner that is created anew is
                // another one.
                .max_capacity(MAX_OWNERS)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            lookups: MergedLookups::new(lookups),
            metrics,
        }
    }

    /// The `ReplicaSet` or `Job` that a reference names; `None` if it does not exist.
    ///
    /// # Errors
    /// When the owner is not cached and the API server does not answer in time or by `deadline`.
    pub async fn lookup(
        &self,
        namespace: &str,
        owner: &OwnerReference<'_>,
        deadline: Option<Instant>,
    ) -> Result<FoundOwner, LookupError> {
        let Some(key) = Key::of(namespace, owner) else { return Ok(None) };
        if let Some(found) = self.known.get(&key) {
            self.metrics.hits.increment(1);
            return Ok(found);
        }
        self.metrics.misses.increment(1);
        self.request_once(key, deadline).await
    }

    /// The cached owner, without a request to the API server; not counted.
    #[must_use]
    pub fn known(&self, namespace: &str, owner: &OwnerReference<'_>) -> FoundOwner {
        self.known.get(&Key::of(namespace, owner)?).flatten()
    }

    /// Looks an owner up in the API server, with one request for all concurrent callers.
    ///
    /// Boxed: the future of a cache hit must not have the size of a lookup, and the packages that wait for a
    /// lookup share its code.
    fn request_once(
        &self,
        key: Key,
        deadline: Option<Instant>,
    ) -> BoxFuture<'_, Result<FoundOwner, LookupError>> {
        Box::pin(async move {
            // Only an owner with the claimed uid is cached: the author of a pod may write any uid.
            let keep = |found: &FoundOwner| {
                if let Some(owner) = found
                    && owner.object_uid == key.owner_uid
                {
                    self.known.insert(key.clone(), Some(Arc::clone(owner)));
                }
            };
            self.lookups.once_within_share(&key, deadline, Box::pin(self.request(&key)), keep).await
        })
    }

    /// Records the number of cached owners.
    pub fn record_cache_size(&self) {
        self.known.run_pending_tasks();
        self.metrics.keep(self.known.entry_count());
    }

    async fn request(&self, key: &Key) -> Result<FoundOwner, kube::Error> {
        let (client, namespace) = (self.client.clone(), &key.namespace);
        let limit = self.lookups.limits().timeout;
        Ok(if key.is_job {
            let api = Api::<PartialObjectMeta<Job>>::namespaced(client, namespace);
            with_retries(limit, || api.get_opt(&key.name)).await?.map(owned)
        } else {
            let api = Api::<PartialObjectMeta<ReplicaSet>>::namespaced(client, namespace);
            with_retries(limit, || api.get_opt(&key.name)).await?.map(owned)
        })
    }
}

impl Key {
    /// `None` if no such owner can exist, so that long texts are neither copied nor cached, and for other kinds.
    fn of(namespace: &str, owner: &OwnerReference<'_>) -> Option<Self> {
        let is_job = match &*owner.kind {
            "Job" => true,
            "ReplicaSet" => false,
            _ => return None,
        };
        // The author of a pod writes the reference, and the cache keeps its texts.
        let can_exist = owner.owner_uid.len() <= MAX_OWNER_UID_BYTES
            && is_dns_subdomain(namespace)
            && is_dns_subdomain(&owner.name);
        can_exist.then(|| Self {
            namespace: namespace.to_owned(),
            is_job,
            name: owner.name.to_string(),
            owner_uid: owner.owner_uid.to_string(),
        })
    }
}

impl Namespaced for Key {
    fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owners").field("known", &self.known).finish_non_exhaustive()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "called by `Option::map`")]
fn owned<K>(object: PartialObjectMeta<K>) -> Arc<OwnerObject>
where
    PartialObjectMeta<K>: kube::Resource,
{
    let owners = object.owner_references().iter().map(reference);
    Arc::new(OwnerObject { object_uid: object.uid().unwrap_or_default(), owners: owners.collect() })
}

/// A reference of an object to its owner.
pub(crate) fn reference(owner: &k8s::OwnerReference) -> Reference {
    Reference {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        object_uid: owner.uid.clone(),
        is_controller: owner.controller.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_cannot_exist_has_no_key() {
        let has_key = |namespace: &str, name: &str, uid: &str| {
            let text = format!(r#"{{"kind":"ReplicaSet","name":"{name}","uid":"{uid}"}}"#);
            let owner: OwnerReference<'_> =
                injectd_core::json::read(&text).expect("must be a reference");
            Key::of(namespace, &owner).is_some()
        };
        let long = "a".repeat(MAX_OWNER_UID_BYTES.max(injectd_k8s::names::MAX_SUBDOMAIN_BYTES) + 1);
        assert!(has_key("a", "web-5f4", "u1"));
        assert!(has_key("a", "web-5f4", &long[..MAX_OWNER_UID_BYTES]));
        for (namespace, name, uid) in [
            (long.as_str(), "web-5f4", "u1"),
            ("a", long.as_str(), "u1"),
            ("a", "web-5f4", long.as_str()),
            ("a/b", "web-5f4", "u1"),
            ("a", "../web", "u1"),
            ("a", "", "u1"),
        ] {
            assert!(!has_key(namespace, name, uid), "{namespace} {name} {uid}");
        }
    }
}
