//! Times of a review and of its steps, for pods of three sizes. Names contain the load.
//!
//! Wall-clock times: compare within one run only. Each is printed with its ratio to a baseline of
//! the same run: the same work done in another way, or a lower bound.

#![expect(clippy::disallowed_types, reason = "trees are what the review is compared with")]

mod istio;

use std::{
    convert::Infallible,
    fs,
    future::pending,
    hint::black_box,
    io::{self, Write as _},
    str,
    sync::Arc,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use criterion::Criterion;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::{Request, Response, body::Bytes};
use injectd::{
    linkerd::{
        pod::{Object, TextMap},
        snapshot::Snapshot,
    },
    lookups::CallerFacts,
    namespace::NamespaceReads,
    outcome::Verdict,
    patch::PatchBuffer,
    review,
};
use injectd_cluster::{LookupLimits, WatchedNamespaces};
use injectd_telemetry::{metrics::WatchMetrics, readiness::Readiness};
use injectd_testkit::{
    Injector,
    reviews::{SIZES, TYPICAL, annotated_with, review_of, with_override},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, client::Body};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// An override on the namespace that the release reads.
const OVERRIDE: &str = "config.linkerd.io/proxy-uid";
const NAMESPACES: usize = 10_000;
/// Longer than listing namespaces takes.
const PATIENCE: Duration = Duration::from_mins(1);
/// Number of samples for a median, and the minimum duration of a sample.
const SAMPLES: usize = 101;
const SAMPLE: Duration = Duration::from_micros(100);
/// The first value of an override without a cached template; all values have the same length.
const FIRST_UID: u32 = 1_000_000_000;

fn main() {
    let mut bench =
        Bench { criterion: Criterion::default().configure_from_args(), rows: Vec::new() };
    let reviews = SIZES.map(|size| (size, review_of(size)));
    assert!(
        reviews[1].1 == TYPICAL.as_bytes(),
        "the golden case of 12k must be the review of the load tests"
    );
    for (size, review) in &reviews {
        bench.decode(size, review);
    }
    bench.lookup();
    bench.decide();
    bench.template();
    for (size, review) in &reviews {
        bench.render(size, review);
        bench.whole(size, review);
    }
    bench.whole_of_12k();
    bench.istio(&reviews);
    bench.criterion.final_summary();
    bench.print().expect("stdout must be writable");
}

struct Bench {
    criterion: Criterion,
    rows: Vec<Row>,
}

/// A median, and the name of its baseline.
struct Row {
    name: String,
    picoseconds: u128,
    baseline: Option<String>,
}

impl Bench {
    /// Runs a benchmark with criterion, and measures the median for the table.
    fn run<T>(&mut self, name: &str, baseline: Option<&str>, mut run: impl FnMut() -> T) {
        self.criterion.bench_function(name, |bencher| bencher.iter(&mut run));
        let mut time = |runs: u32| {
            let start = Instant::now();
            for _ in 0..runs {
                black_box(run());
            }
            start.elapsed()
        };
        // Short functions are measured in batches.
        let once = time(1).max(Duration::from_nanos(10));
        let runs = u32::try_from(SAMPLE.as_nanos() / once.as_nanos()).unwrap_or(1).max(1);
        let mut times: Vec<u128> =
            (0..SAMPLES).map(|_| time(runs).as_nanos() * 1000 / u128::from(runs)).collect();
        times.sort_unstable();
        let (name, baseline) = (name.to_owned(), baseline.map(str::to_owned));
        self.rows.push(Row { name, picoseconds: times[SAMPLES / 2].max(1), baseline });
    }

    fn decode(&mut self, size: &str, review: &[u8]) {
        let skip = format!("baseline_{size}_skip");
        self.run(&format!("baseline_{size}_memcpy"), None, || black_box(review).to_vec());
        self.run(&skip, None, || {
            serde_json::from_slice::<IgnoredAny>(black_box(review)).expect("JSON")
        });
        self.run(&format!("baseline_{size}_value"), Some(&skip), || value(review));
        self.run(&format!("decode_{size}"), Some(&skip), || {
            black_box(review::decode::<Object<'_>>(black_box(review)).expect("a review")).uid.len()
        });
    }

    fn lookup(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime must start");
        let namespaces = runtime.block_on(listed());
        let reads = NamespaceReads::default();
        let hit = "lookup_hit_of_10000_namespaces";
        self.run(hit, None, || {
            let found = namespaces.lookup(black_box("team-4711"), &reads).now_or_never();
            found.expect("a cached namespace must not wait").expect("a namespace")
        });
        self.run("lookup_miss_asks_in_process_api_server", Some(hit), || {
            runtime.block_on(namespaces.lookup(black_box("new"), &reads)).expect("an answer")
        });
    }

    /// A pod that disables injection, without template and patch.
    fn decide(&mut self) {
        let disabled = annotated_with("linkerd.io/inject", "disabled");
        let injector: Injector = injectd_testkit::injector();
        let request = review::decode(&disabled).expect("a review");
        self.run("decide_12k_skipped", Some("decode_12k"), || {
            let mut patch = PatchBuffer::json();
            let answered = injector.answer(&request, CallerFacts::default(), &mut patch);
            let outcome = answered.now_or_never().expect("must not wait").expect("answered");
            assert_eq!(outcome.verdict, Verdict::Skipped);
        });
    }

    fn template(&mut self) {
        let injector: Injector = injectd_testkit::injector();
        let snapshot = injector.mesh();
        let no_annotations = TextMap::default();
        let lookup = |snapshot: &Snapshot, value: Option<&str>| {
            let on_namespace = value.map(|value| (OVERRIDE, value)).into_iter();
            let overrides = snapshot.overrides(&no_annotations, None, on_namespace);
            snapshot.template(&overrides, "")
        };
        let without = "template_hit_without_overrides";
        self.run(without, None, || lookup(&snapshot, black_box(None)));
        self.run("template_hit_1_override", Some(without), || {
            lookup(&snapshot, black_box(Some("2000")))
        });
        let mut uid = FIRST_UID;
        self.run("template_miss_1_override_compiles", Some(without), || {
            uid += 1;
            lookup(&snapshot, Some(&uid.to_string()))
        });
    }

    /// All steps after decoding, with the patch as plain JSON and encoded into the answer.
    fn render(&mut self, size: &str, review: &[u8]) {
        let injector: Injector = injectd_testkit::injector();
        let request = review::decode(review).expect("a review");
        let patch = || {
            let mut patch = PatchBuffer::json();
            let answered = injector.answer(&request, CallerFacts::default(), &mut patch);
            let outcome = answered.now_or_never().expect("must not wait").expect("answered");
            assert_eq!(outcome.verdict, Verdict::Injected);
            patch.into_bytes()
        };
        let json = patch();
        let tree: Value = serde_json::from_slice(&json).expect("a patch is JSON");
        let of_tree = format!("baseline_{size}_render_tree");
        self.run(&of_tree, None, || black_box(&tree).clone().to_string());
        self.run(&format!("decide_render_{size}"), Some(&of_tree), patch);
        let base64 = format!("baseline_{size}_base64");
        self.run(&base64, None, || STANDARD.encode(black_box(&json)));
        self.run(&format!("decide_render_encode_{size}"), Some(&base64), || {
            let mut patch = review::patch_buffer();
            let answered = injector.answer(&request, CallerFacts::default(), &mut patch);
            let outcome = answered.now_or_never().expect("must not wait").expect("answered");
            review::encode(&request, &outcome, patch)
        });
    }

    fn whole(&mut self, size: &str, review: &[u8]) {
        let injector: Injector = injectd_testkit::injector();
        let tree = format!("baseline_{size}_injected_by_tree");
        let typed = format!("baseline_{size}_injected_by_diff_of_typed_pods");
        let patch = patch_of(&injector, review);
        self.run(&tree, None, || by_tree(review, &patch));
        self.run(&typed, Some(&tree), || by_diff_of_typed_pods(review, &patch));
        self.run(&format!("review_{size}_injected"), Some(&tree), || {
            answered(&injector, review, Verdict::Injected)
        });
    }

    fn whole_of_12k(&mut self) {
        let injector: Injector = injectd_testkit::injector();
        let hit = "review_12k_injected";
        let skipped = annotated_with("linkerd.io/inject", "disabled");
        self.run("review_12k_skipped", Some(hit), || {
            answered(&injector, &skipped, Verdict::Skipped)
        });
        let known = with_override(OVERRIDE, "2000");
        self.run("review_12k_injected_1_override_hit", Some(hit), || {
            answered(&injector, &known, Verdict::Injected)
        });
        let mut uid = FIRST_UID;
        let digits = uid.to_string();
        let mut review = with_override(OVERRIDE, &digits);
        let at = review.windows(digits.len()).position(|window| window == digits.as_bytes());
        let at = at.expect("the override must be in the review");
        let value = at..at + digits.len();
        self.run("review_12k_injected_1_override_miss", Some(hit), || {
            uid += 1;
            review[value.clone()].copy_from_slice(uid.to_string().as_bytes());
            answered(&injector, &review, Verdict::Injected)
        });
    }

    fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let cores = std::thread::available_parallelism().map_or(0, Into::into);
        let machine = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = machine.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.map_or("unknown", |name| name.trim_matches([' ', '\t', ':']));
        writeln!(out, "machine: {cores} cores, {model}; medians of {SAMPLES} samples")?;
        writeln!(out, "{:<48} {:>12} {:>9}  baseline", "", "ns", "ratio")?;
        for Row { name, picoseconds, baseline } in &self.rows {
            let of =
                baseline.as_ref().and_then(|name| self.rows.iter().find(|row| row.name == *name));
            let (ratio, of) = of.map_or((String::new(), ""), |of| {
                (thousandths(picoseconds * 1000 / of.picoseconds), of.name.as_str())
            });
            writeln!(out, "{name:<48} {:>12} {ratio:>9}  {of}", thousandths(*picoseconds))?;
        }
        Ok(())
    }
}

fn thousandths(number: u128) -> String {
    format!("{}.{:03}", number / 1000, number % 1000)
}

/// Length of an answer.
fn answered(injector: &Injector, review: &[u8], verdict: Verdict) -> usize {
    let answer = injector.review(black_box(review)).now_or_never();
    let answer = answer.expect("must not wait").expect("a review");
    assert_eq!(answer.outcome.verdict, verdict);
    black_box(answer.body).len()
}

fn value(review: &[u8]) -> Value {
    serde_json::from_slice(black_box(review)).expect("a review is JSON")
}

fn patch_of(injector: &Injector, review: &[u8]) -> json_patch::Patch {
    let answer = injector.review(review).now_or_never().expect("must not wait");
    let answer = value(&answer.expect("a review").body);
    let patch = answer["response"]["patch"].as_str().expect("a patch");
    let patch = STANDARD.decode(patch).expect("base64");
    serde_json::from_slice(&patch).expect("a patch is JSON")
}

/// A webhook that uses JSON trees: parses the review, copies the patch, writes the answer.
fn by_tree(review: &[u8], patch: &json_patch::Patch) -> String {
    let review = value(review);
    let patch = serde_json::to_string(&black_box(patch).clone()).expect("a patch is JSON");
    json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": {
        "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
        "patch": STANDARD.encode(patch)}})
    .to_string()
}

