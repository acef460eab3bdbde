//! Counts the heap allocations of a review with warm caches, and limits them. Unlike times, counts
//! are stable.

#![expect(clippy::disallowed_types, reason = "an explanation reads a pod as a tree")]

use std::{str, sync::Arc, time::Duration};

use allocation_counter::measure;
use futures_util::FutureExt as _;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use injectd::{
    injector,
    lookups::CallerFacts,
    mesh::Mesh,
    observer::Observer,
    outcome::Verdict,
    patch::PatchBuffer,
    request::Subject,
    review,
    server::{EvaluationTurns, Gate, Limits, Share},
    standalone::Standalone,
    webhook::Webhook,
};
use injectd_core::explain::Explain;
use injectd_istio::mesh::{Istio, memory_of_evaluation};
use injectd_profiles::Profile;
use injectd_testkit::{Injector, istio};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

const REVIEW: &str = include_str!("../loadtest/review-12k.json");
/// Budget of the core (`design.md` §10).
const MAX_IN_CORE: u64 = 15;
/// Budget of the core for Istio, with the answer of an earlier pod.
const MAX_OF_ISTIO: u64 = 50;
/// Budget including HTTP.
const MAX_WITH_HTTP: u64 = 40;
/// Maximum size of a waiting review's future.
const MAX_FUTURE_BYTES: usize = 4 << 10;
/// Longer than any step takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// Reviews for the warm-up, which fills caches and buffers.
const WARM_UP: usize = 20;
/// Reviews to count. The cache does maintenance in a few of them.
const COUNTED: usize = 200;

/// Maximum and median number of allocations of a review with warm caches.
struct Count {
    most: u64,
    median: u64,
}

impl Count {
    fn of(mut review: impl FnMut() -> u64) -> Self {
        for _ in 0..WARM_UP {
            review();
        }
        let mut counts = [0; COUNTED];
        counts.fill_with(review);
        counts.sort_unstable();
        Self { most: counts[COUNTED - 1], median: counts[COUNTED / 2] }
    }
}

fn in_core<M: Mesh>(injector: &injector::Injector<M, Standalone>, review: &str) -> Count {
    Count::of(|| {
        let mut verdict = None;
        let counted = measure(|| {
            let answer = injector.review(review.as_bytes()).now_or_never();
            let answer = answer.expect("a review without a cluster must not wait");
            verdict = answer.ok().map(|answer| answer.outcome.verdict);
        });
        assert_eq!(verdict, Some(Verdict::Injected));
        counted.count_total
    })
}

fn assert_within(count: &Count, budget: u64) {
    let Count { most, median } = count;
    assert!(*most <= budget, "at most {most} allocations, median {median}; the budget is {budget}");
}

#[test]
fn the_future_of_a_review_is_small() {
    let injector: Injector = injectd_testkit::injector();
    // Futures are moved before they are polled, so futures for lookups are boxed on a cache miss.
    let bytes = size_of_val(&injector.review(REVIEW.as_bytes()));
    assert!(bytes <= MAX_FUTURE_BYTES, "{bytes} bytes; the budget is {MAX_FUTURE_BYTES}");
}

#[test]
fn a_review_without_overrides_stays_within_the_budget() {
    let injector: Injector = injectd_testkit::injector();
    assert_within(&in_core(&injector, REVIEW), MAX_IN_CORE);
}

#[test]
fn a_review_for_istio_with_a_known_answer_stays_within_the_budget() {
    assert_within(&in_core(&istio::injector(), REVIEW), MAX_OF_ISTIO);
}

