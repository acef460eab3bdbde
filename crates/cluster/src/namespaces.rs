//! Labels and annotations of namespaces: watched, and looked up if the watch has not delivered them yet.
//!
//! A missing entry never means "no annotations". The newer version wins, whether it comes from the
//! watch or from a lookup. Only keys that a configuration has read since the start are kept. When
//! a new configuration reads more, all namespaces are listed again. Until then its reviews look their
//! namespaces up.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use arc_swap::ArcSwap;
use futures_util::{StreamExt as _, future::BoxFuture};
use injectd_core::{
    lookups::{Entries, LookupError, Metadata},
    namespace::{KeySet, NamespaceReads},
};
use injectd_k8s::names::is_dns_subdomain;
use injectd_telemetry::{metrics::WatchMetrics, readiness::Hold};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt as _,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Config, Event, watcher},
    },
};
use moka::{policy::EvictionPolicy, sync};
use tokio::{select, sync::Notify};
use tracing::{info, warn};

use crate::{
    causes::with_causes,
    client::{LookupLimits, with_retries},
    merged::MergedLookups,
};

/// Maximum number of cached namespaces: far above the largest clusters. The least recently used are
/// evicted, and looked up again when they are needed.
const MAX_NAMESPACES: u64 = 200_000;
/// Duration of a watch: a watch on a dead connection ends soon after.
// A load balancer or a firewall may drop a connection without a word: then no event shows that it
// is gone.
const WATCH_SECONDS: u32 = 60;
/// Namespaces in a page of a list: each has all of its metadata.
// Annotations may have 256 KiB: a page of the largest namespaces has 13 MB.
const PAGE_SIZE: u32 = 50;

/// The namespaces of a cluster.
#[derive(Debug)]
pub struct WatchedNamespaces {
    api: Api<PartialObjectMeta<Namespace>>,
    known: sync::Cache<String, CachedNamespace>,
    lookups: MergedLookups<String, CachedNamespace>,
    metrics: WatchMetrics,
    /// What is kept.
    kept: ArcSwap<NamespaceReads>,
    /// More is kept than before.
    grown: Notify,
}

#[derive(Debug, Clone)]
struct CachedNamespace {
    /// Resource version; grows with each change.
    version: u64,
    /// What was kept when the namespace was read.
    kept: Arc<NamespaceReads>,
    /// `None` if the namespace was deleted.
    metadata: Option<Arc<Metadata>>,
}

impl WatchedNamespaces {
    /// Starts with an empty cache, which [`WatchedNamespaces::follow`] fills.
    #[must_use]
    pub fn new(client: Client, lookups: Arc<LookupLimits>, metrics: WatchMetrics) -> Self {
        Self {
            api: Api::all(client),
            known: sync::Cache::builder()
                .max_capacity(MAX_NAMESPACES)
                // The default policy may refuse a new entry, which the review that looked it up
                // would ask for again.
                .eviction_policy(EvictionPolicy::lru())
                .build(),
            lookups: MergedLookups::new(lookups),
            metrics,
            kept: ArcSwap::default(),
            grown: Notify::new(),
        }
    }

    /// From now on keeps what this configuration reads, too.
    pub fn will_read(&self, reads: &NamespaceReads) {
        let before = self.kept.rcu(|kept| {
            if kept.covers(reads) { Arc::clone(kept) } else { Arc::new(kept.union(reads)) }
        });
        if !before.covers(reads) {
            self.grown.notify_one();
        }
    }

    /// Labels and annotations of a namespace, at least those that a configuration reads; `None` if it does not
    /// exist.
    ///
    /// # Errors
    /// When the namespace is not cached and the lookup in the API server fails.
    pub async fn lookup(
        &self,
        name: &str,
        reads: &NamespaceReads,
    ) -> Result<Option<Arc<Metadata>>, LookupError> {
        if let Some(CachedNamespace { metadata: Some(metadata), kept, .. }) = self.known.get(name)
            && kept.covers(reads)
        {
            self.metrics.cache.hits.increment(1);
            return Ok(Some(metadata));
        }
        // No such namespace exists, and a request must not have the text in its path.
        if !is_dns_subdomain(name) {
            return Ok(None);
        }
        self.metrics.cache.misses.increment(1);
        let mut found = self.request_once(name).await?;
        if found.metadata.is_some() && !found.kept.covers(reads) {
            // The request began before the configuration came.
            found = self.request_once(name).await?;
        }
        Ok(found.metadata)
    }

    /// Looks a namespace up in the API server, with one request for all concurrent callers.
    ///
    /// Boxed: the future of a cache hit must not have the size of a lookup, and the packages that wait for a
    /// lookup share its code.
    fn request_once<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<CachedNamespace, LookupError>> {
        Box::pin(async move {
            self.lookups.once(&name.to_owned(), None, Box::pin(self.request(name)), |_| ()).await
        })
    }

