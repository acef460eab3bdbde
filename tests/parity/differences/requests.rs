//! Rows about requests upstream does not answer well.

use super::{Context, Seen, recorded_message};
use crate::reference;

/// No object, DELETE, CONNECT, a subresource: allowed without a patch. Upstream takes the missing
/// object for an empty pod.
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

/// A namespace that no watch has shown yet is asked for; upstream denies.
pub(crate) fn namespace_by_get(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let namespace = context.review.as_ref()?["request"]["namespace"].as_str()?;
    context.case.object_by_get("Namespace", "", namespace)?;
    let denied = seen.allowed == Some(false) && recorded_message(context).contains("not found");
    denied.then(|| context.reference.clone())
}

/// Upstream panicked and closed the connection: there is no answer to be like.
pub(crate) fn panic(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let aborted = seen.verdict == "aborted" && seen.status.is_none();
    aborted.then(|| context.reference.clone())
}