/// Most operators: a typed pod is changed, and the patch is the difference.
fn by_diff_of_typed_pods(review: &[u8], patch: &json_patch::Patch) -> String {
    let mut review = value(review);
    let pod: Pod = serde_json::from_value(review["request"]["object"].take()).expect("a pod");
    let before = serde_json::to_value(&pod).expect("a pod is JSON");
    let mut after = serde_json::to_value(&pod).expect("a pod is JSON");
    json_patch::patch(&mut after, patch).expect("the patch applies");
    let patch = serde_json::to_string(&json_patch::diff(&before, &after)).expect("JSON");
    json!({"response": {"uid": review["request"]["uid"], "allowed": true,
        "patchType": "JSONPatch", "patch": STANDARD.encode(patch)}})
    .to_string()
}

/// Namespaces that an API server in this process has listed.
async fn listed() -> Arc<WatchedNamespaces> {
    let lookups = Arc::new(LookupLimits::new(16, PATIENCE));
    let client = Client::new(tower::service_fn(api_server), "default");
    let namespaces = WatchedNamespaces::new(client, lookups, WatchMetrics::default());
    let namespaces = Arc::new(namespaces);
    let readiness = Readiness::default();
    let followed = Arc::clone(&namespaces).follow(readiness.hold());
    tokio::select! {
        () = followed => {}
        ready = tokio::time::timeout(PATIENCE, readiness.wait_until(true)) => {
            ready.expect("namespaces must be listed");
        }
    }
    namespaces
}

/// An API server that lists namespaces, sends no watch events, and has no other namespace.
async fn api_server(
    request: Request<Body>,
) -> Result<Response<http_body_util::combinators::BoxBody<Bytes, Infallible>>, Infallible> {
    let is_list = request.uri().path() == "/api/v1/namespaces";
    if is_list && request.uri().query().is_some_and(|query| query.contains("watch=true")) {
        pending::<()>().await;
        return Ok(Response::new(Empty::new().boxed()));
    }
    let namespace = |index| {
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"name": format!("team-{index}"), "resourceVersion": "7",
            "annotations": {"linkerd.io/inject": "enabled"}}})
    };
    let (status, answer) = if is_list {
        let items: Vec<Value> = (0..NAMESPACES).map(namespace).collect();
        let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
            "metadata": {"resourceVersion": "7"}, "items": items});
        (200, list)
    } else {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
            "message": "no", "reason": "NotFound", "code": 404});
        (404, status)
    };
    let response = Response::builder().status(status);
    Ok(response.body(Full::from(answer.to_string()).boxed()).expect("a response"))
}
