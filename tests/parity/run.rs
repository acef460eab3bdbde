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
    /// Cases that are not compared, by reason.
    pub(crate) left_out: BTreeMap<&'static str, usize>,
    /// Number of answers by row.
    pub(crate) rows: BTreeMap<&'static str, usize>,
    /// Unexplained answers: case, rows that applied, first difference.
    pub(crate) different: Vec<(String, Vec<&'static str>, String)>,
}

impl Counts {
    /// Counts a case that is not compared.
    pub(crate) fn leave_out(&mut self, why: &'static str) {
        self.cases += 1;
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Counts a case with the rows that apply to it, and the first difference from what they expect.
    pub(crate) fn add(
        &mut self,
        which: impl FnOnce() -> String,
        rows: Vec<&'static str>,
        difference: Option<String>,
    ) {
        self.cases += 1;
        match difference {
            None if rows.is_empty() => self.equal += 1,
            None => {
                self.explained += 1;
                for row in rows {
                    *self.rows.entry(row).or_default() += 1;
                }
            }
            Some(difference) => self.different.push((which(), rows, difference)),
        }
    }
}

/// Runs all cases of a release.
pub(crate) fn run(corpus: &Corpus, subject: &mut dyn Subject) -> Counts {
    let mut counts = Counts { release: corpus.name.clone(), ..Counts::default() };
    for case in &corpus.cases {
        let (rows, difference) = judge(corpus, case, subject);
        let which = || format!("{} ({}, {})", case.id, case.family, case.config);
        counts.add(which, rows, difference);
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
