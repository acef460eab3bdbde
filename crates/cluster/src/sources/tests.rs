use std::{
    borrow::Cow,
    convert::Infallible,
    future::ready,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response};
use injectd_core::linkerd::workload::Owner;
use injectd_telemetry::metrics::{CacheMetrics, WatchMetrics};
use kube::{Client, client::Body};

use super::*;
use crate::LookupLimits;

fn owner<'o, 'a>(
    namespace: &'o str,
    reference: &'o OwnerReference<'a>,
    pod_template_hash: Option<&'o str>,
) -> Owner<'o, 'a> {
    Owner { namespace, reference, pod_template_hash }
}

async fn known_kind<'o>(
    sources: &Sources,
    namespace: &'o str,
    reference: &'o OwnerReference<'_>,
    pod_template_hash: Option<&'o str>,
) -> Cow<'o, str> {
    owner(namespace, reference, pod_template_hash).known_kind(sources).await
}

/// Owners of a cluster in which a `CronJob` owns every Job, and the number of requests to it.
fn cluster() -> (Sources, Arc<AtomicUsize>) {
    let requests = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&requests);
    let service = tower::service_fn(move |_: Request<Body>| {
        counter.fetch_add(1, Ordering::Relaxed);
        let job = r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{
            "name":"sweep-1","uid":"j","labels":{"app":"sweep"},"ownerReferences":[{"apiVersion":"batch/v1",
            "kind":"CronJob","name":"sweep","uid":"c","controller":true}]}}"#;
        ready(Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(job)))))
    });
    let limits = Arc::new(LookupLimits::new(1000, Duration::from_secs(30)));
    let client = Client::new(service, "a");
    let owners = Owners::new(client.clone(), Arc::clone(&limits), CacheMetrics::default());
    let objects = KnownObjects::new(client.clone(), Arc::clone(&limits), CacheMetrics::default());
    let namespaces = WatchedNamespaces::new(client, limits, WatchMetrics::default());
    (Sources::Cluster(Arc::new(namespaces), Arc::new(owners), Arc::new(objects)), requests)
}

#[tokio::test]
async fn the_known_kind_comes_from_the_cache_or_the_label_without_a_request() {
    let (workloads, requests) = cluster();
    let read = |text| -> OwnerReference<'_> { injectd_core::json::read(text).expect("reference") };
    let job = read(r#"{"kind":"Job","name":"sweep-1","uid":"j"}"#);
    let replica_set = read(r#"{"kind":"ReplicaSet","name":"web-5f4","uid":"r"}"#);
    assert_eq!(known_kind(&workloads, "a", &job, None).await, "Job");
    assert_eq!(known_kind(&workloads, "a", &replica_set, Some("5f4")).await, "deployment");
    assert_eq!(known_kind(&workloads, "a", &replica_set, None).await, "ReplicaSet");
    assert_eq!(requests.load(Ordering::Relaxed), 0);
    let resolved = owner("a", &job, None).resolve(&workloads, None).await.expect("no review waits");
    assert_eq!((&*resolved.kind, requests.load(Ordering::Relaxed)), ("cronjob", 1));
    assert_eq!(known_kind(&workloads, "a", &job, None).await, "CronJob");
    assert_eq!(known_kind(&workloads, "b", &job, None).await, "Job");
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_object_is_requested_once_and_then_known() {
    let (sources, requests) = cluster();
    for kind in ["Job", "ServiceAccount"] {
        let of = |uid| OwnerReference::new(kind, "sweep-1", uid);
        let (job, other) = (of("j"), of("k"));
        let lookup = || sources.object("a", &job, None);
        let (first, second) = tokio::join!(lookup(), lookup());
        let found = first.expect("an answer").expect("an object");
        assert_eq!(second.expect("an answer"), Some(Arc::clone(&found)));
        assert_eq!(*found.metadata.labels, [("app".to_owned(), "sweep".to_owned())]);
        assert_eq!(found.owner.controller().expect("a controller").name, "sweep");
        assert_eq!(lookup().await.expect("an answer"), Some(found));
        let recreated = sources.object("a", &other, None).await;
        assert!(recreated.expect("another request").is_some());
    }
    assert_eq!(requests.load(Ordering::Relaxed), 4);
    let unknown = sources.object("a", &OwnerReference::new("Secret", "x", ""), None).await;
    assert_eq!(unknown.expect("no request"), None);
    assert_eq!(requests.load(Ordering::Relaxed), 4);
}
