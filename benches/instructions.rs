//! Instructions per review, counted by callgrind. The counts do not depend on the load of the
//! machine. Fails if a case has grown by more than 5 % over `instructions.txt`; `BLESS=1` rewrites
//! that file.
//!
//! This program runs itself under valgrind twice, with few reviews and with many; the difference is
//! the cost of the reviews. Without valgrind it prints a message and exits.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode},
};

use futures_util::FutureExt as _;
use injectd::{injector, mesh::Mesh, outcome::TemplateLookup, standalone::Standalone};
use injectd_testkit::{
    Injector, istio,
    reviews::{TYPICAL, annotated_with, review_of, with_override},
};

/// The value of an override, with the length of a review's number.
const OVERRIDE: &str = "0000";
/// Number of reviews in the two runs.
const SHORT_RUN: u64 = 100;
const LONG_RUN: u64 = 600;
/// Allowed growth, in percent.
const MAX_GROWTH: u64 = 5;
/// Environment variables of the counted runs: the case, and the number of reviews.
const CASE: &str = "INSTRUCTIONS_CASE";
const REVIEWS: &str = "INSTRUCTIONS_REVIEWS";

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
    if let (Ok(case), Ok(reviews)) = (variable(CASE), variable(REVIEWS)) {
        run(&case, reviews.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        print_line("instructions: skipped, valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let (mut table, mut is_grown) = (String::new(), false);
    for case in CASES {
        let found = (count(case, LONG_RUN) - count(case, SHORT_RUN)) / (LONG_RUN - SHORT_RUN);
        writeln!(table, "{case} {found}").expect("writing to a string must succeed");
        let line = committed.lines().find_map(|line| line.strip_prefix(case));
        let expected: u64 = line.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
        print_line(&format!("{case}: {found} instructions per review, committed {expected}"));
        is_grown |= found > expected + expected * MAX_GROWTH / 100;
    }
    if variable("BLESS").is_ok() {
        fs::write(&path, table).expect("benches/instructions.txt must be writable");
    } else if is_grown {
        print_line("grown by more than 5 %: reduce it, or run with BLESS=1 and explain why");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The instructions that callgrind counts in a run.
fn count(case: &str, reviews: u64) -> u64 {
    let this = env::current_exe().expect("the path of the binary must be known");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        // The environment of the machine must not change the counts.
        .env_clear()
        .env(CASE, case)
        .env(REVIEWS, format!("{reviews:04}"))
        .output()
        .expect("valgrind must run");
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{stderr}");
    let collected = stderr.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected.and_then(|count| count.trim().parse().ok()).expect("callgrind must print its count")
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
        _ => panic!("{CASE} must name a case"),
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

#[expect(clippy::disallowed_methods, reason = "how a benchmark calls itself")]
fn variable(name: &str) -> Result<String, env::VarError> {
    env::var(name)
}

fn print_line(line: &str) {
    writeln!(io::stdout(), "{line}").expect("stdout must be writable");
}
