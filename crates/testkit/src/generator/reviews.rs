//! Reviews: an envelope around a pod, a workload, a Service or anything else.

use serde_json::{Map, Value, json};

use super::cluster::{NAMESPACES, OwnerName};
use super::containers::{number, number_or_name};
use super::json_parts::{Fields, maybe, wrong_type};
use super::pods;
use super::random::Random;
use super::texts;

/// Kinds with a pod template at `/spec/template`.
const WORKLOADS: &[&str] =
    &["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"];

/// The type of object under review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Pod,
    Workload,
    CronJob,
    Service,
    Other,
}

/// A review.
pub(super) fn any(random: &mut Random, owners: &[OwnerName]) -> Value {
    if random.below(200) == 0 {
        return broken(random);
    }
    let (sort, kind) = sort_and_kind(random);
    let mut object = object(random, sort, owners);
    let mut requested = kind.as_str();
    match random.below(12) {
        // The request's kind is used if the object has none.
        0 => {}
        1 => object.put("kind", ""),
        2 => {
            object.put("kind", kind.as_str());
            requested = random.pick(&["Pod", "Service", "", "Deployment"]);
        }
        _ => object.put("kind", kind.as_str()),
    }
    let object = match random.below(120) {
        0 => Value::Null,
        1 => wrong_type(random),
        _ => object.into(),
    };
    envelope(random, requested, object)
}

fn sort_and_kind(random: &mut Random) -> (Sort, String) {
    let (sort, kind) = match random.below(100) {
        0..62 => (Sort::Pod, "Pod"),
        62..80 => (Sort::Workload, random.pick(WORKLOADS)),
        80..85 => (Sort::CronJob, "CronJob"),
        85..93 => (Sort::Service, "Service"),
        93..95 => (Sort::Other, "Namespace"),
        _ => (Sort::Other, random.pick(&["Widget", "ConfigMap", "Rollout", "Pods", "PodTemplate"])),
    };
    let kind = match random.below(20) {
        0 => kind.to_lowercase(),
        1 => kind.to_uppercase(),
        _ => kind.to_owned(),
    };
    (sort, kind)
}

fn object(random: &mut Random, sort: Sort, owners: &[OwnerName]) -> Map<String, Value> {
    let mut object = Map::new();
    object.put("apiVersion", random.pick(&["v1", "apps/v1", "x"]));
    let metadata = match sort {
        Sort::Pod => pods::pod_metadata(random, owners),
        _ => pods::object_metadata(random),
    };
    match random.below(100) {
        0 => {}
        1 => object.put("metadata", Value::Null),
        _ => object.put("metadata", metadata),
    }
    let spec = match sort {
        Sort::Pod => pods::spec(random),
        Sort::Workload => Some(around(random, "template", template)),
        Sort::CronJob => Some(around(random, "jobTemplate", |random| {
            around(random, "spec", |random| around(random, "template", template))
        })),
        Sort::Service => Some(service(random)),
        Sort::Other => Some(odd(random)),
    };
    if let Some(spec) = spec {
        object.put("spec", spec);
    }
    if random.below(300) == 0 {
        object.put(random.pick(&["metadata", "spec"]), wrong_type(random));
    }
    if random.percent(50) {
        object.put("status", json!({"phase": "Pending", "spec": {"containers": 7}}));
    }
    object
}

fn template(random: &mut Random) -> Value {
    let mut template = Map::new();
    if let Some(metadata) = pods::template_metadata(random) {
        template.put("metadata", metadata);
    }
    if let Some(spec) = pods::spec(random) {
        template.put("spec", spec);
    }
    template.into()
}

/// An object with one member and others that are not read; rarely without the member.
fn around(random: &mut Random, name: &str, make: impl FnOnce(&mut Random) -> Value) -> Value {
    let mut fields = Map::new();
    fields.put("replicas", 3);
    match random.below(60) {
        0 => {}
        1 => fields.put(name, Value::Null),
        2 => fields.put(name, json!({})),
        3 => fields.put(name, wrong_type(random)),
        _ => {
            let value = make(random);
            fields.put(name, value);
        }
    }
    fields.into()
}