    async fn request(&self, name: &str) -> Result<CachedNamespace, kube::Error> {
        match with_retries(self.lookups.limits().timeout, || self.api.get_opt(name)).await? {
            Some(namespace) => Ok(self.store(&namespace, true)),
            // Not stored: callers choose the names, and could fill the cache with them.
            None => Ok(CachedNamespace { version: 0, kept: Arc::default(), metadata: None }),
        }
    }

    /// Caches a namespace unless a newer version is cached.
    fn store(&self, namespace: &PartialObjectMeta<Namespace>, exists: bool) -> CachedNamespace {
        // A version that is no number counts as the oldest: anything else replaces it.
        let version = namespace.resource_version().and_then(|version| version.parse().ok());
        let kept = self.kept.load_full();
        let metadata = exists.then(|| {
            Arc::new(Metadata {
                labels: read(namespace.labels(), &kept.labels),
                annotations: read(namespace.annotations(), &kept.annotations),
            })
        });
        let found = CachedNamespace { version: version.unwrap_or_default(), kept, metadata };
        // Compared and replaced in one step, since a lookup and the watch may bring the same
        // namespace at once.
        let entry = self.known.entry(namespace.name_any());
        let newest = entry.and_upsert_with(|before| match before.map(moka::Entry::into_value) {
            // A lookup that was slow must not replace what the watch has brought since.
            Some(before) if before.version > found.version => before,
            _ => found,
        });
        newest.into_value()
    }

    /// Watches until the process ends. Drops `unready` once every namespace is listed.
    pub async fn follow(self: Arc<Self>, unready: Hold) {
        let mut unready = Some(unready);
        loop {
            let mut listed = HashSet::new();
            let config = Config::default().timeout(WATCH_SECONDS).page_size(PAGE_SIZE);
            let watch = watcher(self.api.clone(), config).default_backoff();
            let mut watch = std::pin::pin!(watch);
            loop {
                let event = select! {
                    // What is read has grown: no event of the old list may be taken first.
                    biased;
                    () = self.grown.notified() => break,
                    event = watch.next() => event,
                };
                let Some(event) = event else { return };
                self.follow_event(event, &mut listed, &mut unready);
            }
        }
    }

    fn follow_event(
        &self,
        event: Result<Event<PartialObjectMeta<Namespace>>, watcher::Error>,
        listed: &mut HashSet<String>,
        unready: &mut Option<Hold>,
    ) {
        match event {
            Ok(event) => {
                self.metrics.succeeded();
                if self.apply(event, listed) && unready.is_some() {
                    info!("caches synced");
                    *unready = None;
                }
            }
            Err(error) => {
                self.metrics.failed();
                let error = with_causes(&error);
                warn!(error, "cannot watch namespaces; the cached annotations stay in use");
            }
        }
    }

    /// Records the number of cached namespaces.
    pub fn record_cache_size(&self) {
        self.known.run_pending_tasks();
        self.metrics.cache.keep(self.known.entry_count());
    }

    /// Applies an event of the watch. Returns whether it completes the list of all namespaces.
    fn apply(
        &self,
        event: Event<PartialObjectMeta<Namespace>>,
        listed: &mut HashSet<String>,
    ) -> bool {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(namespace) => {
                self.store(&namespace, true);
                listed.insert(namespace.name_any());
            }
            Event::InitDone => {
                // A namespace that is no longer listed is looked up when it is needed.
                for (name, _) in &self.known {
                    if !listed.contains(&*name) {
                        self.known.invalidate(&*name);
                    }
                }
                listed.clear();
                return true;
            }
            Event::Apply(namespace) => drop(self.store(&namespace, true)),
            // Kept as deleted: a lookup that was slow must not bring it back.
            Event::Delete(namespace) => drop(self.store(&namespace, false)),
        }
        false
    }
}

