//! Parity with the recorded answers of Istio's injectors, release by release.
//!
//! Of an answer, the suite compares the patched pod, the verdict, the uid, the type of the review,
//! and the denial up to the first name in it. `run::left_out` names what it does not compare.

mod answer;
mod corpus;
mod differences;
mod memory;
mod run;
pub(crate) mod subject;

use std::{env, path::PathBuf, thread};

use injectd_istio::taint::TaintedValues;

use super::{corpus::Cases, print_line, report, run::Counts};
use corpus::Corpus;
pub(crate) use differences::ROWS;

/// Runs all recorded cases, prints the counts, and fails if an answer differs that no row explains: with a warning
/// of values that leave their scalar, and without.
pub(crate) fn must_answer_as_recorded() {
    let Some(corpora) = corpora("istio") else { return };
    for tainted_values in [TaintedValues::Warn, TaintedValues::Off] {
        must_answer(&corpora, tainted_values);
    }
}

fn must_answer(corpora: &[Corpus], tainted_values: TaintedValues) {
    let counts = run_all(corpora, tainted_values);
    let mut text = String::new();
    report::write(&mut text, &counts, 20).expect("writing to a string must succeed");
    print_line(&format!("istio, --tainted-values {}\n{text}", tainted_values.as_str()));
    let report::Total { different, left_out, .. } = report::total(&counts);
    let page = include_str!("../../docs/compatibility.md");
    let is_said = page.contains(&format!("it leaves out {left_out}: "));
    assert!(is_said || !Cases::Quick.are_all(), "{left_out} are left out");
    assert_eq!(different, 0, "istio: {different} are different, see the report above");
}

/// The recordings of all releases; `None` without them, which is printed.
pub(crate) fn corpora(suite: &str) -> Option<Vec<Corpus>> {
    let Some(corpora) = env::var_os("INJECTD_CORPUS").filter(|path| !path.is_empty()) else {
        print_line(&format!("{suite}: skipped, INJECTD_CORPUS is not set"));
        return None;
    };
    let directory = PathBuf::from(corpora).join("istio");
    Some(corpus::load_all(&directory, Cases::Quick).expect("the corpus must be readable"))
}

/// Every second release on a thread of its own: a debug build needs it.
fn run_all(corpora: &[Corpus], tainted_values: TaintedValues) -> Vec<Counts> {
    let every_second = |first: usize| {
        move || {
            let indexes = (first..corpora.len()).step_by(2);
            indexes
                .map(|index| (index, run::run(corpora, index, tainted_values)))
                .collect::<Vec<_>>()
        }
    };
    let mut counts = thread::scope(|scope| {
        let other = scope.spawn(every_second(1));
        let mut counts = every_second(0)();
        counts.extend(other.join().expect("no case must panic"));
        counts
    });
    counts.sort_by_key(|(index, _)| *index);
    counts.into_iter().map(|(_, counts)| counts).collect()
}

/// What the memory answers is what an evaluation answers: for recorded requests, and for changed ones.
pub(crate) fn must_remember_nothing_wrong() {
    let Some(corpora) = corpora("istio memory") else { return };
    memory::must_agree(&corpora);
}

/// Every configuration that an injector refused at start is refused, and every other one that it
/// used is accepted, unless a later release refuses it.
pub(crate) fn must_start_as_recorded() {
    let Some(corpora) = corpora("istio configurations") else { return };
    let (mut accepted, mut refused) = (0, 0);
    let mut different = Vec::new();
    for (index, corpus) in corpora.iter().enumerate() {
        for (name, set) in corpus.sets.iter().filter(|(name, _)| Cases::Quick.have(name)) {
            let is_refused =
                corpora[index..].iter().any(|later| later.refuses(name)) || set.is_refused();
            let ours = subject::revision(corpus.release, set).err();
            *if is_refused { &mut refused } else { &mut accepted } += 1;
            if ours.is_some() != is_refused {
                let ours = ours.unwrap_or_else(|| "accepted".to_owned());
                different.push(format!("{} {name}: {ours}", corpus.name));
            }
        }
    }
    print_line(&format!("istio configurations: {accepted} accepted, {refused} refused"));
    assert!(different.is_empty(), "{different:#?}");
}