fn service(random: &mut Random) -> Value {
    let port = |random: &mut Random| {
        let mut fields = Map::new();
        maybe(random, &mut fields, "port", 95, number);
        maybe(random, &mut fields, "targetPort", 60, number_or_name);
        Value::from(fields)
    };
    let mut spec = Map::new();
    maybe(random, &mut spec, "ports", 90, |random| {
        (0..random.below(4)).map(|_| port(random)).collect()
    });
    spec.put("selector", json!({"app": "web"}));
    spec.into()
}

/// The spec of an unknown kind, with any content.
fn odd(random: &mut Random) -> Value {
    random
        .one_of(&[
            json!({"containers": "many", "template": 7, "ports": {}}),
            json!([1, 2]),
            json!("text"),
            json!({"template": {"metadata": {"annotations": {"linkerd.io/inject": "enabled"}}}}),
            json!(null),
            json!({"finalizers": ["kubernetes"]}),
        ])
        .clone()
}

fn envelope(random: &mut Random, kind: &str, object: Value) -> Value {
    let mut request = Map::new();
    request.put("uid", texts::text(random, &["705ab4f5-6393-11e8-b7cc-42010a800002"]));
    if random.percent(97) {
        request.put("kind", json!({"group": "", "version": "v1", "kind": kind}));
    }
    request.put("resource", json!({"group": "", "version": "v1", "resource": "pods"}));
    match random.below(200) {
        0 => {}
        1 => request.put("namespace", "missing"),
        2 => request.put("namespace", Value::Null),
        _ => request.put("namespace", random.pick(NAMESPACES)),
    }
    operation(random, &mut request);
    maybe(random, &mut request, "dryRun", 30, |random| random.percent(40).into());
    request.put("userInfo", json!({"username": "admin", "groups": ["system:masters"]}));
    let without = ["DELETE", "CONNECT"].iter().any(|operation| request["operation"] == *operation);
    if without && random.percent(80) {
        request.put("oldObject", object);
    } else {
        request.put("object", object);
        request.put("oldObject", Value::Null);
    }
    if random.below(300) == 0 {
        let field = ["uid", "kind", "namespace", "dryRun", "subResource"];
        request.put(random.pick(&field), wrong_type(random));
    }
    let version = random.pick(&["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]);
    json!({"kind": "AdmissionReview", "apiVersion": version, "request": request})
}

fn operation(random: &mut Random, request: &mut Map<String, Value>) {
    let operation = match random.below(40) {
        0 => "DELETE",
        1 => "CONNECT",
        2 => "",
        3..6 => "UPDATE",
        _ => "CREATE",
    };
    request.put("operation", operation);
    match random.below(40) {
        0 => request.put("subResource", random.pick(&["status", "exec", "eviction"])),
        1 => request.put("subResource", ""),
        2 => request.put("subResource", Value::Null),
        _ => {}
    }
}

/// An invalid or nearly empty review.
fn broken(random: &mut Random) -> Value {
    let request = json!({"uid": "u", "namespace": "shop", "object": {"kind": "Pod"}});
    random
        .one_of(&[
            json!({}),
            json!(null),
            json!([]),
            json!(7),
            json!("review"),
            json!({"request": null}),
            json!({"request": {}}),
            json!({"request": []}),
            json!({"request": {"uid": ""}}),
            json!({"request": {"uid": null}}),
            json!({"request": {"uid": 7}}),
            json!({"request": {"uid": "u"}}),
            json!({"request": request}),
            json!({"kind": 7, "request": request}),
            json!({"apiVersion": {}, "request": request}),
            json!({"request": {"uid": "u", "kind": {"kind": 7}}}),
            json!({"request": {"uid": "u", "kind": "Pod", "object": {}}}),
            json!({"request": {"uid": "u", "namespace": "shop", "object": {"kind": 7}}}),
            json!({"kind": null, "apiVersion": null, "request": request}),
            json!({"request": {"uid": "u", "namespace": "shop", "object": {}}}),
        ])
        .clone()
}
