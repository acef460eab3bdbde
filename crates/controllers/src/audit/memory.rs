//! Judgements that are remembered: equal pods, such as those of a `ReplicaSet`, are judged once.
//!
//! Pods of one owner are equal if they differ only in what the cluster writes: their names, when they
//! were created, where they run, and their status. Not for pods without an owner, which are workloads of
//! their own, nor where names may decide.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, Hash as _, Hasher, RandomState},
    sync::{Mutex, PoisonError},
};

use serde_json::{Map, Value};

use super::{Auditor, Judgement, has_ended, sidecar::Sidecar};
use crate::restart::Evidence;

/// What is known of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) judgement: Judgement,
    /// What a restart must know.
    pub(super) evidence: Evidence,
    /// What its values are counted as that change other fields than their own.
    pub(super) tainted: Vec<&'static str>,
}

/// Judgements that are remembered at most. The API server lists the pods of a namespace by name, so
/// that equal ones are near each other.
const MAX_REMEMBERED: usize = 4096;
/// What the API server, the scheduler and controllers write into the metadata of each pod, and no
/// selector, template or rule reads.
const OF_EACH: [&str; 6] =
    ["name", "uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"];
/// How the names begin of the volumes that the API server adds, each with an end of its own.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// Digest of a pod without what differs between equal ones. The keys of its hashes are random: the author
/// of a pod cannot choose its digest.
pub(super) type Key = [u64; 2];

/// Judgements on pods by their digests.
#[derive(Debug, Default)]
pub(super) struct Memory {
    hashes: [RandomState; 2],
    judged: Mutex<HashMap<Key, Judged>>,
}

impl Memory {
    /// The digest of a pod; `None` if its name may decide.
    pub(super) fn key(&self, auditor: &Auditor, pod: &Value) -> Option<Key> {
        // A pod without an owner is a workload of its own: there is no equal one.
        if auditor.names_decide || pod.pointer("/metadata/ownerReferences").is_none() {
            return None;
        }
        let created = match Sidecar::of(pod) {
            // Why it lacks a sidecar depends on when it was created.
            None => pod.pointer("/metadata/creationTimestamp").and_then(Value::as_str),
            Some(_) => None,
        };
        Some(self.hashes.each_ref().map(|keys| {
            let mut hasher = keys.build_hasher();
            (created, has_ended(pod)).hash(&mut hasher);
            hash_pod(pod, &mut hasher);
            hasher.finish()
        }))
    }

    /// The judgement on an equal pod.
    pub(super) fn get(&self, key: &Key) -> Option<Judged> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Remembers a judgement.
    pub(super) fn keep(&self, key: Key, judged: Judged) {
        let mut all = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_REMEMBERED {
            // All at once: a list goes on by name, and does not come back to the pods before.
            all.clear();
        }
        all.insert(key, judged);
    }
}

fn hash_pod(pod: &Value, hasher: &mut impl Hasher) {
    let fields = pod.as_object().into_iter().flatten();
    for (field, value) in fields.filter(|(field, _)| *field != "status") {
        field.hash(hasher);
        match (&**field, value) {
            ("metadata", Value::Object(map)) => hash_without(map, &OF_EACH, hasher),
            ("spec", Value::Object(map)) => hash_without(map, &["nodeName"], hasher),
            _ => hash(value, hasher),
        }
    }
}

fn hash_without(map: &Map<String, Value>, left_out: &[&str], hasher: &mut impl Hasher) {
    for (key, value) in map.iter().filter(|(key, _)| !left_out.contains(&&***key)) {
        key.hash(hasher);
        hash(value, hasher);
    }
    // No key is empty: what follows belongs to another map.
    "".hash(hasher);
}

fn hash(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(value) => (1_u8, value).hash(hasher),
        Value::Number(number) => (2_u8, number).hash(hasher),
        Value::String(text) if text.starts_with(TOKEN_VOLUME) => (3_u8, TOKEN_VOLUME).hash(hasher),
        Value::String(text) => (3_u8, &**text).hash(hasher),
        Value::Array(items) => {
            (4_u8, items.len()).hash(hasher);
            for item in items {
                hash(item, hasher);
            }
        }
        Value::Object(map) => {
            (5_u8, map.len()).hash(hasher);
            hash_without(map, &[], hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::audit::Webhooks;
    use injectd_webhooks::Configurations;

    fn pod(name: &str, more: &Value) -> Value {
        let volume = format!("kube-api-access-{name}");
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": name,
                "creationTimestamp": "2026-11-29T12:00:00Z", "labels": {"app": "web"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": true}]},
            "spec": {"nodeName": name, "volumes": [{"name": volume}],
                "containers": [{"name": "app", "image": "app"}, {"name": "linkerd-proxy"}]},
            "status": {"podIP": name},
        });
        for (pointer, value) in more.as_object().into_iter().flatten() {
            *pod.pointer_mut(pointer).expect("a field") = value.clone();
        }
        pod
    }

    async fn auditor(conditions: Value) -> Auditor {
        let configuration = json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"},
            "webhooks": [{"name": "w", "clientConfig": {"url": "https://a/"}, "matchConditions": conditions}]});
        let webhooks = Configurations::read([&configuration]).expect("a configuration");
        Auditor::new(Webhooks::of_files(webhooks), BTreeMap::new()).await.expect("an auditor")
    }

    #[tokio::test]
    async fn pods_that_differ_only_in_what_the_cluster_writes_are_equal() {
        let (auditor, memory) = (auditor(json!([])).await, Memory::default());
        let key = |pod: &Value| memory.key(&auditor, pod).expect("a key");
        let first = key(&pod("a", &json!({})));
        let later = json!({"/metadata/creationTimestamp": "2026-11-29T13:00:00Z"});
        assert_eq!(first, key(&pod("b", &later)));
        for (field, value) in [
            ("/metadata/labels", json!({"app": "db"})),
            ("/metadata/namespace", json!("other")),
            ("/spec/containers/0/image", json!("b")),
            ("/spec/containers/0/name", json!("imageapp")),
            ("/spec/containers/1/name", json!("istio-proxy")),
            ("/spec/volumes", json!([])),
            ("/status", json!({"phase": "Succeeded"})),
        ] {
            assert_ne!(first, key(&pod("b", &json!({field: value}))), "{field}");
        }
        // Why it lacks its sidecar is said with its time.
        let bare = json!({"/spec/containers/1/name": "other"});
        let mut other = pod("b", &bare);
        other["metadata"]["creationTimestamp"] = later["/metadata/creationTimestamp"].clone();
        assert_ne!(key(&pod("a", &bare)), key(&other));
    }

    #[tokio::test]
    async fn a_pod_without_an_owner_is_a_workload_of_its_own() {
        let mut bare = pod("a", &json!({}));
        bare["metadata"].as_object_mut().expect("metadata").remove("ownerReferences");
        assert_eq!(Memory::default().key(&auditor(json!([])).await, &bare), None);
    }

    #[tokio::test]
    async fn conditions_may_read_names() {
        let condition = json!([{"name": "c", "expression": "object.metadata.name != 'a'"}]);
        let auditor = auditor(condition).await;
        assert_eq!(Memory::default().key(&auditor, &pod("a", &json!({}))), None);
    }

    #[test]
    fn memory_is_bounded() {
        let memory = Memory::default();
        for number in 0..=MAX_REMEMBERED as u64 {
            let (judgement, evidence) = (Judgement::Meshed, Evidence::default());
            memory.keep([number, 0], Judged { judgement, evidence, tainted: Vec::new() });
        }
        assert_eq!(memory.judged.lock().expect("no panic").len(), 1);
    }
}
