//! Annotations of namespaces: watched, and asked for where the watch has not shown them yet.
//!
//! Absence never means "no annotations". What is newer wins, whichever way it came.

use std::{collections::HashSet, sync::Arc};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt as _,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt as _,
        watcher::{Config, Event, watcher},
    },
};
use moka::{future::Cache, policy::EvictionPolicy};
use tracing::{info, warn};

use super::{LookupError, Lookups, is_object_name, patiently};
use crate::{log, metrics::WatchMetrics, namespaces::Annotations, pod::TextMap, readiness::Hold};

/// Far above the largest clusters; beyond it the least used are asked for again.
const MAX_NAMESPACES: u64 = 200_000;
/// Length of a watch: one that died in silence is noticed soon after.
const WATCH_SECONDS: u32 = 60;
/// Namespaces that are listed at a time: each comes with everything its owners wrote on it.
const PAGE_SIZE: u32 = 50;

/// The namespaces of a cluster.
#[derive(Debug)]
pub struct WatchedNamespaces {
    api: Api<PartialObjectMeta<Namespace>>,
    known: Cache<String, Known>,
    /// Collapses questions about one namespace; keeps no answers.
    asked: Cache<String, Known>,
    lookups: Arc<Lookups>,
    metrics: WatchMetrics,
}

#[derive(Debug, Clone)]
struct Known {
    /// Resource version; grows with each change.
    version: u64,
    /// `None`: it was deleted.
    annotations: Option<Annotations>,
}

impl WatchedNamespaces {
    /// Nothing is known until [`WatchedNamespaces::follow`] runs.
    #[must_use]
    pub fn new(client: Client, lookups: Arc<Lookups>, metrics: WatchMetrics) -> Self {
        let cache = || Cache::builder().eviction_policy(EvictionPolicy::lru());
        Self {
            api: Api::all(client),
            known: cache().max_capacity(MAX_NAMESPACES).build(),
            asked: cache().max_capacity(1).build(),
            lookups,
            metrics,
        }
    }

    /// The annotations of a namespace; `None` if it does not exist.
    ///
    /// # Errors
    /// When it is not known and the API server does not tell.
    pub async fn lookup(&self, name: &str) -> Result<Option<Annotations>, LookupError> {
        if let Some(Known { annotations: Some(annotations), .. }) = self.known.get(name).await {
            self.metrics.cache.hits.increment(1);
            return Ok(Some(annotations));
        }
        if !is_object_name(name) {
            return Ok(None);
        }
        self.metrics.cache.misses.increment(1);
        // A review that need not wait does not carry what waiting takes.
        Box::pin(self.ask_once(name)).await
    }

    /// Asks the API server, with whoever else asks for this namespace.
    async fn ask_once(&self, name: &str) -> Result<Option<Annotations>, LookupError> {
        let asked = self.asked.try_get_with_by_ref(name, self.ask(name));
        let known = self.lookups.wait_for(asked, None).await;
        self.asked.invalidate(name).await;
        Ok(known?.annotations)
    }

    async fn ask(&self, name: &str) -> Result<Known, kube::Error> {
        match patiently(self.lookups.timeout, || self.api.get_opt(name)).await? {
            Some(namespace) => Ok(self.store(&namespace, true).await),
            None => Ok(Known { version: 0, annotations: None }),
        }
    }

    /// Keeps what is known of a namespace, unless something newer is.
    async fn store(&self, namespace: &PartialObjectMeta<Namespace>, is_there: bool) -> Known {
        let version = namespace.resource_version().and_then(|version| version.parse().ok());
        let annotations = is_there.then(|| annotations_of(namespace));
        let known = Known { version: version.unwrap_or_default(), annotations };
        let entry = self.known.entry(namespace.name_any());
        let newest = entry.and_upsert_with(|before| async {
            match before.map(moka::Entry::into_value) {
                Some(before) if before.version > known.version => before,
                _ => known,
            }
        });
        newest.await.into_value()
    }

    /// Watches until the process ends. `unready` is let go once every namespace was listed.
    pub async fn follow(self: Arc<Self>, unready: Hold) {
        let mut unready = Some(unready);
        let mut listed = HashSet::new();
        let config = Config::default().timeout(WATCH_SECONDS).page_size(PAGE_SIZE);
        let watch = watcher(self.api.clone(), config).default_backoff();
        let mut watch = std::pin::pin!(watch);
        while let Some(event) = watch.next().await {
            match event {
                Ok(event) => {
                    self.metrics.succeeded();
                    if self.take_over(event, &mut listed).await && unready.is_some() {
                        info!("caches synced");
                        unready = None;
                    }
                }
                Err(error) => {
                    self.metrics.failed();
                    let error = log::with_causes(&error);
                    warn!(error, "cannot watch namespaces; what is known serves on");
                }
            }
        }
    }