#[test]
fn a_review_with_overrides_stays_within_the_budget() {
    let overrides = r#""config.linkerd.io/proxy-cpu-limit":"1500m",
        "config.linkerd.io/proxy-memory-request":"48Mi",
        "config.linkerd.io/skip-outbound-ports":"5432,6379","linkerd.io/inject":"#;
    let review = REVIEW.replacen(r#""linkerd.io/inject":"#, overrides, 1);
    assert_ne!(review, REVIEW, "the review must be annotated");
    let injector: Injector = injectd_testkit::injector();
    assert_within(&in_core(&injector, &review), MAX_IN_CORE);
}

/// The end of an answer with a sidecar and without warnings.
const END: &[u8] = br#""auditAnnotations":{"verdict":"injected"}},"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#;

/// Sends one review over a kept-alive connection. The client does not allocate.
async fn send(client: &mut DuplexStream, request: &[u8], answer: &mut [u8]) {
    client.write_all(request).await.expect("the server must read");
    client.read_exact(answer).await.expect("must be answered");
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    assert!(answer.ends_with(END));
}

/// Length of an answer with its header, from the first bytes of the answer.
fn answer_len(begin: &[u8]) -> usize {
    let begin = str::from_utf8(begin).expect("an answer must be text");
    let (header, _) = begin.split_once("\r\n\r\n").expect("the header must be short");
    let length = header.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length
        .and_then(|length| length.parse().ok())
        .expect("an answer must have a content-length");
    header.len() + "\r\n\r\n".len() + length
}

#[test]
fn a_review_over_http_stays_within_the_budget() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime with timers must start");
    let (mut client, server) = tokio::io::duplex(64 << 10);
    let profile = Profile::Linkerd(Arc::new(injectd_testkit::injector()));
    let limits = Limits::default();
    let turns = EvaluationTurns::of_runtime(&limits);
    let service = Webhook::new(profile, &limits, turns, Observer::default());
    let service = Gate::new(service, Some(Share::default()), Arc::default());
    let length = REVIEW.len();
    let request = format!(
        "POST /?timeout=10s HTTP/1.1\r\nHost: injector\r\nContent-Length: {length}\r\n\r\n{REVIEW}"
    );
    let mut answer = vec![0; 256];
    let first = async {
        tokio::spawn(async move {
            let http = auto::Builder::new(TokioExecutor::new());
            http.serve_connection(TokioIo::new(server), service).await
        });
        let first = client.write_all(request.as_bytes()).await;
        first.expect("the server must read");
        let begin = client.read_exact(&mut answer).await;
        begin.expect("must be answered");
        let rest = answer_len(&answer) - answer.len();
        answer.resize(answer.len() + rest, 0);
        let rest = client.read_exact(&mut answer[256..]).await;
        rest.expect("the answer must be complete");
    };
    let first = runtime.block_on(async { tokio::time::timeout(PATIENCE, first).await });
    first.expect("must not hang");
    let count = Count::of(|| {
        let send = || runtime.block_on(send(&mut client, request.as_bytes(), &mut answer));
        measure(send).count_total
    });
    assert_within(&count, MAX_WITH_HTTP);
}

/// An explanation is of one pod: it may cost a few times what the answer costs.
const ANSWERS_OF_AN_EXPLANATION: u64 = 3;
/// Maximum length of an explanation of a pod with thousands of keys.
const MAX_EXPLANATION_BYTES: usize = 128 << 10;
/// Keys of a pod that make its explanation long.
const MANY: usize = 5_000;

