//! The objects of the cluster: namespaces, and owners of pods.

use serde_json::{Map, Value, json};

use super::annotations::{self, Layer};
use super::random::Random;

/// The namespaces that exist; requests may name others.
pub(super) const NAMESPACES: &[&str] = &["shop", "plain", "123"];

/// A pod's reference to its owner.
#[derive(Clone, Debug)]
pub(super) struct OwnerName {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid; may be empty.
    pub uid: String,
}

/// Namespaces with their annotations.
pub(super) fn namespaces(random: &mut Random) -> Map<String, Value> {
    let names = NAMESPACES.iter();
    names
        .map(|name| {
            let annotations = annotations::map(random, Layer::Namespace);
            let kept = annotations.into_iter().filter(|(_, value)| value.is_string());
            ((*name).to_owned(), Value::Object(kept.collect()))
        })
        .collect()
}

/// Objects that own pods, in each namespace.
pub(super) fn owners(random: &mut Random) -> Vec<Value> {
    const KINDS: &[&str] = &[
        "ReplicaSet",
        "ReplicaSet",
        "ReplicaSet",
        "Job",
        "Job",
        "Deployment",
        "DaemonSet",
        "StatefulSet",
        "CronJob",
        "ReplicationController",
    ];
    let mut objects = Vec::new();
    for namespace in NAMESPACES {
        for (at, kind) in KINDS.iter().enumerate() {
            if random.percent(70) {
                let parents: Value =
                    (0..random.pick(&[0, 1, 1, 1, 2])).map(|_| parent(random)).collect();
                let mut meta = json!({"namespace": namespace, "name": format!("owner-{at}")});
                if random.percent(80) {
                    meta["uid"] = format!("u{at}").into();
                }
                if random.percent(90) {
                    meta["ownerReferences"] = parents;
                }
                objects.push(json!({"kind": kind, "metadata": meta}));
            }
        }
    }
    objects
}

fn parent(random: &mut Random) -> Value {
    let kinds = [
        "Deployment",
        "Deployment",
        "Deployment",
        "CronJob",
        "Job",
        "StatefulSet",
        "DaemonSet",
        "Rollout",
        "deployment",
        "ReplicaSet",
        "",
    ];
    let at = random.below(10);
    json!({"kind": random.pick(&kinds), "name": format!("owner-{at}"), "uid": "p"})
}

/// Owner references to the owners of a cluster, valid and invalid.
pub(super) fn owner_names(owners: &[Value]) -> Vec<OwnerName> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = owners.iter().map(|owner| OwnerName {
        kind: text(&owner["kind"]),
        name: text(&owner["metadata"]["name"]),
        uid: text(&owner["metadata"]["uid"]),
    });
    names.collect()
}
