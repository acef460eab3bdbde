//! Times of one review of 12 KB and of its steps. Wall clock: compare within one run only.

#![expect(clippy::disallowed_types, reason = "a tree is what the review is compared with")]

use std::{
    hint::black_box,
    io::{self, Write as _},
    str,
    time::Instant,
};

use criterion::{BatchSize, Criterion};
use injectd::{
    injector::Injector,
    json,
    metrics::CacheMetrics,
    outcome::Verdict,
    pod::{Anything, TextMap},
    review,
};
use serde_json::Value;
use tokio::runtime::Runtime;

#[path = "../loadtest/standalone.rs"]
mod standalone;

/// The binary's allocator.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REVIEW: &[u8] = include_bytes!("../loadtest/review-12k.json");
/// An override that the release reads, to be found on the namespace.
const OVERRIDE: &str = "config.linkerd.io/proxy-uid";
/// Runs that a baseline is the median of.
const BASELINE_RUNS: usize = 501;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    decode(&mut criterion);
    template(&mut criterion);
    whole(&mut criterion).expect("stdout must take text");
    criterion.final_summary();
}

fn decode(criterion: &mut Criterion) {
    criterion.bench_function("decode_12k", |bencher| {
        bencher.iter(|| {
            black_box(review::decode(black_box(REVIEW)).expect("the review must be one"));
        });
    });
    criterion.bench_function("baseline_12k_skip", |bencher| {
        bencher.iter(|| {
            json::read::<Anything>(str::from_utf8(black_box(REVIEW)).expect("the review is text"))
        });
    });
}

fn template(criterion: &mut Criterion) {
    let snapshot = standalone::injector().snapshot();
    let no_annotations = TextMap::default();
    let lookup = |value: &str| {
        let on_namespace = [(OVERRIDE, value)].into_iter();
        let overrides = snapshot.overrides(&no_annotations, None, on_namespace);
        snapshot.template(&overrides, "", &CacheMetrics::default())
    };
    criterion.bench_function("template_without_overrides", |bencher| {
        bencher.iter(|| {
            let overrides = snapshot.overrides(&no_annotations, None, [].into_iter());
            snapshot.template(&overrides, "", &CacheMetrics::default())
        });
    });
    criterion.bench_function("template_hit_1_override", |bencher| {
        bencher.iter(|| lookup(black_box("2000")));
    });
    let mut uid = 10_000;
    criterion.bench_function("template_miss_1_override", |bencher| {
        bencher.iter_batched(
            || {
                uid += 1;
                uid.to_string()
            },
            |value| lookup(&value),
            BatchSize::SmallInput,
        );
    });
}

fn whole(criterion: &mut Criterion) -> io::Result<()> {
    let injector = standalone::injector();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without drivers must start");
    criterion.bench_function("review_12k_injected", |bencher| {
        bencher.iter(|| inject(&runtime, &injector));
    });
    criterion.bench_function("baseline_12k_parse_to_value", |bencher| {
        bencher.iter(parse_to_value);
    });
    let review = median_ns(|| inject(&runtime, &injector));
    let baseline = median_ns(parse_to_value);
    let [review, baseline] = [review, baseline].map(|ns| ns.max(1));
    writeln!(
        io::stdout().lock(),
        "whole review ÷ parse to serde_json::Value: {}.{:02} ({review} ns ÷ {baseline} ns, medians)",
        review / baseline,
        review % baseline * 100 / baseline,
    )
}

/// Length of the answer to a review that must be injected.
fn inject(runtime: &Runtime, injector: &Injector) -> usize {
    let answer = runtime.block_on(injector.review(black_box(REVIEW)));
    let answer = answer.expect("the review must be one");
    assert_eq!(answer.outcome.verdict, Verdict::Injected);
    black_box(answer.body).len()
}

fn parse_to_value() -> Value {
    serde_json::from_slice(black_box(REVIEW)).expect("the review must be JSON")
}

fn median_ns<T>(mut run: impl FnMut() -> T) -> u128 {
    let mut times = [0; BASELINE_RUNS];
    for time in &mut times {
        let start = Instant::now();
        black_box(run());
        *time = start.elapsed().as_nanos();
    }
    times.sort_unstable();
    times[BASELINE_RUNS / 2]
}
