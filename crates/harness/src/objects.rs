//! Kubernetes objects that scenarios send.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::injectd::WEBHOOK_NAME;

/// Asks for a sidecar, or opts out.
pub const INJECT: &str = "linkerd.io/inject";
/// The log level of the proxy.
pub const LOG_LEVEL: &str = "config.linkerd.io/proxy-log-level";
/// The proxy's timeout for connections to others.
pub const CONNECT_TIMEOUT: &str = "config.linkerd.io/proxy-outbound-connect-timeout";

/// The annotations that ask for a sidecar.
#[must_use]
pub fn enabled() -> Value {
    json!({INJECT: "enabled"})
}

/// The annotations that opt out.
#[must_use]
pub fn disabled() -> Value {
    json!({INJECT: "disabled"})
}

/// A pod with one container.
#[must_use]
pub fn pod(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [
            {"name": "main", "image": "example.com/main:1", "ports": [{"containerPort": 8080}]},
        ]},
    })
}

/// A pod without annotations.
#[must_use]
pub fn plain_pod(name: &str) -> Value {
    pod(name, &json!({}))
}

/// A plain pod with an owner.
#[must_use]
pub fn owned_pod(name: &str, owner: &Value) -> Value {
    let mut pod = plain_pod(name);
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

/// The reference of an owned object to its controller.
#[must_use]
pub fn owner(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "controller": true,
        "name": metadata["name"], "uid": metadata["uid"]})
}

/// A Deployment whose pods have these annotations.
#[must_use]
pub fn deployment(name: &str, replicas: usize, annotations: &Value) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": plain_pod(name)["spec"],
            },
        },
    })
}

/// A Job whose pod has this label `app`.
#[must_use]
pub fn job(name: &str, app: &str) -> Value {
    let mut spec = plain_pod(name)["spec"].take();
    spec["restartPolicy"] = json!("Never");
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"metadata": {"labels": {"app": app}}, "spec": spec}},
    })
}

/// A Service with one port.
#[must_use]
pub fn service(name: &str, cluster_ip: &str, port: u16) -> Value {
    let spec = json!({"clusterIP": cluster_ip, "ports": [{"port": port}]});
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

/// A namespace.
#[must_use]
pub fn namespace(name: &str, annotations: &Value, labels: &Value) -> Value {
    let metadata = json!({"name": name, "annotations": annotations, "labels": labels});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// A `ServiceAccount`.
#[must_use]
pub fn service_account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
}

/// The version of roles and their bindings.
pub const RBAC_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Who a `ServiceAccount` is.
#[derive(Clone, Copy, Debug)]
pub struct ServiceAccount<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl ServiceAccount<'_> {
    /// What gives it a role, kind and name: a `RoleBinding` or a `ClusterRoleBinding`.
    #[must_use]
    pub fn bound(self, kind: &str, name: &str, role_kind: &str, role: &str) -> Value {
        let group = RBAC_VERSION.trim_end_matches("/v1");
        json!({
            "apiVersion": RBAC_VERSION,
            "kind": kind,
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": role_kind, "name": role},
            "subjects": [
                {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace},
            ],
        })
    }

    /// The name of its user.
    #[must_use]
    pub fn user(self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

/// The configuration of the webhook, for pods and services of the namespaces with these labels.
/// `client` is `{"service": …}` or `{"url": …}`.
#[must_use]
pub fn webhook_configuration(name: &str, mut client: Value, ca: &str, labels: &Value) -> Value {
    client["caBundle"] = base64(ca).into();
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods", "services"], "scope": "Namespaced"});
    let webhook = json!({
        "name": WEBHOOK_NAME,
        "clientConfig": client,
        "rules": [rule],
        "namespaceSelector": {"matchLabels": labels},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    })
}

/// A text as a `caBundle` has it.
#[must_use]
pub fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}
