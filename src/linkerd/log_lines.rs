//! The log lines of Linkerd's injector (`linkerd.md` §2.11), for those who search their logs for
//! them.

use tracing::{debug, error, info, warn};

use super::events;
use crate::outcome::{Outcome, Verdict};

/// Tells what became of a review.
pub fn tell(outcome: &Outcome<'_>) {
    let resource = format!("{}/{}", outcome.kind.as_str(), &*outcome.name);
    info!("received admission review request {:?}", &*outcome.uid);
    info!("received {resource}");
    for warning in &outcome.warnings {
        warn!("{resource}: {warning}");
    }
    match outcome.verdict {
        Verdict::Injected => info!("injection patch generated for: {resource}"),
        Verdict::Annotated => info!("annotation patch generated for: {resource}"),
        Verdict::Skipped => info!("skipped {resource}: {}", events::in_words(outcome.reasons)),
        Verdict::Allowed => {}
        Verdict::Denied => {
            let reason = outcome.denial.as_deref().unwrap_or_default();
            error!("failed to run webhook handler. Reason: {reason}");
        }
    }
}

/// Tells a review and its answer whole.
pub fn tell_whole(review: &str, values: &impl std::fmt::Debug, answer: &str) {
    debug!("admission review request: {review}");
    debug!("values: {values:?}");
    debug!("admission review response: {answer}");
}
