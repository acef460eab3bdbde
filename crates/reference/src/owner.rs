//! L§2.9: the owner of a pod, its label, and the event about it.

use super::object::{OwnerReference, Workload};
use super::{Lookup, sentence};

/// The owner references of an object in the cluster.
#[derive(Clone, Debug, Default)]
pub struct OwnerReferences {
    /// The object's uid; empty if unknown.
    pub uid: String,
    /// Kinds and names of its owners.
    pub owners: Vec<(String, String)>,
}

impl FromIterator<(String, String)> for OwnerReferences {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(owners: I) -> Self {
        Self { uid: String::new(), owners: owners.into_iter().collect() }
    }
}

/// A Kubernetes event of type Normal from `linkerd-proxy-injector`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `Injected` or `InjectionSkipped`.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// The object it is about.
    pub regarding: Regarding,
}

/// The object an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regarding {
    /// Its API version.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The namespace of the request.
    pub namespace: String,
}

/// Kind in lower case and name of a pod's workload; `pod` and the pod's own name for a bare pod.
pub fn of_pod(
    workload: &Workload,
    namespace: &str,
    lookup: Lookup<'_>,
) -> Option<(String, String)> {
    if workload.kind != "pod" {
        return None;
    }
    let [OwnerReference { kind, name, uid }] = workload.meta.owners.as_slice() else {
        return Some(("pod".to_owned(), workload.meta.name.clone()));
    };
    let lower = |kind: &str, name: &str| Some((kind.to_lowercase(), name.to_owned()));
    if kind != "Job" && kind != "ReplicaSet" || name.is_empty() {
        return lower(kind, name);
    }
    // L§2.9: an object with another uid is not the owner.
    let found =
        lookup(kind, namespace, name).filter(|found| found.uid.is_empty() || found.uid == *uid);
    let found = found.unwrap_or_default();
    let [(parent_kind, parent)] = found.owners.as_slice() else {
        return lower(kind, name);
    };
    let known = ["job", "statefulset", "daemonset", "deployment"];
    if kind == "ReplicaSet" && !known.contains(&parent_kind.to_lowercase().as_str()) {
        return lower(kind, name);
    }
    lower(parent_kind, parent)
}

/// The key of the label with the owner's name, for kinds with such a label.
pub fn label(kind: &str) -> Option<String> {
    let known =
        ["deployment", "replicationcontroller", "replicaset", "job", "daemonset", "statefulset"];
    known.contains(&kind).then(|| format!("linkerd.io/proxy-{kind}"))
}

/// The event of an answer: about the owner, if its kind is known and it exists. `reasons` is `None`
/// for an injected pod.
pub fn event(
    kind: &str,
    name: &str,
    namespace: &str,
    reasons: Option<&[&'static str]>,
    lookup: Lookup<'_>,
) -> Option<Event> {
    let (api_version, kind) = match kind {
        "deployment" => ("apps/v1", "Deployment"),
        "replicaset" => ("apps/v1", "ReplicaSet"),
        "daemonset" => ("apps/v1", "DaemonSet"),
        "statefulset" => ("apps/v1", "StatefulSet"),
        "job" => ("batch/v1", "Job"),
        "cronjob" => ("batch/v1", "CronJob"),
        "replicationcontroller" => ("v1", "ReplicationController"),
        _ => return None,
    };
    if name.is_empty() {
        return None;
    }
    lookup(kind, namespace, name)?;
    let (reason, message) = match reasons {
        None => ("Injected", "Linkerd sidecar proxy injected".to_owned()),
        Some(reasons) => {
            let sentences: Vec<_> = reasons.iter().map(|reason| sentence(reason)).collect();
            let why = sentences.join(", ");
            let message = format!("Linkerd sidecar proxy injection skipped: {why}");
            ("InjectionSkipped", message)
        }
    };
    Some(Event {
        reason,
        message,
        regarding: Regarding {
            api_version,
            kind,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
        },
    })
}
