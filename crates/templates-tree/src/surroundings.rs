//! Where pods come from, as objects of files say it: namespaces, `ServiceAccounts` and owners.
//!
//! Not for a cluster, whose caches answer the same questions.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::owner::controller;

/// The ServiceAccount of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
/// Most owners of a pod: the references of objects in files may form a circle.
const MOST_OWNERS: usize = 8;
/// The kinds whose pods are owned by an object in between: kind, and `apiVersion` and kind of that object.
const BETWEEN: [(&str, &str, &str); 3] = [
    ("Deployment", "apps/v1", "ReplicaSet"),
    ("CronJob", "batch/v1", "Job"),
    ("DeploymentConfig", "v1", "ReplicationController"),
];
/// What the cluster writes into the metadata of a pod that it makes from a template.
const MADE: [&str; 2] = ["generateName", "ownerReferences"];

/// Objects that say where pods come from.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// By namespace, kind and name.
    objects: BTreeMap<[String; 3], Value>,
    /// Whether a namespace that is not among the objects does not exist.
    pub has_all_namespaces: bool,
}

/// A pod that is made from the template of a workload.
#[derive(Debug)]
pub struct Made {
    /// The pod.
    pub pod: Value,
    /// Its owners, the nearest first.
    pub owners: Vec<Value>,
}

impl Surroundings {
    /// Adds an object, in place of one of its kind and name. Only its metadata is kept. `namespace` counts for
    /// an object that names none.
    pub fn add(&mut self, object: &Value, kind: &str, namespace: &str) {
        let key = [namespace_of(object, kind, namespace), kind, text(object, "/metadata/name")];
        let mut metadata = object.get("metadata").cloned().unwrap_or_default();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.shift_remove("managedFields");
        }
        let kept = json!({"apiVersion": object["apiVersion"], "kind": kind, "metadata": metadata});
        self.objects.insert(key.map(str::to_owned), kept);
    }

    fn object(&self, namespace: &str, kind: &str, name: &str) -> Option<&Value> {
        self.objects.get(&[namespace, kind, name].map(str::to_owned))
    }

    /// Whether a namespace is among the objects.
    #[must_use]
    pub fn has_namespace(&self, name: &str) -> bool {
        self.object("", "Namespace", name).is_some()
    }

    /// A namespace; of one that is not among the objects only the name is known, and the label that every
    /// namespace has. `None` if it does not exist.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<Value> {
        if let Some(known) = self.object("", "Namespace", name) {
            return Some(known.clone());
        }
        // An API server gives each namespace this label.
        let labels = json!({"kubernetes.io/metadata.name": name});
        let metadata = json!({"name": name, "labels": labels});
        (!self.has_all_namespaces)
            .then(|| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    }

    /// The ServiceAccount of a pod, if it is among the objects.
    #[must_use]
    pub fn service_account(&self, pod: &Value, namespace: &str) -> Option<&Value> {
        self.object(namespace, "ServiceAccount", service_account_name(pod))
    }

    /// The owners of an object that are among the objects, the nearest first.
    #[must_use]
    pub fn owners(&self, object: &Value, namespace: &str) -> Vec<Value> {
        let mut owners: Vec<Value> = Vec::new();
        while owners.len() < MOST_OWNERS
            && let Some(reference) = controller(owners.last().unwrap_or(object))
            && let (kind, name) = (text(reference, "/kind"), text(reference, "/name"))
            && let Some(owner) = self.object(namespace, kind, name)
        {
            owners.push(owner.clone());
        }
        owners
    }

    /// The pod of a workload as the cluster makes it: with its owners, a Deployment's `ReplicaSet` and a `CronJob`'s
    /// Job among them, whose names are not known and count as that of the workload.
    #[must_use]
    pub fn made(&self, mut pod: Value, workload: &Value, namespace: &str) -> Made {
        let kind = text(workload, "/kind");
        let name = text(workload, "/metadata/name");
        let mut owners = Vec::new();
        let above = json!({"apiVersion": workload["apiVersion"], "kind": kind,
            "metadata": workload["metadata"]});
        if let Some((_, version, between)) = BETWEEN.iter().find(|(of, ..)| *of == kind) {
            let labels = match *between {
                "Job" => workload.pointer("/spec/jobTemplate/metadata/labels"),
                _ => pod.pointer("/metadata/labels"),
            };
            let metadata = json!({"name": name, "namespace": namespace, "labels": labels,
                "ownerReferences": [reference(&above)]});
            owners.push(json!({"apiVersion": version, "kind": between, "metadata": metadata}));
        }
        owners.push(above);
        if let Some(metadata) = metadata_of(&mut pod) {
            metadata.insert("generateName".to_owned(), format!("{name}-").into());
            let nearest = owners.first().map(reference);
            metadata.insert("ownerReferences".to_owned(), json!([nearest]));
        }
        owners.extend(self.owners(workload, namespace));
        Made { pod, owners }
    }
}

