//! An audited pod and its workload, from the pod alone: who creates a pod can name any controller. Before
//! a workload is restarted, its `ReplicaSet` is read, and uids are compared (`restart`).

use injectd_k8s::workload::{Workload, controller};
use serde_json::Value;

use crate::restart::ReplicaSet;

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
    /// What its values are counted as that change other fields of it than their own.
    pub tainted: Vec<&'static str>,
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
            tainted: Vec::new(),
        }
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
