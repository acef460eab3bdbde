//! Workloads, and the state of their rollouts.
//!
//! The rules of a finished rollout are those of `kubectl rollout status`.

use injectd_cluster::digest::digest;
use injectd_k8s::{
    object::{Labels, labels},
    workload::Workload,
};
use jiff::Timestamp;
use kube::api::ApiResource;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The annotation of a pod template that `kubectl rollout restart` sets: a time in RFC 3339.
pub const RESTARTED_AT_ANNOTATION: &str = "kubectl.kubernetes.io/restartedAt";
/// The annotation of a pod template that injectd sets beside it: a digest of what the restart was for
/// and of the pod template. While it stays the same, the restart is not repeated.
pub const RESTARTED_FOR_ANNOTATION: &str = "injectd.dev/restarted-for";
/// The field manager of the patches that restart a workload.
pub const FIELD_MANAGER: &str = "injectd-restart";

/// The reason of the condition `Progressing` of a Deployment that failed to progress.
const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

/// Kinds whose controller replaces all pods when the pod template changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RolloutKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` `StatefulSet`.
    StatefulSet,
    /// `apps/v1` `DaemonSet`.
    DaemonSet,
}

/// What the API server has of a workload; other fields are skipped.
pub(super) type Object = kube::core::Object<Spec, Status>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    replicas: Option<i64>,
    paused: bool,
    update_strategy: UpdateStrategy,
    template: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct UpdateStrategy {
    r#type: String,
    rolling_update: Option<RollingUpdate>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RollingUpdate {
    partition: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    observed_generation: i64,
    replicas: i64,
    updated_replicas: i64,
    available_replicas: i64,
    current_revision: String,
    update_revision: String,
    desired_number_scheduled: i64,
    updated_number_scheduled: i64,
    number_available: i64,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    reason: String,
}

/// A workload as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Its uid.
    pub uid: String,
    /// The version that was read: a patch of any other fails.
    pub resource_version: String,
    /// Whether its rollouts are paused.
    pub is_paused: bool,
    /// Why a restart would not replace its pods, and what to do by hand.
    pub no_rollout: Option<&'static str>,
    /// When it was last restarted, by injectd or by others.
    pub restarted_at: Option<Timestamp>,
    /// Whether injectd restarted it last.
    pub is_restarted_by_us: bool,
    /// The value of [`RESTARTED_FOR_ANNOTATION`].
    pub restarted_for: Option<String>,
    /// Digest of its pod template, without the annotations of restarts.
    pub template_digest: String,
    /// The state of its rollout.
    pub rollout: Rollout,
    /// The labels of its pods.
    pub pod_labels: Labels,
}

/// The state of a workload's rollout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rollout {
    /// All pods are new and available.
    #[default]
    Finished,
    /// Some pods are old or not available.
    InProgress,
    /// The Deployment's `progressDeadlineSeconds` are over.
    DeadlineExceeded,
}

// === impl RolloutKind ===

impl RolloutKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet];
    /// The API version of all kinds.
    pub const API_VERSION: &str = "apps/v1";

    /// The kind of a workload, if a restart replaces the pods of such workloads.
    #[must_use]
    pub fn of(workload: &Workload) -> Option<Self> {
        let kinds = Self::ALL.into_iter().filter(|_| workload.api_version == Self::API_VERSION);
        kinds.into_iter().find(|kind| kind.as_str() == workload.kind)
    }

    /// The kind's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }

    /// The kind that kubectl calls so, such as `deploy`, `statefulset` or `daemonsets.apps`.
    #[must_use]
    pub fn of_kubectl(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".apps").unwrap_or(&name);
        Some(match name {
            "deploy" | "deployment" | "deployments" => Self::Deployment,
            "sts" | "statefulset" | "statefulsets" => Self::StatefulSet,
            "ds" | "daemonset" | "daemonsets" => Self::DaemonSet,
            _ => return None,
        })
    }

    /// The resource of the API.
    pub(super) fn resource(self) -> ApiResource {
        let kind = self.as_str();
        ApiResource {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            api_version: Self::API_VERSION.to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
        }
    }
}

