//! Pods and pod templates: metadata and specs.

use serde_json::{Map, Value, json};

use super::annotations::{self, Layer};
use super::cluster::OwnerName;
use super::containers;
use super::json_parts::{Fields, maybe, wrong_type};
use super::random::Random;
use super::texts;

/// The metadata of a pod.
pub(super) fn pod_metadata(random: &mut Random, owners: &[OwnerName]) -> Value {
    let mut meta = Map::new();
    match random.below(10) {
        0 => meta.put("name", texts::ugly(random)),
        1..5 => meta.put("name", "web-1"),
        5 => {}
        _ => meta.put("generateName", "web-7d9f-"),
    }
    if random.percent(30) {
        meta.put("namespace", random.pick(&["shop", "other", ""]));
    }
    words(random, &mut meta, Layer::Pod);
    if random.percent(80) {
        meta.put("ownerReferences", owner_references(random, owners));
    }
    if random.percent(70) {
        meta.put("creationTimestamp", Value::Null);
        meta.put("uid", "0f");
    }
    if random.percent(30) {
        let entry = json!({"manager": "m", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}});
        meta.put("managedFields", json!([entry]));
    }
    spoil(random, &mut meta, &["name", "annotations", "labels", "ownerReferences"]);
    meta.into()
}

/// The metadata of a pod template, often empty in one of the ways that Go distinguishes.
pub(super) fn template_metadata(random: &mut Random) -> Option<Value> {
    let empty = [
        json!({}),
        json!(null),
        json!({"creationTimestamp": null}),
        json!({"labels": {}}),
        json!({"annotations": {}}),
        json!({"labels": null, "annotations": null, "name": ""}),
        json!({"creationTimestamp": "2026-01-01T00:00:00Z"}),
        json!({"generation": 0, "finalizers": null}),
        json!({"finalizers": []}),
        json!({"managedFields": []}),
        json!({"ownerReferences": []}),
        json!({"deletionGracePeriodSeconds": 0}),
        json!({"clusterName": "x"}),
        json!({"generateName": "x-"}),
        json!({"resourceVersion": "1"}),
        json!({"selfLink": ""}),
    ];
    match random.below(20) {
        0 => None,
        1..8 => Some(random.one_of(&empty).clone()),
        _ => {
            let mut meta = Map::new();
            words(random, &mut meta, Layer::Pod);
            meta.put("creationTimestamp", Value::Null);
            spoil(random, &mut meta, &["annotations", "labels"]);
            Some(meta.into())
        }
    }
}

/// The metadata of a workload, a Service or anything else.
pub(super) fn object_metadata(random: &mut Random) -> Value {
    let mut meta = Map::new();
    meta.put("name", texts::text(random, &["web", "db", "x".repeat(64).as_str()]));
    match random.below(4) {
        0 => {}
        1 => meta.put("namespace", texts::text(random, &["", "123"])),
        _ => meta.put("namespace", "shop"),
    }
    words(random, &mut meta, Layer::Workload);
    meta.into()
}

/// Annotations and labels.
fn words(random: &mut Random, meta: &mut Map<String, Value>, layer: Layer) {
    match random.below(10) {
        0 => {}
        1 => meta.put("annotations", Value::Null),
        2 => meta.put("annotations", json!({})),
        _ => meta.put("annotations", annotations::map(random, layer)),
    }
    match random.below(10) {
        0..2 => {}
        2 => meta.put("labels", Value::Null),
        3 => meta.put("labels", json!({})),
        _ => meta.put("labels", labels(random)),
    }
}

fn labels(random: &mut Random) -> Value {
    let mut labels = Map::new();
    for key in ["app.kubernetes.io/instance", "app.kubernetes.io/name"] {
        if random.percent(30) {
            labels.put(key, texts::text(random, &["web", "", "a=b"]));
        }
        match random.below(300) {
            0 => labels.put(key, 7),
            1..6 => labels.put(key, Value::Null),
            _ => {}
        }
    }
    if random.percent(50) {
        labels.put("app", "web");
        labels.put("pod-template-hash", "7d9f");
    }
    labels.into()
}

fn owner_references(random: &mut Random, owners: &[OwnerName]) -> Value {
    let count = random.pick(&[0, 1, 1, 1, 1, 1, 1, 2]);
    let references = (0..count).map(|_| owner_reference(random, owners));
    references.collect()
}

fn owner_reference(random: &mut Random, owners: &[OwnerName]) -> Value {
    if random.percent(1) {
        return Value::Null;
    }
    let mut fields = Map::new();
    if random.percent(70) && !owners.is_empty() {
        let owner = random.one_of(owners);
        fields.put("kind", owner.kind.as_str());
        fields.put("name", owner.name.as_str());
        fields.put("uid", owner.uid.as_str());
    } else {
        let kinds = [
            "ReplicaSet",
            "Job",
            "Deployment",
            "replicaset",
            "JOB",
            "Node",
            "Rollout",
            "CronJob",
            "DaemonSet",
            "statefulset",
            "ReplicationController",
            "Pod",
            "",
            "a\"b",
        ];
        fields.put("kind", random.pick(&kinds));
        fields.put("name", texts::text(random, &["web", "gone", "owner-0", ""]));
        fields.put("uid", "u0");
    }
    match random.below(12) {
        0 => fields.put("uid", "forged"),
        1 => fields.put("uid", Value::Null),
        2 => drop(fields.remove("uid")),
        3 => fields.put("controller", true),
        _ => fields.put("apiVersion", random.pick(&["apps/v1", "batch/v1", "x/v1"])),
    }
    fields.into()
}

/// A pod's spec.
pub(super) fn spec(random: &mut Random) -> Option<Value> {
    match random.below(80) {
        0 => return None,
        1 => return Some(Value::Null),
        2 => return Some(json!({})),
        _ => {}
    }
    let mut spec = Map::new();
    if let Some(containers) = containers::list(random, 3) {
        spec.put("containers", containers);
    }
    if random.percent(40)
        && let Some(containers) = containers::list(random, 2)
    {
        spec.put("initContainers", containers);
    }
    maybe(random, &mut spec, "volumes", 60, |random| match random.below(3) {
        0 => json!([]),
        _ => json!([{"name": "data", "emptyDir": {}}]),
    });
    maybe(random, &mut spec, "hostNetwork", 6, |random| random.percent(50).into());
    let automount = "automountServiceAccountToken";
    maybe(random, &mut spec, automount, 25, |random| random.percent(50).into());
    if random.percent(50) {
        spec.put("serviceAccountName", "default");
        spec.put("tolerations", json!([{"key": "a", "operator": "Exists"}]));
    }
    spoil(random, &mut spec, &["containers", "volumes", "hostNetwork", automount]);
    Some(spec.into())
}

/// Rarely sets a field to the wrong type.
fn spoil(random: &mut Random, fields: &mut Map<String, Value>, names: &[&str]) {
    if random.below(150) == 0 {
        fields.put(random.pick(names), wrong_type(random));
    }
}
