//! Rows about events (L§2.9).

use super::{Context, Seen};

fn without_event(seen: &Seen) -> Seen {
    Seen { event: None, ..seen.clone() }
}

/// injectd sends no event for a dry run.
pub(crate) fn dry_run_event(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    let dry = review["request"]["dryRun"] == true;
    dry.then(|| without_event(seen))
}

/// injectd sends no event about a Pod. For a pod without owner, upstream sends it about the pod of
/// that name, or about any pod.
pub(crate) fn pod_event(_: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let event = seen.event.as_ref()?;
    (event.regarding[1] == "Pod").then(|| without_event(seen))
}

/// For an owner reference without a name, upstream sends the event about any object of that kind.
pub(crate) fn nameless_owner_event(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let review = context.review.as_ref()?;
    let owners = review["request"]["object"]["metadata"]["ownerReferences"].as_array()?;
    let nameless = |name: &serde_json::Value| name.as_str().unwrap_or_default().is_empty();
    let [owner] = owners.as_slice() else {
        return None;
    };
    nameless(&owner["name"]).then(|| without_event(seen))
}

/// injectd sends the event about an owner that only a GET finds; upstream searches its informers
/// only.
pub(crate) fn owner_by_get_event(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    let event = context.reference.event.clone()?;
    let [_, kind, name, namespace] = &event.regarding;
    context.case.object_by_get(kind, namespace, name)?;
    Some(Seen { event: Some(event), ..seen.clone() })
}

/// injectd sends no event into a namespace whose name is longer than Kubernetes allows, which limits
/// the memory of events in the queue.
pub(crate) fn long_namespace_event(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    const MAX_LABEL_BYTES: usize = 63;
    let namespace = context.review.as_ref()?["request"]["namespace"].as_str()?;
    (namespace.len() > MAX_LABEL_BYTES).then(|| without_event(seen))
}