// === impl Observed ===

impl Observed {
    /// When injectd restarted it, if that was after this time and the rollout is not finished.
    pub(super) fn unfinished_since(&self, since: Timestamp) -> Option<Timestamp> {
        let is_ours = self.is_restarted_by_us && self.rollout != Rollout::Finished;
        self.restarted_at.filter(|&at| is_ours && at > since)
    }

    pub(super) fn new(kind: RolloutKind, object: Object) -> Self {
        let Object { metadata, spec, status, .. } = object;
        let status = status.unwrap_or_default();
        let generation = metadata.generation.unwrap_or_default();
        let mut template = spec.template;
        let mut of_restart = |key: &str| {
            let annotations = template.pointer_mut("/metadata/annotations")?.as_object_mut()?;
            Some(annotations.shift_remove(key)?.as_str()?.to_owned())
        };
        let restarted_at = of_restart(RESTARTED_AT_ANNOTATION).and_then(|time| time.parse().ok());
        let restarted_for = of_restart(RESTARTED_FOR_ANNOTATION);
        let mut managers = metadata.managed_fields.iter().flatten();
        Self {
            is_paused: kind == RolloutKind::Deployment && spec.paused,
            no_rollout: no_rollout(kind, &spec.update_strategy),
            restarted_at,
            restarted_for,
            template_digest: template_digest(&mut template),
            // It owns the annotations: whoever sets that of the time again takes it over.
            is_restarted_by_us: managers
                .any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER)),
            // The API server completes a workload without replicas to one.
            rollout: status.rollout(kind, generation, spec.replicas.unwrap_or(1)),
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            pod_labels: labels(&template),
        }
    }
}

/// Digest of a template without annotations of restarts, and without the empty map that is left.
fn template_digest(template: &mut Value) -> String {
    if let Some(metadata) = template.pointer_mut("/metadata").and_then(Value::as_object_mut)
        && metadata
            .get("annotations")
            .is_some_and(|annotations| annotations.as_object().is_none_or(Map::is_empty))
    {
        metadata.shift_remove("annotations");
    }
    digest([&*template.to_string()])
}

fn no_rollout(kind: RolloutKind, strategy: &UpdateStrategy) -> Option<&'static str> {
    if kind == RolloutKind::Deployment {
        return None;
    }
    let partition =
        strategy.rolling_update.as_ref().and_then(|update| update.partition).unwrap_or(0);
    if strategy.r#type == "OnDelete" {
        Some("its update strategy is OnDelete: delete its pods one by one")
    } else if kind == RolloutKind::StatefulSet && partition > 0 {
        Some("its update strategy has a partition, below which pods are kept: set it to 0")
    } else {
        None
    }
}

// === impl Status ===

impl Status {
    fn rollout(&self, kind: RolloutKind, generation: i64, replicas: i64) -> Rollout {
        if self.observed_generation < generation {
            return Rollout::InProgress;
        }
        let is_finished = match kind {
            RolloutKind::Deployment => {
                self.updated_replicas >= replicas
                    && self.replicas <= self.updated_replicas
                    && self.available_replicas >= self.updated_replicas
            }
            RolloutKind::StatefulSet => {
                self.current_revision == self.update_revision
                    && self.replicas == replicas
                    && self.available_replicas >= replicas
            }
            RolloutKind::DaemonSet => {
                self.updated_number_scheduled >= self.desired_number_scheduled
                    && self.number_available >= self.desired_number_scheduled
            }
        };
        let mut conditions = self.conditions.iter();
        if is_finished {
            Rollout::Finished
        } else if conditions.any(|condition| {
            condition.r#type == "Progressing" && condition.reason == DEADLINE_EXCEEDED
        }) {
            Rollout::DeadlineExceeded
        } else {
            Rollout::InProgress
        }
    }
}

#[cfg(test)]
mod tests;