/// The name of the ServiceAccount of a pod.
#[must_use]
pub fn service_account_name(pod: &Value) -> &str {
    match text(pod, "/spec/serviceAccountName") {
        "" => DEFAULT_ACCOUNT,
        name => name,
    }
}

/// A pod that was made from a template, as a template again.
#[must_use]
pub fn unmade(mut pod: Value, template: &Value) -> Value {
    let written = |key: &str| template.get("metadata").and_then(|metadata| metadata.get(key));
    let Some(metadata) = metadata_of(&mut pod) else { return pod };
    for key in MADE {
        match written(key) {
            Some(value) => _ = metadata.insert(key.to_owned(), value.clone()),
            None => _ = metadata.shift_remove(key),
        }
    }
    let is_left = metadata.is_empty();
    if is_left
        && !template.get("metadata").is_some_and(Value::is_object)
        && let Some(fields) = pod.as_object_mut()
    {
        match template.get("metadata") {
            Some(written) => _ = fields.insert("metadata".to_owned(), written.clone()),
            None => _ = fields.shift_remove("metadata"),
        }
    }
    pod
}

/// The metadata of a pod; `None` if something else is in its place.
fn metadata_of(pod: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = pod.as_object_mut()?.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut()
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": text(owner, "/metadata/name"),
        "uid": text(owner, "/metadata/uid"),
        "controller": true,
    })
}

/// The namespace of an object: none for a Namespace.
fn namespace_of<'o>(object: &'o Value, kind: &str, default: &'o str) -> &'o str {
    match text(object, "/metadata/namespace") {
        _ if kind == "Namespace" => "",
        "" => default,
        own => own,
    }
}

fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(kind: &str) -> Value {
        json!({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "web", "uid": "u"},
            "spec": {"jobTemplate": {"metadata": {"labels": {"of": "job"}}}}})
    }

    #[test]
    fn the_pod_of_a_deployment_has_a_replica_set_between() {
        let pod = json!({"metadata": {"labels": {"app": "web"}}, "spec": {}});
        for (kind, expected) in [
            ("Deployment", &["ReplicaSet", "Deployment"][..]),
            ("CronJob", &["Job", "CronJob"]),
            ("StatefulSet", &["StatefulSet"]),
        ] {
            let made = Surroundings::default().made(pod.clone(), &workload(kind), "shop");
            let kinds: Vec<_> = made.owners.iter().map(|owner| text(owner, "/kind")).collect();
            assert_eq!(kinds, expected);
            let nearest = &made.pod["metadata"]["ownerReferences"][0];
            assert_eq!((&nearest["kind"], &nearest["name"]), (&expected[0].into(), &"web".into()));
            assert_eq!(made.pod["metadata"]["generateName"], "web-");
            assert_eq!(unmade(made.pod, &pod), pod);
        }
    }

    #[test]
    fn a_template_without_metadata_comes_out_without_metadata() {
        for template in [json!({"spec": {}}), json!({"metadata": null, "spec": {}})] {
            let made = Surroundings::default().made(template.clone(), &workload("Job"), "shop");
            assert_eq!(unmade(made.pod, &template), template);
        }
        let mut made = Surroundings::default().made(json!({"spec": {}}), &workload("Job"), "shop");
        made.pod["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(
            unmade(made.pod, &json!({"spec": {}}))["metadata"],
            json!({"labels": {"a": "b"}})
        );
    }

    #[test]
    fn owners_are_followed_through_the_objects_and_no_circle_is_endless() {
        let mut surroundings = Surroundings::default();
        let of = |kind: &str, owner: &str| {
            json!({"kind": kind, "metadata": {"name": "a", "ownerReferences":
                [{"kind": owner, "name": "a", "controller": true}]}})
        };
        surroundings.add(&of("ReplicaSet", "Deployment"), "ReplicaSet", "shop");
        surroundings.add(&of("Deployment", "ReplicaSet"), "Deployment", "shop");
        let pod = of("Pod", "ReplicaSet");
        assert_eq!(surroundings.owners(&pod, "shop").len(), MOST_OWNERS);
        assert_eq!(surroundings.owners(&pod, "other").len(), 0);
    }

    #[test]
    fn a_namespace_without_an_object_exists_unless_all_are_known() {
        let mut surroundings = Surroundings::default();
        let object = json!({"metadata": {"name": "a", "labels": {"b": "c"}}});
        surroundings.add(&object, "Namespace", "shop");
        assert_eq!(
            surroundings.namespace("a").expect("it")["metadata"]["labels"],
            json!({"b": "c"})
        );
        let other = surroundings.namespace("b").expect("any");
        assert_eq!(other["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "b"}));
        surroundings.has_all_namespaces = true;
        assert_eq!(surroundings.namespace("b"), None);
    }
}
