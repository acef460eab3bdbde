//! Events on owners, with an API server in the same process. The clock is paused, and jumps.

#![expect(clippy::disallowed_types, reason = "requests are looked into as trees")]

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, Response};
use injectd::events::Recorder;
use injectd_cluster::Events;
use injectd_profiles::Injector;
use injectd_telemetry::metrics::{EventMetrics, Registry};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Longer than any step takes by the paused clock.
const LONG: Duration = Duration::from_hours(2);

/// An API server with one Deployment.
#[derive(Clone, Default)]
struct ApiServer(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// Method, path, body.
    requests: Vec<(Method, String, Value)>,
    /// Status codes of the next writes; later writes get 201.
    statuses: VecDeque<u16>,
    /// Uid of the Deployment; `None` if it does not exist.
    object_uid: Option<&'static str>,
    is_hung: bool,
}

impl ApiServer {
    fn with_deployment() -> Self {
        let server = Self::default();
        server.set(|seen| seen.object_uid = Some("u1"));
        server
    }

    fn set<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.0.lock().expect("no test must panic with the lock"))
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let is_read = parts.method == Method::GET;
        let (status, is_hung) = self.set(|seen| {
            seen.requests.push((parts.method, path, body));
            let status = match seen.object_uid {
                None if is_read => 404,
                _ if is_read => 200,
                _ => seen.statuses.pop_front().unwrap_or(201),
            };
            (status, seen.is_hung)
        });
        if is_hung {
            pending::<()>().await;
        }
        let object_uid = self.set(|seen| seen.object_uid);
        let answer = match status {
            200 | 201 => json!({"apiVersion": "v1", "kind": "Event",
                "metadata": {"name": "x", "uid": object_uid}}),
            code => json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "no", "reason": if code == 404 { "NotFound" } else { "Other" }, "code": code}),
        };
        let response = Response::builder().status(status);
        response.body(Full::from(answer.to_string())).expect("a response")
    }

    /// The writes so far: method, name of the event from the path, body.
    fn writes(&self) -> Vec<(Method, String, Value)> {
        let is_write = |(method, ..): &&(Method, String, Value)| *method != Method::GET;
        self.set(|seen| seen.requests.iter().filter(is_write).cloned().collect())
    }

    fn counts(&self) -> Vec<(Method, Value)> {
        self.writes().into_iter().map(|(method, _, body)| (method, body["count"].clone())).collect()
    }
}

/// A recorder with its injector and metrics.
struct Bench {
    server: ApiServer,
    injector: Arc<Injector>,
    registry: Registry,
    recorder: Recorder,
}

impl Bench {
    fn new(server: ApiServer) -> Self {
        let registry = Registry::new();
        let injector: Arc<Injector> = Arc::new(injectd_testkit::injector());
        let metrics = EventMetrics::register(&registry);
        let events = Events::new(server.client());
        let recorder = Recorder::start(injector.lookups().clone(), events, metrics);
        Self { server, injector, registry, recorder }
    }

    /// Reviews a pod of a `ReplicaSet` of the Deployment `name`.
    async fn review(&self, name: &str, inject: &str, dry_run: bool) {
        let review = json!({"request": {"uid": "1", "namespace": "shop", "dryRun": dry_run,
            "kind": {"version": "v1", "kind": "Pod"},
            "object": {"metadata": {"generateName": "web-", "labels": {"pod-template-hash": "5f4"},
                "annotations": {"linkerd.io/inject": inject}, "ownerReferences": [
                    {"kind": "ReplicaSet", "name": format!("{name}-5f4"), "uid": "r1"}]},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]}}}});
        let review = review.to_string();
        let answer = self.injector.review(review.as_bytes()).await.expect("a review");
        self.recorder.record(&answer.outcome);
    }

    fn counted(&self, result: &str) -> u64 {
        let label = format!("injectd_events_total{{result=\"{result}\"}} ");
        let text = self.registry.exporter().render();
        let line = text.lines().find_map(|line| line.strip_prefix(&label));
        line.and_then(|count| count.parse().ok()).expect("a counter")
    }
}

