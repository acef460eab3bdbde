//! Upstream's events: their texts, and the objects they are about (`webhook.go`,
//! `pkg/inject/report.go`).

#![expect(clippy::disallowed_types, reason = "sent beside the reviews, or printed on demand")]

use serde_json::{Value, json};

use super::workload::Owner;
use crate::{
    lookups::Lookups,
    outcome::{Event, InvolvedObject, Regarding, SkipReasons},
};

/// The source component of the events.
pub const SOURCE_COMPONENT: &str = "linkerd-proxy-injector";

/// An event as a `core/v1` object, without name, count and timestamps.
#[must_use]
pub fn to_json(namespace: &str, object: &InvolvedObject<'_>, reasons: SkipReasons) -> Value {
    json!({
        "type": "Normal",
        "reason": reason(reasons),
        "message": message(reasons),
        "involvedObject": {
            "apiVersion": object.api_version,
            "kind": object.kind,
            "namespace": namespace,
            "name": object.name,
        },
        "source": {"component": SOURCE_COMPONENT},
    })
}

/// An event's reason.
#[must_use]
pub fn reason(reasons: SkipReasons) -> &'static str {
    if reasons.is_empty() { "Injected" } else { "InjectionSkipped" }
}

/// An event's message.
#[must_use]
pub fn message(reasons: SkipReasons) -> String {
    if reasons.is_empty() {
        return "Linkerd sidecar proxy injected".to_owned();
    }
    format!("Linkerd sidecar proxy injection skipped: {}", in_words(reasons))
}

/// API version and kind of the objects that events can be about, by their kind in lower case: the
/// kinds that upstream watches, except pods.
#[must_use]
pub fn involved_kind(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "deployment" => Some(("apps/v1", "Deployment")),
        "replicaset" => Some(("apps/v1", "ReplicaSet")),
        "daemonset" => Some(("apps/v1", "DaemonSet")),
        "statefulset" => Some(("apps/v1", "StatefulSet")),
        "job" => Some(("batch/v1", "Job")),
        "cronjob" => Some(("batch/v1", "CronJob")),
        "replicationcontroller" => Some(("v1", "ReplicationController")),
        _ => None,
    }
}

/// The involved object of an event: the root owner, if its kind gets events and it exists.
pub async fn involved_object<'a>(
    lookups: &impl Lookups,
    event: &Event<'a>,
) -> Option<InvolvedObject<'a>> {
    let workload = match &event.regarding {
        Regarding::Workload(workload) => workload.clone(),
        Regarding::Owner { owner, pod_template_hash } => {
            let pod_template_hash = pod_template_hash.as_deref();
            let owner = Owner { namespace: &event.namespace, reference: owner, pod_template_hash };
            // Without a deadline: no review waits for an event.
            owner.resolve(lookups, None).await.ok()?
        }
    };
    let (api_version, kind) = involved_kind(&workload.kind)?;
    let exists = lookups.has(&event.namespace, kind, &workload.name);
    (exists && !workload.name.is_empty()).then_some(InvolvedObject {
        api_version,
        kind,
        name: workload.name,
        object_uid: workload.object_uid,
    })
}

/// The texts of all reasons, joined as upstream joins them.
#[must_use]
pub fn in_words(reasons: SkipReasons) -> String {
    reasons.iter().map(|(_, reason)| reason.text).collect::<Vec<_>>().join(", ")
}
