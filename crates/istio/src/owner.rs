//! Guesses a pod's workload from its controller and labels (`pkg/kube/util.go`,
//! `GetDeployMetaFromPod`).

use injectd_k8s::workload::{POD_TEMPLATE_HASH, controller};
use serde_json::Value;

use crate::{
    fields::{label, text},
    release::{Delta, Release},
};

/// What templates read as `.TypeMeta` and `.DeploymentMeta`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// `Deployment`, `Pod`, …
    pub kind: String,
    /// `apps/v1`, …
    pub api_version: String,
    /// The workload's name, or the pod's, which may be empty.
    pub name: String,
    /// The pod's namespace.
    pub namespace: String,
}

/// The facts of a pod from which its owner is guessed.
pub(crate) struct Facts<'p, L> {
    /// Whether the API server makes the pod's name from a prefix.
    pub(crate) has_prefix: bool,
    /// API version, kind and name of the first owner that is a controller.
    pub(crate) controller: Option<[&'p str; 3]>,
    /// The pod's name.
    pub(crate) name: &'p str,
    /// The value of a label.
    pub(crate) label: L,
}

/// The label with which the name of a Rollout's `ReplicaSet` ends.
const ROLLOUT_HASH_LABEL: &str = "rollouts-pod-template-hash";
/// The label with the name of `OpenShift`'s `DeploymentConfig`.
const DEPLOYMENT_CONFIG_LABEL: &str = "deploymentconfig";

/// The labels that may name a pod's owner.
pub(crate) const LABELS: [&str; 3] =
    [POD_TEMPLATE_HASH, ROLLOUT_HASH_LABEL, DEPLOYMENT_CONFIG_LABEL];

impl Owner {
    /// The owner of a pod. `namespace` is the pod's, or the request's if the pod names none.
    ///
    /// Only a pod with a `generateName` and a controller has another owner than itself. The root
    /// owners of `ReplicaSet` and `Job` are guessed from names and labels, without the cluster.
    #[must_use]
    pub fn of(pod: &Value, namespace: &str, release: Release) -> Self {
        let metadata = pod.get("metadata").unwrap_or(&Value::Null);
        let controller =
            controller(pod).map(|owner| ["apiVersion", "kind", "name"].map(|key| text(owner, key)));
        let pod = Facts {
            has_prefix: !text(metadata, "generateName").is_empty(),
            controller,
            name: text(metadata, "name"),
            label: |key: &str| label(pod, key),
        };
        Self::guess(&pod, namespace, release)
    }

    /// The same from these facts of the pod.
    pub(crate) fn guess<'p, L: Fn(&str) -> Option<&'p str>>(
        pod: &Facts<'p, L>,
        namespace: &str,
        release: Release,
    ) -> Self {
        let mut owner = Self {
            kind: "Pod".to_owned(),
            api_version: "v1".to_owned(),
            name: String::new(),
            namespace: namespace.to_owned(),
        };
        // Istio guesses an owner only for pods that a controller names, and a controller gives a
        // prefix.
        if pod.has_prefix
            && let Some([api_version, kind, name]) = pod.controller
        {
            owner.set(name, kind, api_version);
            owner.find_root(&pod.label, release);
        }
        if owner.name.is_empty() {
            pod.name.clone_into(&mut owner.name);
        }
        owner
    }

    fn set(&mut self, name: &str, kind: &str, api_version: &str) {
        name.clone_into(&mut self.name);
        kind.clone_into(&mut self.kind);
        api_version.clone_into(&mut self.api_version);
    }

    fn find_root<'p>(&mut self, label: &impl Fn(&str) -> Option<&'p str>, release: Release) {
        let name = self.name.clone();
        let hash = |key| label(key).filter(|hash| !hash.is_empty() && name.ends_with(hash));
        match &*self.kind {
            "ReplicaSet" => {
                if let Some(hash) = hash(POD_TEMPLATE_HASH) {
                    let api_version = self.api_version.clone();
                    self.set(without_hash(&name, hash), "Deployment", &api_version);
                } else if release.has(Delta::Rollouts)
                    && let Some(hash) = hash(ROLLOUT_HASH_LABEL)
                {
                    self.set(without_hash(&name, hash), "Rollout", "v1alpha1");
                }
            }
            "ReplicationController" => {
                let config = label(DEPLOYMENT_CONFIG_LABEL).filter(|config| !config.is_empty());
                if let Some(config) = config {
                    let api_version = self.api_version.clone();
                    self.set(config, "DeploymentConfig", &api_version);
                }
            }
            "Job" => {
                let version =
                    if release.has(Delta::CronJobsV1) { "batch/v1" } else { "batch/v1beta1" };
                if let Some(cron_job) = cron_job(&name) {
                    self.set(cron_job, "CronJob", version);
                }
            }
            _ => {}
        }
    }
}