#[tokio::test(start_paused = true)]
async fn pods_of_one_owner_share_an_event_with_a_rising_count() {
    let bench = Bench::new(ApiServer::with_deployment());
    for _ in 0..5 {
        bench.review("web", "enabled", false).await;
        sleep(Duration::from_millis(10)).await;
    }
    sleep(LONG).await;
    let writes = bench.server.writes();
    let [(post, events, made), (patch, event, counted)] = writes.as_slice() else {
        panic!("expected an event and its count, found {writes:?}");
    };
    assert_eq!((post, patch), (&Method::POST, &Method::PATCH));
    assert_eq!(events, "/api/v1/namespaces/shop/events");
    let name = made["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("web."), "{name}");
    assert_eq!(*event, format!("{events}/{name}"));
    assert_eq!(made["metadata"]["namespace"], "shop");
    assert_eq!(made["reason"], "Injected");
    assert_eq!(made["message"], "Linkerd sidecar proxy injected");
    assert_eq!(made["source"]["component"], "linkerd-proxy-injector");
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop",
        "name": "web", "uid": "u1"});
    assert_eq!(made["involvedObject"], object);
    assert_eq!((&made["count"], &counted["count"]), (&json!(1), &json!(5)));
    assert_eq!((bench.counted("sent"), bench.counted("folded")), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_written_at_growing_intervals() {
    let bench = Bench::new(ApiServer::with_deployment());
    for _ in 0..1200 {
        bench.review("web", "enabled", false).await;
        sleep(Duration::from_millis(500)).await;
    }
    sleep(LONG).await;
    let counts = bench.server.counts();
    assert_eq!(counts.last().expect("writes").1, 1200);
    assert!((9..=13).contains(&counts.len()), "ten minutes took {} writes", counts.len());
}

#[tokio::test(start_paused = true)]
async fn each_owner_and_reason_has_its_own_event() {
    let bench = Bench::new(ApiServer::with_deployment());
    for (name, inject) in [("a", "enabled"), ("b", "enabled"), ("a", "disabled")] {
        bench.review(name, inject, false).await;
    }
    sleep(LONG).await;
    let mut events: Vec<_> = bench.server.writes().into_iter().map(|(_, _, body)| body).collect();
    events.sort_by_key(|event| format!("{} {}", event["involvedObject"]["name"], event["reason"]));
    let reasons: Vec<_> = events.iter().map(|event| event["reason"].as_str()).collect();
    assert_eq!(reasons, [Some("Injected"), Some("InjectionSkipped"), Some("Injected")]);
    let skipped = concat!(
        "Linkerd sidecar proxy injection skipped: ",
        r#"neither the namespace nor the pod have the annotation "linkerd.io/inject:enabled""#
    );
    assert_eq!(events[1]["message"], skipped);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_does_not_exist_gets_no_event() {
    let bench = Bench::new(ApiServer::default());
    bench.review("web", "enabled", false).await;
    sleep(LONG).await;
    assert_eq!(bench.server.writes(), []);
    assert_eq!(bench.counted("no_object"), 1);
    bench.server.set(|seen| seen.object_uid = Some("u1"));
    bench.review("web", "enabled", false).await;
    sleep(LONG).await;
    assert_eq!(
        bench.server.counts(),
        [(Method::POST, json!(1))],
        "the owner must be looked up again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_sends_no_event() {
    let bench = Bench::new(ApiServer::with_deployment());
    bench.review("web", "enabled", true).await;
    sleep(LONG).await;
    assert_eq!(bench.server.set(|seen| seen.requests.len()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_retried_and_a_rejected_one_is_not() {
    let bench = Bench::new(ApiServer::with_deployment());
    bench.server.set(|seen| seen.statuses.extend([500, 429]));
    bench.review("web", "enabled", false).await;
    sleep(LONG).await;
    let posts = [json!(1), json!(1), json!(1)].map(|count| (Method::POST, count));
    assert_eq!(bench.server.counts(), posts);
    assert_eq!((bench.counted("sent"), bench.counted("failed")), (1, 0));

    bench.server.set(|seen| seen.statuses.push_back(403));
    bench.review("web", "disabled", false).await;
    sleep(LONG).await;
    assert_eq!(bench.server.writes().len(), 4);
    assert_eq!(bench.counted("failed"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_is_created_again() {
    let bench = Bench::new(ApiServer::with_deployment());
    bench.review("web", "enabled", false).await;
    sleep(LONG).await;
    bench.server.set(|seen| seen.statuses.push_back(404));
    bench.review("web", "enabled", false).await;
    sleep(LONG).await;
    let expected = [(Method::POST, 1), (Method::PATCH, 2), (Method::POST, 2)];
    assert_eq!(bench.server.counts(), expected.map(|(method, count)| (method, json!(count))));
}

#[tokio::test(start_paused = true)]
async fn reviews_do_not_wait_for_an_api_server_that_hangs() {
    let bench = Bench::new(ApiServer::with_deployment());
    bench.server.set(|seen| seen.is_hung = true);
    for owner in 0..6500 {
        bench.review(&format!("web-{owner}"), "enabled", false).await;
        tokio::task::yield_now().await;
    }
    assert!(bench.counted("dropped") >= 500, "{} were dropped", bench.counted("dropped"));
    assert!(
        bench.server.set(|seen| seen.requests.len()) <= 16,
        "concurrent requests must be limited"
    );
    bench.server.set(|seen| seen.is_hung = false);
    sleep(LONG).await;
    let sent = bench.counted("sent") + bench.counted("failed");
    assert_eq!(sent + bench.counted("dropped"), 6500, "each event must be counted once");
}