/// The review of a pod with these annotations.
fn annotated(annotations: impl Iterator<Item = (String, String)>) -> String {
    let annotations: serde_json::Map<_, _> =
        annotations.map(|(key, value)| (key, value.into())).collect();
    let pod = serde_json::json!({
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    let request = serde_json::json!({"uid": "u", "namespace": "shop", "object": pod,
        "kind": {"group": "", "version": "v1", "kind": "Pod"}});
    serde_json::json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": request})
    .to_string()
}

/// Bytes that an answer, the tree of the review, and the explanation allocate.
fn explained<M: Explain>(injector: &injector::Injector<M, Standalone>, review: &str) -> [u64; 3] {
    let answered = measure(|| {
        let answer = injector.review(review.as_bytes()).now_or_never();
        answer.expect("must not wait").expect("an answer");
    });
    let parsed = measure(|| drop(serde_json::from_str::<serde_json::Value>(review)));
    let mut explanation = None;
    let counted = measure(|| {
        let tree: serde_json::Value = serde_json::from_str(review).expect("must be JSON");
        let request = injectd::review::decode(review.as_bytes()).expect("a request");
        let (facts, mut patch) = (CallerFacts::default(), PatchBuffer::json());
        let object = &tree["request"]["object"];
        let found = injector.explain(&request, object, facts, &mut patch).now_or_never();
        explanation = found.expect("must not wait").ok();
    });
    let text = serde_json::to_string(&explanation.expect("an explanation")).expect("JSON");
    assert!(text.len() <= MAX_EXPLANATION_BYTES, "{} bytes", text.len());
    [answered, parsed, counted].map(|counted| counted.count_total)
}

#[test]
fn an_explanation_costs_at_most_three_answers() {
    let unknown = |prefix: &'static str| {
        annotated((0..MANY).map(move |index| (format!("{prefix}nothing-{index}"), "v".into())))
    };
    let config: serde_json::Map<_, _> =
        (0..MANY).map(|index| (format!("K{index}"), "v".into())).collect();
    let config = serde_json::json!({"proxyMetadata": config}).to_string();
    let config = annotated([("proxy.istio.io/config".to_owned(), config)].into_iter());
    let linkerd: Injector = injectd_testkit::injector();
    for (what, [answered, parsed, explained]) in [
        ("unknown, Istio", explained(&istio::injector(), &unknown("sidecar.istio.io/"))),
        ("ProxyConfig, Istio", explained(&istio::injector(), &config)),
        ("unknown, Linkerd", explained(&linkerd, &unknown("config.linkerd.io/"))),
        ("mistyped, Linkerd", explained(&linkerd, &unknown("linkerd.io/"))),
    ] {
        // Linkerd's answer needs no tree; an explanation does.
        let least = answered.max(parsed);
        assert!(
            explained <= ANSWERS_OF_AN_EXPLANATION * least,
            "{what}: {explained} allocations; {answered} for the answer, {parsed} for a tree"
        );
    }
}

/// Reviews of a pod of about so many bytes, each with most of them in one place.
fn large_reviews(bytes: usize) -> Vec<(&'static str, String)> {
    let pairs = |prefix: &str| -> serde_json::Map<String, Value> {
        (0..bytes / 16).map(|index| (format!("{prefix}{index:05}"), json!("v"))).collect()
    };
    let names: Vec<_> = (0..bytes / 8).map(|index| format!("k{index:x}: v")).collect();
    let config = format!("proxyMetadata: {{{}}}", names.join(", "));
    let volumes: Vec<_> =
        (0..bytes / 40).map(|index| json!({"name": format!("v{index}"), "emptyDir": {}})).collect();
    let volumes = Value::from(volumes).to_string();
    let containers: Vec<_> =
        (0..bytes / 32).map(|index| json!({"name": format!("c{index}"), "image": "x"})).collect();
    let variables: Vec<_> =
        (0..bytes / 28).map(|index| json!({"name": format!("E{index}"), "value": "x"})).collect();
    let shapes = [
        (
            "proxy.istio.io/config",
            "/metadata/annotations",
            json!({"proxy.istio.io/config": config}),
        ),
        ("userVolume", "/metadata/annotations", json!({"sidecar.istio.io/userVolume": volumes})),
        ("annotations", "/metadata/annotations", Value::Object(pairs("a"))),
        ("labels", "/metadata/labels", Value::Object(pairs("l"))),
        ("containers", "/spec/containers", Value::Array(containers)),
        ("variables", "/spec/containers/0/env", Value::Array(variables)),
        ("image", "/spec/containers/0/image", json!("x".repeat(bytes))),
        ("arguments", "/spec/containers/0/args", json!(vec![""; bytes / 3])),
        ("numbers", "/spec/unknown", json!(vec![0; bytes / 2])),
        ("objects", "/spec/containers/0/env", json!(vec![json!({}); bytes / 3])),
    ];
    let review = |(name, place, value)| {
        let mut pod = json!({"metadata": {"name": "web", "labels": {}, "annotations": {}},
            "spec": {"unknown": [],
                "containers": [{"name": "web", "image": "web", "env": [], "args": []}]}});
        *pod.pointer_mut(place).expect("a place") = value;
        let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
        let request = json!({"uid": "1", "kind": kind, "namespace": "shop", "object": pod});
        let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": request});
        (name, review.to_string())
    };
    shapes.map(review).into()
}

#[test]
fn the_memory_of_an_evaluation_is_within_its_estimate() {
    for bytes in [1 << 10, 64 << 10] {
        for (name, review) in large_reviews(bytes) {
            // A new injector has no answer in memory.
            let injector: injector::Injector<Istio, Standalone> = istio::injector();
            let request = review::decode::<<Istio as Mesh>::Object<'_>>(review.as_bytes());
            let request = request.expect("a review");
            let Subject::Object(object) = &request.subject else { panic!("expected an object") };
            let estimate = memory_of_evaluation(object);
            let mut answer = None;
            let counted = measure(|| answer = injector.review(review.as_bytes()).now_or_never());
            let verdict = answer.expect("must not wait").expect("an answer").outcome.verdict;
            assert_eq!(verdict, Verdict::Injected, "{name}");
            let peak = usize::try_from(counted.bytes_max).expect("a size");
            assert!(peak <= estimate, "{name}: {peak} bytes of {} for {estimate}", review.len());
        }
    }
}
