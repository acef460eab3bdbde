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
use injectd_testkit::Injector;

const REVIEW: &str = include_str!("../loadtest/review-12k.json");
const ENABLED: &str = r#""linkerd.io/inject":"enabled""#;
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

const CASES: [&str; 4] = ["injected", "overrides", "template-miss", "skipped"];

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
        print_line(&format!(
            "{case}: {found} instructions per review of 12 KB, committed {expected}"
        ));
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
    let injector: Injector = injectd_testkit::injector();
    let annotation = match case {
        "injected" => ENABLED.to_owned(),
        "overrides" | "template-miss" => {
            format!(r#"{ENABLED},"config.linkerd.io/proxy-log-level":"{OVERRIDE}""#)
        }
        _ => r#""linkerd.io/inject":"disabled""#.to_owned(),
    };
    let review = REVIEW.replacen(ENABLED, &annotation, 1);
    let value = review.find(OVERRIDE).map(|at| at..at + OVERRIDE.len());
    let mut review = review.into_bytes();
    for index in 0..reviews {
        if let Some(value) = value.clone().filter(|_| case == "template-miss") {
            review[value].copy_from_slice(format!("{index:04}").as_bytes());
        }
        let answer = injector.review(&review).now_or_never();
        let answer = answer.expect("a review without a cluster must not wait").expect("a review");
        std::hint::black_box(answer);
    }
}

#[expect(clippy::disallowed_methods, reason = "how a benchmark calls itself")]
fn variable(name: &str) -> Result<String, env::VarError> {
    env::var(name)
}

fn print_line(line: &str) {
    writeln!(io::stdout(), "{line}").expect("stdout must be writable");
}
