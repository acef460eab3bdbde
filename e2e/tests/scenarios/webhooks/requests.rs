//! The requests of the table.

use hyper::Method;
use injectd_harness::objects;
use injectd_webhooks::{Operation, Request, Resource};
use serde_json::{Value, json};

use super::MATCHED;

/// A request: a dry run.
pub(super) struct Sent {
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    kind: &'static str,
    resource: Resource,
    subresource: &'static str,
    object_name: String,
    namespace: String,
    change: fn(Value) -> Value,
}

/// The objects that are there before.
pub(super) fn existing() -> Vec<Value> {
    let mut first = objects::plain_pod("first");
    first["metadata"]["labels"] = json!({"app": "web"});
    vec![first, objects::plain_pod("second"), objects::deployment("scaled", 0, &json!({}))]
}

fn labelled(mut object: Value, app: &str) -> Value {
    object["metadata"]["labels"]["app"] = app.into();
    object
}

fn autoscaler(version: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"});
    json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "new"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}})
}

/// Every request, with these names in place of the table's.
pub(super) fn all(own_names: &dyn Fn(&str) -> String) -> Vec<Sent> {
    let mut all: Vec<_> = of_pods_and_namespaces().into_iter().chain(of_other_kinds()).collect();
    for sent in &mut all {
        for text in [&mut sent.path, &mut sent.object_name, &mut sent.namespace] {
            *text = own_names(text);
        }
    }
    all
}

fn post(name: &'static str, path: &'static str, of: Of, change: fn(Value) -> Value) -> Sent {
    sent(name, Method::POST, path, of, change)
}

fn of_pods_and_namespaces() -> Vec<Sent> {
    let pods = Of { group: "", version: "v1", resource: "pods", kind: "Pod" };
    let namespaces = Of { resource: "namespaces", kind: "Namespace", ..pods };
    let change_status = |mut old: Value| {
        old["status"]["message"] = "changed".into();
        old
    };
    let change_namespace = |mut old: Value| {
        old["metadata"]["labels"]["team"] = "bank".into();
        old
    };
    vec![
        post("create a pod", PODS, pods, |_| labelled(objects::plain_pod("new"), "web")),
        post("create a pod without labels", PODS, pods, |_| objects::plain_pod("bare")),
        post("create a pod of another app", PODS, pods, |_| {
            labelled(objects::plain_pod("new"), "api")
        }),
        sent("change a pod's label", Method::PUT, FIRST, pods, |old| labelled(old, "api"))
            .of_object("first"),
        sent("add a label to a pod", Method::PUT, SECOND, pods, |old| labelled(old, "web"))
            .of_object("second"),
        sent("delete a pod", Method::DELETE, FIRST, pods, |old| old).of_object("first"),
        sent("delete a pod without labels", Method::DELETE, SECOND, pods, |old| old)
            .of_object("second"),
        sent("change a pod's status", Method::PUT, STATUS, pods, change_status)
            .of_object("first")
            .of_subresource("status"),
        post("create a namespace", "/api/v1/namespaces", namespaces, |_| {
            objects::namespace("webhooks-new", &json!({}), &json!({"team": "bank"}))
        }),
        sent("change a namespace", Method::PUT, OWN, namespaces, change_namespace)
            .of_object(MATCHED),
    ]
}