/// The hash may end the name without a hyphen before it; then the whole name stays.
fn without_hash<'n>(name: &'n str, hash: &str) -> &'n str {
    let rest = name.strip_suffix(hash).and_then(|rest| rest.strip_suffix('-'));
    rest.unwrap_or(name)
}

/// The `CronJob` of a `Job` that is named after it and the time, eight to ten digits.
fn cron_job(name: &str) -> Option<&str> {
    let (cron_job, time) = name.rsplit_once('-')?;
    // Kubernetes names a Job of a CronJob after the minute that it is for, in seconds or minutes
    // since 1970.
    let is_time = (8..=10).contains(&time.len()) && time.bytes().all(|b| b.is_ascii_digit());
    (is_time && !cron_job.is_empty()).then_some(cron_job)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner(release: Release, controller: [&str; 3], labels: &Value) -> [String; 3] {
        let [api_version, kind, name] = controller;
        let pod = json!({"metadata": {
            "name": "pod", "generateName": "pod-", "labels": labels,
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Other", "name": "other"},
                {"apiVersion": api_version, "kind": kind, "name": name, "controller": true},
            ],
        }});
        let owner = Owner::of(&pod, "shop", release);
        assert_eq!(owner.namespace, "shop");
        [owner.api_version, owner.kind, owner.name]
    }

    #[test]
    fn roots_are_guessed() {
        let (old, new) = (Release::new(21, 0), Release::new(22, 0));
        let replica_set = ["apps/v1", "ReplicaSet", "web-abc"];
        let hash = json!({"pod-template-hash": "abc"});
        let rollout = json!({"rollouts-pod-template-hash": "abc"});
        let job = ["batch/v1", "Job", "tidy-12345678"];
        let controller = ["v1", "ReplicationController", "web-1"];
        let config = json!({"deploymentconfig": "web"});
        for (release, reference, labels, expected) in [
            (new, replica_set, &hash, ["apps/v1", "Deployment", "web"]),
            (new, replica_set, &json!({}), replica_set),
            (new, replica_set, &json!({"pod-template-hash": ""}), replica_set),
            (new, replica_set, &json!({"pod-template-hash": "x"}), replica_set),
            (
                new,
                replica_set,
                &json!({"pod-template-hash": "bc"}),
                ["apps/v1", "Deployment", "web-abc"],
            ),
            (new, replica_set, &rollout, ["v1alpha1", "Rollout", "web"]),
            (old, replica_set, &rollout, replica_set),
            (new, controller, &config, ["v1", "DeploymentConfig", "web"]),
            (new, controller, &json!({"deploymentconfig": ""}), controller),
            (new, job, &json!({}), ["batch/v1", "CronJob", "tidy"]),
            (old, job, &json!({}), ["batch/v1beta1", "CronJob", "tidy"]),
            (new, ["apps/v1", "DaemonSet", "web-abc"], &hash, ["apps/v1", "DaemonSet", "web-abc"]),
            (new, ["apps/v1", "ReplicaSet", "-abc"], &hash, ["apps/v1", "Deployment", "pod"]),
        ] {
            assert_eq!(owner(release, reference, labels), expected, "{release} {reference:?}");
        }
    }

    #[test]
    fn cron_jobs_have_eight_to_ten_digits() {
        for (name, expected) in [
            ("a-12345678", Some("a")),
            ("a-b-1234567890", Some("a-b")),
            ("a-1234567", None),
            ("a-12345678901", None),
            ("a-1234567x", None),
            ("-12345678", None),
            ("12345678", None),
        ] {
            assert_eq!(cron_job(name), expected, "{name}");
        }
    }

    #[test]
    fn a_pod_without_generate_name_or_controller_owns_itself() {
        let owners = json!([{"apiVersion": "v1", "kind": "X", "name": "x", "controller": true}]);
        for metadata in [
            json!({"name": "p", "ownerReferences": owners}),
            json!({"name": "p", "generateName": "", "ownerReferences": owners}),
            json!({"name": "p", "generateName": "p-"}),
            json!({"name": "p", "generateName": "p-", "ownerReferences": [{"kind": "X"}]}),
        ] {
            let owner = Owner::of(&json!({"metadata": metadata}), "n", Release::NEWEST);
            assert_eq!([owner.kind, owner.api_version, owner.name], ["Pod", "v1", "p"]);
        }
        assert_eq!(Owner::of(&json!({}), "n", Release::NEWEST).name, "");
    }
}
