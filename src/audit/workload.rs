//! The workload behind a pod, from the pod alone.

use serde::Serialize;
use serde_json::Value;

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

impl Workload {
    /// The controller of a pod. Of a `ReplicaSet` whose name ends with the label
    /// `pod-template-hash` it is the Deployment, as the Deployment controller names them.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace").to_owned();
        let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_controller = |owner: &&Value| owner.get("controller") == Some(&Value::Bool(true));
        let Some(owner) = owners.into_iter().flatten().find(is_controller) else {
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
