//! Rows about single edges.

use serde_json::Value;

use super::leaves::replace;
use super::{Context, Seen};

/// The edge whose change of labels and events the next one took back.
const REVERTED: (u32, u32, u32) = (25, 10, 2);

/// Labels in a patch.
const LABELS: &str = "/metadata/labels/";

/// The name of a proxy's traces, which this edge made of the root owner.
const TRACE_NAME: &str = "linkerd-proxy/env/LINKERD2_PROXY_TRACE_SERVICE_NAME/value";

/// injectd answers as edge-25.10.3. edge-25.10.2 writes three more labels, takes the other labels of
/// the workload and the name of traces from the root owner, and posts no events.
pub(crate) fn reverted_edge(context: &Context<'_>, seen: &Seen) -> Option<Seen> {
    if context.release.edge != REVERTED {
        return None;
    }
    let mut seen = seen.clone();
    seen.event.clone_from(&context.reference.event);
    if let (Some(theirs), Some(ours)) = (&mut seen.patch, &context.reference.patch) {
        let is_label = |operation: &Value| {
            operation["path"].as_str().is_some_and(|path| path.contains(LABELS))
        };
        if let Some(at) = theirs.iter().position(is_label) {
            theirs.retain(|operation| !is_label(operation));
            theirs.splice(at..at, ours.iter().filter(|operation| is_label(operation)).cloned());
        }
    }
    let traced = replace(context, &seen, |leaf| leaf.place == TRACE_NAME);
    Some(traced.unwrap_or(seen))
}
