//! Rows about requests that upstream answers wrongly.

use super::{Context, Seen, recorded_message};
use injectd_testkit::reference;

/// Requests without an object, DELETE, CONNECT and subresources are allowed without a patch.
/// Upstream treats a missing object as an empty pod.
pub(crate) fn no_object(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    if seen.status != Some(200) || !reference::asks_for_nothing(review) {
        return None;
    }
    Some(Seen {
        allowed: Some(true),
        patch_type: None,
        has_message: false,
        patch: None,
        verdict: "allowed".to_owned(),
        reasons: None,
        event: None,
        ..seen.clone()
    })
}

/// injectd looks up a namespace that the watch has not delivered yet; upstream denies the request.
pub(crate) fn namespace_by_get(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let namespace = context.review.as_ref()?["request"]["namespace"].as_str()?;
    context.case.object_by_get("Namespace", "", namespace)?;
    let denied = seen.allowed == Some(false) && recorded_message(context).contains("not found");
    denied.then(|| context.reference.clone())
}

/// Upstream panicked and closed the connection, so there is no answer to match.
pub(crate) fn panic(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let aborted = seen.verdict == "aborted" && seen.status.is_none();
    aborted.then(|| context.reference.clone())
}
