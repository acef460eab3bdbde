//! Compares templates with Go's: `text/template` with sprig and with functions as Istio has them.
//!
//! Recorded answers are compared always. `RECORD=1` asks Go for all written templates and for random
//! ones anew and records the answers. `INJECTD_ASK_GO=10000` asks Go for that many other random
//! templates (`go` must be on the path; `INJECTD_ASK_GO_FROM` is the first seed).

#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]
#![expect(clippy::disallowed_types, reason = "answers are trees")]

mod answers;
mod generator;
mod kinds;
mod written;

use std::collections::BTreeMap;

use answers::Case;
use kinds::Kind;

const RECORDED_SEEDS: u64 = 3000;

/// Prints the differences that no kind explains, and counts all; the answer is how many there are.
fn compare(name: &str, cases: &[Case]) -> usize {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut unexplained = 0;
    let (mut outputs, mut errors) = (0, 0);
    for case in cases {
        let ours = case.ours();
        let theirs = &case.answer;
        if ours == *theirs {
            outputs += usize::from(theirs.is_ok());
            errors += usize::from(theirs.is_err());
            continue;
        }
        if let Some(kind) = kinds::explain(&case.template, &ours, theirs) {
            *kinds.entry(kind).or_default() += 1;
            continue;
        }
        unexplained += 1;
        println!("{:?}", case.template);
        println!("  ours: {}\n  go:   {}", answers::shown(&ours), answers::shown(theirs));
    }
    let count = cases.len();
    println!(
        "{name}: {count} templates, {outputs} equal outputs, {errors} equal errors, \
         {unexplained} different"
    );
    for (kind, count) in kinds {
        println!("  {count}: {kind:?}");
    }
    unexplained
}

#[test]
fn recorded_answers() {
    if std::env::var_os("RECORD").is_some() {
        let random = (0..RECORDED_SEEDS).map(generator::template);
        let cases = answers::ask_go(written::templates().into_iter().chain(random).collect())
            .expect("go must be on the path");
        answers::record(&cases);
    }
    let cases = answers::recorded();
    assert_eq!(compare("recorded", &cases), 0);
}

#[test]
fn answers_of_go_now() {
    let number = |name: &str| {
        let text = std::env::var_os(name)?;
        let number = text.to_str().and_then(|text| text.parse().ok());
        Some(number.expect("the variable must be a number"))
    };
    let Some(count) = number("INJECTD_ASK_GO") else {
        println!("skipped: INJECTD_ASK_GO is not set");
        return;
    };
    let from: u64 = number("INJECTD_ASK_GO_FROM").unwrap_or(1_000_000);
    let Some(cases) = answers::ask_go((from..from + count).map(generator::template).collect())
    else {
        println!("skipped: go is not on the path");
        return;
    };
    assert_eq!(compare("asked now", &cases), 0);
}