    /// Tells how many namespaces are kept.
    pub async fn tell_entries(&self) {
        self.known.run_pending_tasks().await;
        self.metrics.cache.keep(self.known.entry_count());
    }

    /// Whether every namespace has been listed with this event.
    async fn take_over(
        &self,
        event: Event<PartialObjectMeta<Namespace>>,
        listed: &mut HashSet<String>,
    ) -> bool {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(namespace) => {
                self.store(&namespace, true).await;
                listed.insert(namespace.name_any());
            }
            Event::InitDone => {
                // Whatever is not listed any more is asked for when it is needed.
                for (name, _) in &self.known {
                    if !listed.contains(&*name) {
                        self.known.invalidate(&*name).await;
                    }
                }
                listed.clear();
                return true;
            }
            Event::Apply(namespace) => drop(self.store(&namespace, true).await),
            Event::Delete(namespace) => drop(self.store(&namespace, false).await),
        }
        false
    }
}

/// The annotations that matter.
fn annotations_of(namespace: &PartialObjectMeta<Namespace>) -> Annotations {
    let all = namespace.annotations().iter();
    all.filter(|(key, _)| TextMap::matters(key)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A cluster whose API server nobody answers for.
    fn unreachable() -> WatchedNamespaces {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("an address"));
        let client = Client::try_from(config).expect("a client");
        let lookups = Arc::new(Lookups::new(1, Duration::from_secs(5)));
        WatchedNamespaces::new(client, lookups, WatchMetrics::default())
    }

    fn namespace(name: &str, version: u64, inject: &str) -> PartialObjectMeta<Namespace> {
        let object = serde_json::json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": name, "resourceVersion": version.to_string(),
            "annotations": {"linkerd.io/inject": inject, "other": "x"}}});
        serde_json::from_value(object).expect("metadata")
    }

    async fn inject_of(namespaces: &WatchedNamespaces, name: &str) -> Option<String> {
        let annotations = namespaces.lookup(name).await.ok()??;
        assert_eq!(annotations.len(), 1, "only what matters is kept");
        Some(annotations[0].1.clone())
    }

    #[tokio::test]
    async fn the_newest_version_counts_whichever_way_it_came() {
        let namespaces = unreachable();
        let mut listed = HashSet::new();
        namespaces.take_over(Event::Apply(namespace("a", 7, "enabled")), &mut listed).await;
        namespaces.store(&namespace("a", 5, "disabled"), true).await;
        assert_eq!(inject_of(&namespaces, "a").await.as_deref(), Some("enabled"));
        namespaces.take_over(Event::Delete(namespace("a", 8, "enabled")), &mut listed).await;
        namespaces.store(&namespace("a", 6, "enabled"), true).await;
        assert_eq!(inject_of(&namespaces, "a").await, None, "a slow answer is not news");
        namespaces.take_over(Event::Apply(namespace("a", 9, "ingress")), &mut listed).await;
        assert_eq!(inject_of(&namespaces, "a").await.as_deref(), Some("ingress"));
    }

    #[tokio::test]
    async fn what_is_not_listed_any_more_is_asked_for() {
        let namespaces = unreachable();
        let mut listed = HashSet::new();
        for name in ["a", "b"] {
            namespaces.take_over(Event::Apply(namespace(name, 1, "enabled")), &mut listed).await;
        }
        namespaces.take_over(Event::Init, &mut listed).await;
        namespaces.take_over(Event::InitApply(namespace("a", 2, "disabled")), &mut listed).await;
        assert!(namespaces.take_over(Event::InitDone, &mut listed).await);
        assert_eq!(inject_of(&namespaces, "a").await.as_deref(), Some("disabled"));
        let unknown = namespaces.lookup("b").await;
        assert!(matches!(unknown, Err(LookupError::Failed(_))), "absence means nothing");
    }

    #[tokio::test]
    async fn more_reviews_than_may_wait_are_told_so() {
        let namespaces = unreachable();
        let _waiting = namespaces.lookups.begin().expect("the first may wait");
        assert!(matches!(namespaces.lookup("a").await, Err(LookupError::TooMany)));
    }
}
