//! Compares the reader with Go's: `sigs.k8s.io/yaml` and the document reader of k8s.io/apimachinery.
//!
//! Recorded answers are compared always. `INJECTD_ASK_GO=10000` also asks Go for that many random
//! texts (`go` must be on the path; `INJECTD_ASK_GO_FROM` is the first seed). `just record-yaml`
//! records anew.

#![expect(clippy::disallowed_types, reason = "documents and answers are trees")]
#![expect(clippy::print_stdout, reason = "counts, and what was skipped")]

mod answers;
mod changes;
mod comments;
mod corpus;
mod editor;
mod generator;
mod kinds;
mod suite;
mod values;
mod writer;
mod written;

use std::collections::BTreeMap;

use answers::Case;
use injectd_testkit::generator::manifests;
use kinds::Kind;

const RECORDING: &str = "answers.jsonl.gz";
const RECORDED_SEEDS: u64 = 4000;
const RECORDED_VALUES: u64 = 600;
const RECORDED_MANIFESTS: u64 = 300;

/// Prints the differences that no kind explains and counts all by kind; the answer is how many
/// are unexplained.
fn compare(name: &str, cases: &[Case]) -> usize {
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut unexplained = 0;
    let mut different = 0;
    for case in cases {
        let differences = case.differences();
        different += usize::from(!differences.is_empty());
        for (reading, difference, ours) in differences {
            if let Some(kind) = kinds::explain(&case.text, reading, difference, &ours) {
                *kinds.entry(kind).or_default() += 1;
                if std::env::var_os("SHOW").is_none() {
                    continue;
                }
            } else {
                unexplained += 1;
            }
            println!(
                "{difference:?} {reading}: {:?}\n  ours: {ours}\n  go: {}",
                case.text, case.answers
            );
        }
    }
    let (texts, equal) = (cases.len(), cases.len() - different);
    println!(
        "{name}: {texts} texts, {equal} equal, {different} explained, {unexplained} different"
    );
    for (kind, count) in kinds {
        println!("  {count} readings: {kind:?}");
    }
    unexplained
}

#[test]
fn recorded_answers() {
    if std::env::var_os("RECORD").is_some() {
        let random = (0..RECORDED_SEEDS).map(generator::text);
        let values = (0..RECORDED_VALUES).map(|seed| injectd_yaml::write(&values::value(seed)));
        let manifests = (0..RECORDED_MANIFESTS).map(manifests::text);
        let texts = written::texts().into_iter().chain(random).chain(values).chain(manifests);
        let texts = texts.collect();
        let cases = answers::ask_go(texts).expect("go must be on the path");
        answers::record(RECORDING, &cases);
    }
    let cases = answers::recorded(RECORDING);
    assert!(cases.len() > 3000, "{} answers are recorded", cases.len());
    assert_eq!(compare("recorded", &cases), 0);
}

#[test]
fn answers_of_go_now() {
    let Some(seeds) = answers::seeds_to_ask() else { return };
    let Some(cases) = answers::ask_go(seeds.map(generator::text).collect()) else {
        println!("skipped: go is not on the path");
        return;
    };
    assert_eq!(compare("asked now", &cases), 0);
}
