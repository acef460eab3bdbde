//! Rows about events (design §6, §7).

use super::{Context, Seen};

fn without_event(seen: &Seen) -> Seen {
    Seen { event: None, ..seen.clone() }
}

/// A dry run leaves no event.
pub(crate) fn dry_run_event(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    let dry = review["request"]["dryRun"] == true;
    dry.then(|| without_event(seen))
}

/// No event on a Pod: for a pod without owner upstream posts it on a pod of that name, or on any.
pub(crate) fn pod_event(_: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let event = seen.event.as_ref()?;
    (event.regarding[1] == "Pod").then(|| without_event(seen))
}

/// An owner reference without a name: upstream posts the event on any object of that kind.
pub(crate) fn nameless_owner_event(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    let owners = review["request"]["object"]["metadata"]["ownerReferences"].as_array()?;
    let nameless = |name: &serde_json::Value| name.as_str().unwrap_or_default().is_empty();
    let [owner] = owners.as_slice() else {
        return None;
    };
    nameless(&owner["name"]).then(|| without_event(seen))
}

/// An owner that only a GET finds gets its event; upstream looks into its informers only.
pub(crate) fn owner_by_get_event(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let event = context.reference.event.clone()?;
    let [_, kind, name, namespace] = &event.regarding;
    context.case.object_by_get(kind, namespace, name)?;
    Some(Seen { event: Some(event), ..seen.clone() })
}
