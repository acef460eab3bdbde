//! Objects that may change while they are used, with their labels and annotations: service accounts, and owners
//! whose labels are read. Looked up when an evaluation asks for one, and kept for some seconds.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use injectd_core::{
    lookups::{Entries, FoundObject, KnownObject, LookupError, Metadata, OwnerObject},
    object::OwnerReference,
};
use injectd_k8s::names::is_dns_subdomain;
use injectd_telemetry::metrics::CacheMetrics;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ObjectMeta},
    core::{GroupVersionKind, PartialObjectMeta},
};
use moka::{policy::EvictionPolicy, sync};

use crate::{
    client::{LookupLimits, with_retries},
    merged::{MergedLookups, Namespaced},
    owners::reference,
};

/// How long an object is kept: its changes count for new pods after this time at the latest.
const OBJECT_SECONDS: u64 = 30;
/// Maximum number of bytes of all kept objects. The least recently used are evicted.
const MAX_BYTES: u64 = 32 << 20;
/// What an object takes besides its texts, by estimate.
const OBJECT_BYTES: usize = 512;
/// What a label, an annotation or an owner takes besides its texts, by estimate.
const ENTRY_BYTES: usize = 64;

/// The kinds that are looked up: API version and kind.
const KINDS: [(&str, &str); 8] = [
    ("v1", "ServiceAccount"),
    ("v1", "ReplicationController"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
];

/// Objects of a cluster.
pub struct KnownObjects {
    client: Client,
    known: sync::Cache<Key, Arc<KnownObject>>,
    lookups: MergedLookups<Key, FoundObject>,
    metrics: CacheMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    namespace: String,
    /// The place in [`KINDS`].
    kind: usize,
    name: String,
}

impl KnownObjects {
    /// Starts with an empty cache.
    #[must_use]
    pub fn new(client: Client, lookups: Arc<LookupLimits>, metrics: CacheMetrics) -> Self {
        Self {
            client,
            known: sync::Cache::builder()
                .max_capacity(MAX_BYTES)
                .weigher(|key: &Key, object: &Arc<KnownObject>| weight(key, object))
                // Labels change, and no watch would bring the change: a watch of all owners would
                // cost more than lookups.
                .time_to_live(Duration::from_secs(OBJECT_SECONDS))
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            lookups: MergedLookups::new(lookups),
            metrics,
        }
    }

    /// An object; `None` if it does not exist, or if objects of its kind are not looked up. One that is cached
    /// counts only if it has the claimed uid: it may have been created anew.
    ///
    /// # Errors
    /// When the object is not cached and the API server does not answer in time or by `deadline`.
    pub async fn lookup(
        &self,
        namespace: &str,
        object: &OwnerReference<'_>,
        deadline: Option<Instant>,
    ) -> Result<FoundObject, LookupError> {
        let Some(key) = Key::of(namespace, &object.kind, &object.name) else { return Ok(None) };
        let claims_uid = !object.owner_uid.is_empty();
        if let Some(found) = self.known.get(&key)
            && (!claims_uid || found.owner.has_claimed_uid(object))
        {
            self.metrics.hits.increment(1);
            return Ok(Some(found));
        }
        self.metrics.misses.increment(1);
        self.request_once(key, deadline).await
    }

    /// Looks an object up in the API server, with one request for all concurrent callers.
    ///
    /// Boxed: the future of a cache hit must not have the size of a lookup, and the packages that wait for a
    /// lookup share its code.
    fn request_once(
        &self,
        key: Key,
        deadline: Option<Instant>,
    ) -> BoxFuture<'_, Result<FoundObject, LookupError>> {
        Box::pin(async move {
            let keep = |found: &FoundObject| {
                // That an object is missing is not kept: it may be created a moment later.
                if let Some(object) = found {
                    self.known.insert(key.clone(), Arc::clone(object));
                }
            };
            self.lookups.once_within_share(&key, deadline, Box::pin(self.request(&key)), keep).await
        })
    }

    async fn request(&self, key: &Key) -> Result<FoundObject, kube::Error> {
        let (api_version, kind) = KINDS[key.kind];
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let client = self.client.clone();
        let api = Api::<DynamicObject>::namespaced_with(client, &key.namespace, &resource);
        let found =
            with_retries(self.lookups.limits().timeout, || api.get_metadata_opt(&key.name)).await?;
        Ok(found.map(|PartialObjectMeta { metadata, .. }| Arc::new(known(metadata))))
    }

    /// Records the number of cached objects.
    pub fn record_cache_size(&self) {
        self.known.run_pending_tasks();
        self.metrics.keep(self.known.entry_count());
    }
}

