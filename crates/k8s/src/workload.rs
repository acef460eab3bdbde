//! Workloads, and the workload of a pod, found from the pod alone.
//!
//! A pod may name any controller: before a workload is changed, it has to be read.

#![expect(clippy::disallowed_types, reason = "pods are trees")]

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The label that a Deployment puts on its pods; the name of their `ReplicaSet` ends in the same hash.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// A workload, or a pod without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Its namespace.
    pub namespace: String,
    /// API group and version, such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid. A workload with another uid is another one; without a uid, any is meant. A pod does
    /// not have that of its Deployment, which is only in the `ReplicaSet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
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
        let labels = pod.pointer("/metadata/labels");
        let hash = labels.and_then(|labels| labels.get(POD_TEMPLATE_HASH)?.as_str());
        match deployment_of(&name, hash.unwrap_or_default()) {
            Some(deployment) if kind == "ReplicaSet" => {
                let (kind, name) = ("Deployment".to_owned(), deployment.to_owned());
                Self { namespace, api_version, kind, name, uid: None }
            }
            _ => Self { namespace, api_version, kind, name, uid: Some(of_owner("uid")) },
        }
    }

    /// The workload without its uid: the object of that name, whichever it is.
    #[must_use]
    pub fn named(&self) -> Self {
        Self { uid: None, ..self.clone() }
    }

    /// Whether both are the same object.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_uid = match (&self.uid, &other.uid) {
            (Some(uid), Some(other)) => uid == other,
            _ => true,
        };
        is_same_uid
            && (&self.api_version, &self.kind) == (&other.api_version, &other.kind)
            && (&self.namespace, &self.name) == (&other.namespace, &other.name)
    }
}

/// `deployment shop/web`.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind.to_lowercase(), self.namespace, self.name)
    }
}

/// The owner that controls a pod.
#[must_use]
pub fn controller(pod: &Value) -> Option<&Value> {
    let owners = pod.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

/// The Deployment after which a `ReplicaSet` is named, whose pods have this `pod-template-hash`;
/// `None` if the name is another one.
#[must_use]
pub fn deployment_of<'n>(replica_set: &'n str, hash: &str) -> Option<&'n str> {
    let deployment = replica_set.strip_suffix(hash)?.strip_suffix('-')?;
    (!deployment.is_empty() && !hash.is_empty()).then_some(deployment)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_workload_is_the_controller_or_its_deployment() {
        let owner = |kind: &str, name: &str| json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true});
        let hash = json!({"pod-template-hash": "5f"});
        for (owner, labels, kind, name) in [
            (owner("ReplicaSet", "web-5f"), &hash, "Deployment", "web"),
            (owner("ReplicaSet", "web-5f"), &json!({}), "ReplicaSet", "web-5f"),
            (owner("ReplicaSet", "5f"), &hash, "ReplicaSet", "5f"),
            (owner("StatefulSet", "db-5f"), &hash, "StatefulSet", "db-5f"),
            (owner("Deployment", "web"), &hash, "Deployment", "web"),
            (json!({"kind": "Node", "name": "a"}), &hash, "Pod", "web-5f-x"),
            (Value::Null, &hash, "Pod", "web-5f-x"),
        ] {
            let mut pod =
                json!({"metadata": {"namespace": "shop", "name": "web-5f-x", "labels": labels}});
            if !owner.is_null() {
                pod["metadata"]["ownerReferences"] = json!([owner]);
            }
            let workload = Workload::of(&pod);
            assert_eq!((&*workload.kind, &*workload.name), (kind, name), "{owner}");
        }
    }

    #[test]
    fn a_replica_set_of_another_name_is_of_no_deployment() {
        assert_eq!(deployment_of("web-5f", "5f"), Some("web"));
        for (name, hash) in [("web5f", "5f"), ("-5f", "5f"), ("web-", ""), ("web-5f", "f5")] {
            assert_eq!(deployment_of(name, hash), None, "{name} {hash}");
        }
    }
}
