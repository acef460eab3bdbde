//! Upstream's events: their texts, and the objects they are about (`webhook.go`,
//! `pkg/inject/report.go`).

#![expect(clippy::disallowed_types, reason = "sent beside the reviews, or printed on demand")]

use serde_json::{Value, json};

use crate::outcome::{InvolvedObject, SkipReason, SkipReasons};

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

/// The texts of all reasons, joined as upstream joins them.
#[must_use]
pub fn in_words(reasons: SkipReasons) -> String {
    reasons.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// The text of a reason.
#[must_use]
pub fn words(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::HostNetwork => "hostNetwork is enabled",
        SkipReason::SidecarExists => "pod has a sidecar injected already",
        SkipReason::UnsupportedResource => "this resource kind is unsupported",
        SkipReason::InvalidNamespaceAnnotation => {
            r#"invalid value for annotation "linkerd.io/inject" at namespace"#
        }
        SkipReason::InvalidPodAnnotation => {
            r#"invalid value for annotation "linkerd.io/inject" at workload"#
        }
        SkipReason::DisabledByPod => r#"pod has the annotation "linkerd.io/inject:disabled""#,
        SkipReason::NotEnabled => {
            r#"neither the namespace nor the pod have the annotation "linkerd.io/inject:enabled""#
        }
        SkipReason::NoServiceAccountToken => concat!(
            r#"automountServiceAccountToken set to "false", "#,
            r#"with Values.identity.serviceAccountTokenProjection set to "false""#
        ),
    }
}