impl Key {
    /// `None` if no such object can exist, so that long texts are neither copied nor cached.
    fn of(namespace: &str, kind: &str, name: &str) -> Option<Self> {
        let kind = KINDS.iter().position(|(_, known)| *known == kind)?;
        let can_exist = is_dns_subdomain(namespace) && is_dns_subdomain(name);
        can_exist.then(|| Self { namespace: namespace.to_owned(), kind, name: name.to_owned() })
    }
}

impl Namespaced for Key {
    fn namespace(&self) -> &str {
        &self.namespace
    }
}

impl fmt::Debug for KnownObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownObjects").field("known", &self.known).finish_non_exhaustive()
    }
}

fn known(metadata: ObjectMeta) -> KnownObject {
    let owner = OwnerObject {
        object_uid: metadata.uid.unwrap_or_default(),
        owners: metadata.owner_references.unwrap_or_default().iter().map(reference).collect(),
    };
    let labels = metadata.labels.unwrap_or_default().into_iter().collect();
    let annotations = metadata.annotations.unwrap_or_default().into_iter().collect();
    KnownObject { owner: Arc::new(owner), metadata: Metadata { labels, annotations } }
}

/// The bytes that an object takes, by estimate.
fn weight(key: &Key, object: &KnownObject) -> u32 {
    let texts = |entries: &Entries| {
        entries.iter().map(|(key, text)| ENTRY_BYTES + key.len() + text.len()).sum::<usize>()
    };
    let KnownObject { owner, metadata: Metadata { labels, annotations } } = object;
    let owners = owner.owners.iter().map(|owner| {
        let texts = [&owner.api_version, &owner.kind, &owner.name, &owner.object_uid];
        2 * ENTRY_BYTES + texts.map(String::len).iter().sum::<usize>()
    });
    let key = OBJECT_BYTES + key.namespace.len() + key.name.len();
    let bytes = key + texts(labels) + texts(annotations) + owners.sum::<usize>();
    bytes.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_cannot_exist_has_no_key() {
        let has_key = |namespace, kind, name| Key::of(namespace, kind, name).is_some();
        assert!(has_key("a", "ServiceAccount", "web") && has_key("a", "CronJob", "sweep"));
        for (namespace, kind, name) in [
            ("a/b", "ServiceAccount", "web"),
            ("a", "ServiceAccount", "../web"),
            ("a", "ServiceAccount", ""),
            ("a", "Secret", "web"),
            ("a", "serviceaccount", "web"),
        ] {
            assert!(!has_key(namespace, kind, name), "{namespace} {kind} {name}");
        }
    }

    #[test]
    fn an_object_weighs_at_least_its_texts() {
        let text = |length: usize| "x".repeat(length);
        let entries = |length| Entries::from([(text(1000), text(length))]);
        let metadata = Metadata { labels: entries(100), annotations: entries(100_000) };
        let object = KnownObject { metadata, ..KnownObject::default() };
        let key = Key::of("a", "ServiceAccount", "web").expect("a key");
        let bytes = weight(&key, &object);
        assert!((102_100..104_000).contains(&bytes), "{bytes}");
    }
}
