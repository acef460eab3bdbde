//! Runs every recorded case of a release.

use std::cell::RefCell;

use injectd_istio::taint::TaintedValues;
use serde_json::Value;

use super::{
    answer::{Answer, first_difference},
    corpus::{Case, Corpus},
    differences::{self, Context},
    subject::Subject,
};
use crate::{reference_subject::review_of, run::Counts};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Runs all cases of a release. The rows may need the recordings of later ones.
pub(crate) fn run(corpora: &[Corpus], index: usize, tainted_values: TaintedValues) -> Counts {
    let corpus = &corpora[index];
    let subject = RefCell::new(Subject::new(corpus, tainted_values));
    let mut counts = Counts { release: corpus.name.clone(), ..Counts::default() };
    for case in &corpus.cases {
        if let Some(why) = left_out(case) {
            counts.leave_out(why);
            continue;
        }
        let object = object(case);
        let answer = |body: &[u8], object: &Value| subject.borrow_mut().answer(case, body, object);
        let context = Context {
            release: corpus.release,
            set: &corpus.sets[&case.config],
            case,
            review: review(case),
            later: &corpora[index + 1..],
            answer: &|review| {
                let object = review.pointer("/request/object").unwrap_or(&Value::Null);
                answer(review.to_string().as_bytes(), object).0
            },
        };
        let (rows, expected) = differences::expected(&context, recorded(case));
        let (got, refusal) = answer(&case.body, &object);
        let difference = first_difference(&expected, &got).map(|difference| match refusal {
            Some(why) => format!("{difference} ({why})"),
            None => difference,
        });
        let which = || format!("{} ({}, {})", case.id, case.family, case.config);
        counts.add(which, rows, difference);
    }
    counts
}

/// Why a case cannot be compared here.
fn left_out(case: &Case) -> Option<&'static str> {
    if case.is_unstable {
        Some("the real answer changes from run to run")
    } else if case.method != "POST" {
        Some("method: the server's work")
    } else if case.status == Some(415) {
        Some("Content-Type: the server's work")
    } else if case.response_text.starts_with("Request entity too large") {
        Some("size: the server's work")
    } else {
        None
    }
}

/// Upstream's recorded answer.
pub(crate) fn recorded(case: &Case) -> Answer {
    match (&case.response, case.status) {
        (Some(review), _) => Answer::of_review(review, case.patch.as_ref(), &object(case)),
        (None, Some(status)) => Answer::Status(status),
        (None, None) => Answer::Closed,
    }
}

/// The body as JSON, if it is JSON; it may begin with a byte order mark.
fn review(case: &Case) -> Option<Value> {
    review_of(case.body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&case.body))
}

/// The object of the request; null without one.
fn object(case: &Case) -> Value {
    let review = review(case);
    let object = review.as_ref().and_then(|review| review.pointer("/request/object"));
    object.cloned().unwrap_or_default()
}