fn of_other_kinds() -> Vec<Sent> {
    let deployments =
        Of { group: "apps", version: "v1", resource: "deployments", kind: "Deployment" };
    let events = Of { group: "", version: "v1", resource: "events", kind: "Event" };
    let new_events = Of { group: "events.k8s.io", ..events };
    let scale = |mut old: Value| {
        old["spec"]["replicas"] = 2.into();
        old
    };
    vec![
        post("create a cluster role", ROLES, RBAC, |_| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "webhooks-new", "labels": {"app": "web"}}, "rules": []})
        }),
        post("create a Deployment", DEPLOYMENTS, deployments, |_| {
            objects::deployment("new", 2, &json!({}))
        }),
        sent("scale a Deployment", Method::PUT, SCALE, Of { kind: "Scale", ..deployments }, scale)
            .of_object("scaled")
            .of_subresource("scale"),
        post("create an autoscaler in v1", AUTOSCALERS_V1, autoscaling("v1"), |_| autoscaler("v1")),
        post("create an autoscaler in v2", AUTOSCALERS_V2, autoscaling("v2"), |_| autoscaler("v2")),
        post("create an event", EVENTS, events, |_| {
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "new"},
                "involvedObject": {"kind": "Pod", "namespace": MATCHED, "name": "first"}})
        }),
        post("create a new event", NEW_EVENTS, new_events, |_| {
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"},
                "eventTime": "2026-01-01T00:00:00.000000Z", "reason": "Test", "action": "Test",
                "type": "Normal", "reportingController": "example.com/test",
                "reportingInstance": "test",
                "regarding": {"kind": "Pod", "namespace": MATCHED, "name": "first"}})
        }),
    ]
}

const PODS: &str = "/api/v1/namespaces/webhooks-matched/pods";
const FIRST: &str = "/api/v1/namespaces/webhooks-matched/pods/first";
const SECOND: &str = "/api/v1/namespaces/webhooks-matched/pods/second";
const STATUS: &str = "/api/v1/namespaces/webhooks-matched/pods/first/status";
const OWN: &str = "/api/v1/namespaces/webhooks-matched";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const RBAC: Of = Of {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    resource: "clusterroles",
    kind: "ClusterRole",
};
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/webhooks-matched/deployments";
const SCALE: &str = "/apis/apps/v1/namespaces/webhooks-matched/deployments/scaled/scale";
const AUTOSCALERS_V1: &str =
    "/apis/autoscaling/v1/namespaces/webhooks-matched/horizontalpodautoscalers";
const AUTOSCALERS_V2: &str =
    "/apis/autoscaling/v2/namespaces/webhooks-matched/horizontalpodautoscalers";
const EVENTS: &str = "/api/v1/namespaces/webhooks-matched/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/webhooks-matched/events";

/// What a request is about.
#[derive(Clone, Copy)]
struct Of {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    kind: &'static str,
}

fn autoscaling(version: &'static str) -> Of {
    Of {
        group: "autoscaling",
        version,
        resource: "horizontalpodautoscalers",
        kind: "HorizontalPodAutoscaler",
    }
}

/// A request about an object that is made, of no subresource.
fn sent(
    name: &'static str,
    method: Method,
    path: &str,
    of: Of,
    change: fn(Value) -> Value,
) -> Sent {
    let resource = Resource::new(of.group, of.version, of.resource);
    let namespace = match (of.resource, path) {
        ("clusterroles", _) => "",
        ("namespaces", OWN) => MATCHED,
        ("namespaces", _) => "webhooks-new",
        _ => MATCHED,
    };
    Sent {
        name,
        method,
        path: path.to_owned(),
        kind: of.kind,
        resource,
        subresource: "",
        object_name: String::new(),
        namespace: namespace.to_owned(),
        change,
    }
}

impl Sent {
    fn of_object(self, name: &str) -> Self {
        Self { object_name: name.to_owned(), ..self }
    }

    fn of_subresource(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    /// What is sent, with the names of the table; `None` for a deletion.
    pub(super) fn body(&self, old: Option<Value>) -> Option<Value> {
        (self.method != Method::DELETE).then(|| (self.change)(old.unwrap_or_default()))
    }

    /// The request as webhooks see it.
    pub(super) fn request<'r>(
        &'r self,
        object: Option<&'r Value>,
        old_object: Option<&'r Value>,
    ) -> Request<'r> {
        let of_object = || object.and_then(|object| object["metadata"]["name"].as_str());
        Request {
            operation: match self.method {
                Method::POST => Operation::Create,
                Method::PUT => Operation::Update,
                _ => Operation::Delete,
            },
            resource: self.resource.clone(),
            kind: self.kind,
            subresource: self.subresource,
            name: match &*self.object_name {
                "" => of_object().unwrap_or_default(),
                name => name,
            },
            namespace: &self.namespace,
            object,
            old_object,
            user_info: None,
            dry_run: true,
        }
    }
}
