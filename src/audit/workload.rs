//! The workload behind a pod, from the pod alone: who creates a pod can name any controller. Before a
//! workload is restarted, its `ReplicaSet` is read, and uids are compared (`restart`).

use serde::Serialize;
use serde_json::Value;

use crate::restart::{self, ReplicaSet};

/// A workload, or a pod without one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Its namespace.
    pub namespace: String,
    /// API group and version.
    pub api_version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// uid, if the pod tells it: that of a Deployment is only in its `ReplicaSet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// A pod that is audited, without what its judgement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Its name.
    pub name: String,
    /// Its workload.
    pub workload: Workload,
    /// When it was created, in RFC 3339.
    pub created: String,
    /// Its `ReplicaSet`, if the workload is the Deployment that this seems to be of.
    pub replica_set: Option<ReplicaSet>,
}

impl Audited {
    /// What a pod says of itself.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let workload = Workload::of(pod);
        let created = pod.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        let text = |owner: &Value, key: &str| Some(owner.get(key)?.as_str()?.to_owned());
        let named = || {
            let owner = controller(pod)?;
            Some(ReplicaSet { name: text(owner, "name")?, uid: text(owner, "uid")? })
        };
        let is_of_replica_set = workload.kind == "Deployment" && workload.uid.is_none();
        let name = pod.pointer("/metadata/name").and_then(Value::as_str);
        Self {
            name: name.unwrap_or_default().to_owned(),
            replica_set: if is_of_replica_set { named() } else { None },
            workload,
            created: created.unwrap_or_default().to_owned(),
        }
    }
}

/// The owner that controls a pod.
fn controller(pod: &Value) -> Option<&Value> {
    let owners = pod.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

impl Workload {
    /// The controller of a pod. Of a `ReplicaSet` whose name ends with the label
    /// `pod-template-hash` it is the Deployment, as the Deployment controller names them.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace").to_owned();
        let Some(owner) = controller(pod) else {
            return Self {
                namespace,
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                name: text("/metadata/name").to_owned(),
                uid: pod.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned),
            };
        };
        let of_owner =
            |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind, name) =
            (of_owner("apiVersion"), of_owner("kind"), of_owner("name"));
        let hash = text("/metadata/labels/pod-template-hash");
        let deployment = name.strip_suffix(hash).and_then(|name| name.strip_suffix('-'));
        match deployment {
            Some(deployment) if kind == "ReplicaSet" && !hash.is_empty() => {
                let (kind, name) = ("Deployment".to_owned(), deployment.to_owned());
                Self { namespace, api_version, kind, name, uid: None }
            }
            _ => Self { namespace, api_version, kind, name, uid: Some(of_owner("uid")) },
        }
    }
}

impl From<Workload> for restart::Workload {
    fn from(Workload { namespace, api_version, kind, name, uid }: Workload) -> Self {
        Self { api_version, kind, namespace, name, uid }
    }
}

/// What makes the pods of a workload anew.
#[must_use]
pub fn restart_command(workload: &Workload) -> String {
    let Workload { namespace, kind, name, .. } = workload;
    match &**kind {
        "Deployment" | "StatefulSet" | "DaemonSet" => {
            let kind = kind.to_lowercase();
            format!("kubectl rollout restart {kind}/{name} -n {namespace}")
        }
        "ReplicaSet" | "ReplicationController" => {
            format!("delete the pods of {}/{name}; it creates them anew", kind.to_lowercase())
        }
        "Job" => "nothing if it ends soon; else delete the Job and create it anew".to_owned(),
        "Pod" => "delete the pod and create it anew".to_owned(),
        _ => format!("restart {kind} {name}, so that it creates its pods anew"),
    }
}
