//! Runs every recorded case on a subject.

use std::collections::BTreeMap;

use super::compare::first_difference;
use super::corpus::{Case, Corpus};
use super::differences::{self, Context};
use super::reference_subject::{ReferenceSubject, review_of};
use super::subject::{Seen, Subject, SubjectAnswer};

/// The results of a subject for one release.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// The release's directory.
    pub(crate) release: String,
    /// All cases.
    pub(crate) cases: usize,
    /// Answers equal to upstream's.
    pub(crate) equal: usize,
    /// Answers that the rows explain.
    pub(crate) explained: usize,
    /// Number of answers by row.
    pub(crate) rows: BTreeMap<&'static str, usize>,
    /// Unexplained answers: case, rows that applied, first difference.
    pub(crate) different: Vec<(String, Vec<&'static str>, String)>,
}

/// Runs all cases of a release.
pub(crate) fn run(corpus: &Corpus, subject: &mut dyn Subject) -> Counts {
    let mut counts = Counts { release: corpus.name.clone(), ..Counts::default() };
    for case in &corpus.cases {
        counts.cases += 1;
        let (rows, difference) = judge(corpus, case, subject);
        match difference {
            None if rows.is_empty() => counts.equal += 1,
            None => {
                counts.explained += 1;
                for row in rows {
                    *counts.rows.entry(row).or_default() += 1;
                }
            }
            Some(difference) => {
                let which = format!("{} ({}, {})", case.id, case.family, case.config);
                counts.different.push((which, rows, difference));
            }
        }
    }
    counts
}

/// The rows that apply to a case, and how the subject's answer differs from what they expect.
pub(crate) fn judge(
    corpus: &Corpus,
    case: &Case,
    subject: &mut dyn Subject,
) -> (Vec<&'static str>, Option<String>) {
    let Some(config) = corpus.configs.get(&case.config) else {
        return (Vec::new(), Some(format!("no config set {}", case.config)));
    };
    let reference = ReferenceSubject.answer(corpus.release, config, case);
    let context = Context {
        release: corpus.release,
        config,
        case,
        review: review_of(&case.body),
        reference: Seen::of_answer(&reference),
    };
    let (rows, expected) = differences::expected(&context, Seen::of_case(case));
    let answer = subject.answer(corpus.release, config, case);
    let difference = first_difference(&expected, &Seen::of_answer(&answer));
    let difference = difference.map(|difference| match answer {
        SubjectAnswer::Refused(why) => format!("{difference} ({}: {why})", config.name),
        SubjectAnswer::Answered(_) => difference,
    });
    (rows, difference)
}