/// What is read of the labels or annotations of a namespace.
fn read(all: &BTreeMap<String, String>, keys: &KeySet) -> Entries {
    let read = all.iter().filter(|(key, _)| keys.has(key));
    read.map(|(key, text)| (key.clone(), text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use injectd_core::namespace::KeyPattern;

    use super::*;

    /// A cluster whose API server cannot be reached.
    fn unreachable() -> WatchedNamespaces {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let client = Client::try_from(config).expect("a client");
        let lookups = Arc::new(LookupLimits::new(1, Duration::from_secs(5)));
        let namespaces = WatchedNamespaces::new(client, lookups, WatchMetrics::default());
        namespaces.will_read(&reads(&["linkerd.io/inject"]));
        namespaces
    }

    fn reads(keys: &[&'static str]) -> NamespaceReads {
        let keys = keys.iter().map(|key| KeyPattern::Key((*key).into()));
        NamespaceReads { annotations: keys.collect(), ..NamespaceReads::default() }
    }

    fn namespace(name: &str, version: u64, inject: &str) -> PartialObjectMeta<Namespace> {
        let object = serde_json::json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": name, "resourceVersion": version.to_string(),
            "labels": {"team": "a", "other": "x"},
            "annotations": {"linkerd.io/inject": inject, "other": "x"}}});
        serde_json::from_value(object).expect("metadata")
    }

    async fn inject_of(namespaces: &WatchedNamespaces, name: &str) -> Option<String> {
        let found = namespaces.lookup(name, &reads(&["linkerd.io/inject"])).await.ok()??;
        assert_eq!(found.annotations.len(), 1, "other annotations must not be kept");
        assert_eq!(found.labels.len(), 0, "labels must not be kept");
        Some(found.annotations[0].1.clone())
    }

    #[tokio::test]
    async fn the_newest_version_wins_from_the_watch_and_from_a_lookup() {
        let namespaces = unreachable();
        let mut listed = HashSet::new();
        namespaces.apply(Event::Apply(namespace("a", 7, "enabled")), &mut listed);
        namespaces.store(&namespace("a", 5, "disabled"), true);
        assert_eq!(inject_of(&namespaces, "a").await.as_deref(), Some("enabled"));
        namespaces.apply(Event::Delete(namespace("a", 8, "enabled")), &mut listed);
        namespaces.store(&namespace("a", 6, "enabled"), true);
        assert_eq!(inject_of(&namespaces, "a").await, None, "a late answer must not win");
        namespaces.apply(Event::Apply(namespace("a", 9, "ingress")), &mut listed);
        assert_eq!(inject_of(&namespaces, "a").await.as_deref(), Some("ingress"));
    }

    #[tokio::test]
    async fn a_namespace_that_is_no_longer_listed_is_looked_up() {
        let namespaces = unreachable();
        let mut listed = HashSet::new();
        for name in ["a", "b"] {
            namespaces.apply(Event::Apply(namespace(name, 1, "enabled")), &mut listed);
        }
        namespaces.apply(Event::Init, &mut listed);
        namespaces.apply(Event::InitApply(namespace("a", 2, "disabled")), &mut listed);
        assert!(namespaces.apply(Event::InitDone, &mut listed));
        assert_eq!(inject_of(&namespaces, "a").await.as_deref(), Some("disabled"));
        let unknown = namespaces.lookup("b", &NamespaceReads::default()).await;
        assert!(matches!(unknown, Err(LookupError::Failed(_))), "must be looked up");
    }

    #[tokio::test]
    async fn who_reads_more_than_is_cached_looks_the_namespace_up() {
        let namespaces = unreachable();
        let mut listed = HashSet::new();
        namespaces.apply(Event::Apply(namespace("a", 1, "enabled")), &mut listed);
        let more = reads(&["other"]);
        namespaces.will_read(&more);
        assert!(matches!(namespaces.lookup("a", &more).await, Err(LookupError::Failed(_))));
        let before = inject_of(&namespaces, "a").await;
        assert_eq!(before.as_deref(), Some("enabled"), "the others have what they read");
        namespaces.apply(Event::Apply(namespace("a", 1, "enabled")), &mut listed);
        let found = namespaces.lookup("a", &more).await.expect("it is known").expect("it exists");
        assert_eq!(found.annotations.len(), 2, "what was read before stays: {found:?}");
    }

    #[tokio::test]
    async fn labels_are_kept_if_a_configuration_reads_them() {
        let namespaces = unreachable();
        let labels = [KeyPattern::Key("team".into())].into_iter().collect();
        let reads = NamespaceReads { labels, ..reads(&[]) };
        namespaces.will_read(&reads);
        namespaces.apply(Event::Apply(namespace("a", 1, "enabled")), &mut HashSet::new());
        let found = namespaces.lookup("a", &reads).await.expect("it is known").expect("it exists");
        assert_eq!(*found.labels, [("team".to_owned(), "a".to_owned())]);
        assert_eq!(found.annotations.len(), 1, "what was read before stays: {found:?}");
    }

    #[tokio::test]
    async fn a_lookup_over_the_limit_of_waiting_reviews_fails() {
        let namespaces = unreachable();
        let _waiting = namespaces.lookups.limits().begin().expect("the first may wait");
        let found = namespaces.lookup("a", &NamespaceReads::default()).await;
        assert!(matches!(found, Err(LookupError::TooMany)));
    }
}
