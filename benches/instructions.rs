//! Instructions per review, counted by callgrind: the same on every run, whatever else the machine
//! does. Fails if a case has grown by more than 5 % over `instructions.txt`; with `BLESS=1` that
//! file is written anew.
//!
//! This program runs itself under valgrind, with few reviews and with many; the difference is what
//! reviews cost. Where there is no valgrind it says so and passes over.

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::Path,
    process::{Command, ExitCode},
};

use futures_util::FutureExt as _;

#[path = "../loadtest/standalone.rs"]
mod standalone;

const REVIEW: &str = include_str!("../loadtest/review-12k.json");
const ENABLED: &str = r#""linkerd.io/inject":"enabled""#;
/// The value of an override, as long as a number of a review.
const OVERRIDE: &str = "0000";
/// How many reviews there are in the two runs.
const FEW: u64 = 100;
const MANY: u64 = 600;
/// Growth that is not noise, in percent.
const MOST_GROWTH: u64 = 5;
/// Set in the runs that are counted: the case, and how many reviews.
const CASE: &str = "INSTRUCTIONS_CASE";
const REVIEWS: &str = "INSTRUCTIONS_REVIEWS";

const CASES: [&str; 4] = ["injected", "overrides", "template-miss", "skipped"];

fn main() -> ExitCode {
    if let (Ok(case), Ok(reviews)) = (variable(CASE), variable(REVIEWS)) {
        run(&case, reviews.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        tell("instructions: passed over, there is no valgrind");
        return ExitCode::SUCCESS;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let (mut table, mut is_grown) = (String::new(), false);
    for case in CASES {
        let found = (count(case, MANY) - count(case, FEW)) / (MANY - FEW);
        writeln!(table, "{case} {found}").expect("a string must take text");
        let line = committed.lines().find_map(|line| line.strip_prefix(case));
        let expected: u64 = line.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
        tell(&format!("{case}: {found} instructions per review of 12 KB, committed {expected}"));
        is_grown |= found > expected + expected * MOST_GROWTH / 100;
    }
    if variable("BLESS").is_ok() {
        fs::write(&path, table).expect("benches/instructions.txt must be writable");
    } else if is_grown {
        tell("grown by more than 5 %: mend it, or BLESS=1 and say why");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What callgrind counts of a run.
fn count(case: &str, reviews: u64) -> u64 {
    let this = env::current_exe().expect("a program must know where it is");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        // Nothing that differs from machine to machine.
        .env_clear()
        .env(CASE, case)
        .env(REVIEWS, format!("{reviews:04}"))
        .output()
        .expect("valgrind must run");
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
    let collected = told.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected.and_then(|it| it.trim().parse().ok()).expect("callgrind must tell its count")
}

fn run(case: &str, reviews: u64) {
    let injector = standalone::injector();
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

fn tell(line: &str) {
    writeln!(io::stdout(), "{line}").expect("stdout must take text");
}
