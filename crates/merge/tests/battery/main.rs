//! Compares the merge with `strategicpatch.StrategicMergePatch` of k8s.io/apimachinery.
//!
//! Recorded answers are compared always. `INJECTD_ASK_GO=10000` also asks Go for that many random
//! merges (`go` must be on the path; `INJECTD_ASK_GO_FROM` is the first seed). `just record-merge`
//! records anew.

#![expect(clippy::disallowed_types, reason = "Pods, patches and answers are trees")]
#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

mod answers;
mod generator;
mod kinds;
mod releases;
mod types;
mod written;

use std::collections::BTreeMap;

use answers::Case;
use kinds::Kind;

const RECORDED_SEEDS: u64 = 1900;

/// Prints the differences that no kind explains and counts all by kind; the answer is how many
/// are unexplained.
fn compare(name: &str, cases: &[Case]) -> usize {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let mut unexplained = 0;
    let mut different = 0;
    for case in cases {
        let readings = case.readings();
        different += usize::from(readings.iter().any(|reading| !reading.equal));
        for reading in readings {
            *outcomes.entry(format!("{} {}", reading.name, reading.outcome)).or_default() += 1;
            if reading.equal {
                continue;
            }
            if let Some(kind) = kinds::explain(case, &reading) {
                *kinds.entry(kind).or_default() += 1;
                if std::env::var_os("SHOW").is_none() {
                    continue;
                }
            } else {
                unexplained += 1;
            }
            println!(
                "{}:\n  base: {}\n  patch: {}\n  ours: {}\n  go: {}",
                reading.name, case.base, case.patch, reading.ours, case.answers[reading.name]
            );
        }
    }
    let (merges, equal) = (cases.len(), cases.len() - different);
    println!("{name}: {merges} merges, {equal} equal, {unexplained} readings different");
    for (outcome, count) in outcomes {
        println!("  {count} readings: {outcome}");
    }
    for (kind, count) in kinds {
        println!("  {count} readings explained: {kind:?}");
    }
    unexplained
}

#[test]
fn recorded_answers() {
    if std::env::var_os("RECORD").is_some() {
        let random = (0..RECORDED_SEEDS).map(generator::merge);
        let merges = written::merges().into_iter().chain(random).collect();
        let cases = answers::ask_go(merges).expect("go must be on the path");
        answers::record(&cases);
    }
    let cases = answers::recorded();
    assert!(cases.len() > 2000, "{} answers are recorded", cases.len());
    assert_eq!(compare("recorded", &cases), 0);
}

#[test]
fn answers_of_go_now() {
    let number = |name: &str| {
        let text = std::env::var_os(name)?;
        Some(
            text.to_str()
                .and_then(|text| text.parse().ok())
                .expect("the variable must be a number"),
        )
    };
    let Some(count) = number("INJECTD_ASK_GO") else {
        println!("skipped: INJECTD_ASK_GO is not set");
        return;
    };
    let from: u64 = number("INJECTD_ASK_GO_FROM").unwrap_or(1_000_000);
    let Some(cases) = answers::ask_go((from..from + count).map(generator::merge).collect()) else {
        println!("skipped: go is not on the path");
        return;
    };
    assert_eq!(compare("asked now", &cases), 0);
}

/// Whatever both sides hold, there is an answer.
#[test]
fn nonsense_does_not_panic() {
    for seed in 0..5000 {
        let (base, patch) = generator::nonsense(seed);
        let mut merged = base.clone();
        let _ = injectd_merge::overlay(&mut merged, patch.clone());
        let _ = injectd_merge::normal(&merged);
        let _ = injectd_merge::strategic_merge(&mut base.clone(), patch.clone());
        let _ = injectd_merge::check(&patch);
    }
}

/// The embedded types are those of Go.
#[test]
fn types_of_go_now() {
    if std::env::var_os("INJECTD_ASK_GO").is_none() {
        println!("skipped: INJECTD_ASK_GO is not set");
        return;
    }
    let table = |modules| answers::run_go_with(modules, &["schema"], String::new());
    let (Some(table), Some(newer)) = (table("go.mod"), table("kube-1.37.mod")) else {
        println!("skipped: go is not on the path");
        return;
    };
    let joined = releases::joined(&table, &newer);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write("src/schema/pod.txt", &joined).expect("the table must be writable");
    }
    assert_eq!(joined, include_str!("../../src/schema/pod.txt"));
}
