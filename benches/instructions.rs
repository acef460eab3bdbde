//! Instructions per review, counted by callgrind ([`Counts`]). Fails if a case has grown by more than
//! 5 % over `instructions.txt`; `BLESS=1` rewrites that file.

use std::{path::Path, process::ExitCode};

use futures_util::FutureExt as _;
use injectd::{injector, mesh::Mesh, outcome::TemplateLookup, standalone::Standalone};
use injectd_testkit::{
    Injector, istio,
    reviews::{TYPICAL, annotated_with, review_of, with_override},
};

#[path = "instructions/counts.rs"]
mod counts;

use counts::Counts;

/// The value of an override, with the length of a review's number.
const OVERRIDE: &str = "0000";
/// Number of reviews in the two runs.
const ROUNDS: [u64; 2] = [100, 600];

const CASES: [&str; 7] = [
    "injected",
    "overrides",
    "template-miss",
    "skipped",
    "istio-warm-12k",
    "istio-warm-68k",
    "istio-cold-12k",
];

fn main() -> ExitCode {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    Counts { cases: &CASES, file: &file, rounds: ROUNDS }.main(run)
}

fn run(case: &str, reviews: u64) {
    let linkerd = || -> Injector { injectd_testkit::injector() };
    let log_level = || with_override("config.linkerd.io/proxy-log-level", OVERRIDE);
    match case {
        "injected" => same(&linkerd(), TYPICAL.as_bytes(), reviews),
        "overrides" => same(&linkerd(), &log_level(), reviews),
        "template-miss" => each_another(&linkerd(), log_level(), reviews),
        "skipped" => same(&linkerd(), &annotated_with("linkerd.io/inject", "disabled"), reviews),
        "istio-warm-12k" => same(&istio::injector(), TYPICAL.as_bytes(), reviews),
        "istio-warm-68k" => same(&istio::injector(), &review_of("68k"), reviews),
        "istio-cold-12k" => {
            let cpu = with_override("sidecar.istio.io/proxyCPU", &format!("{OVERRIDE}m"));
            each_another(&istio::injector(), cpu, reviews);
        }
        _ => panic!("not a case: {case}"),
    }
}

/// The same review, again and again.
fn same<M: Mesh>(injector: &injector::Injector<M, Standalone>, review: &[u8], reviews: u64) {
    for _ in 0..reviews {
        ask(injector, review);
    }
}

/// Reviews with the value of the override that no other has.
fn each_another<M: Mesh>(
    injector: &injector::Injector<M, Standalone>,
    mut review: Vec<u8>,
    reviews: u64,
) {
    let value = review.windows(OVERRIDE.len()).position(|bytes| bytes == OVERRIDE.as_bytes());
    let value = value.expect("the review must be annotated");
    for index in 0..reviews {
        review[value..value + OVERRIDE.len()].copy_from_slice(format!("{index:04}").as_bytes());
        let template = ask(injector, &review);
        assert_eq!(template, Some(TemplateLookup::Miss), "review {index}");
    }
}

fn ask<M: Mesh>(
    injector: &injector::Injector<M, Standalone>,
    review: &[u8],
) -> Option<TemplateLookup> {
    let answer = injector.review(review).now_or_never();
    let answer = answer.expect("a review without a cluster must not wait").expect("a review");
    std::hint::black_box(answer).outcome.template
}
