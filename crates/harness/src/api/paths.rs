//! Paths of objects and collections.

use serde_json::Value;

/// The collection that webhooks are configured in.
pub const WEBHOOK_CONFIGURATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// The collection of namespaces.
pub const NAMESPACES: &str = "/api/v1/namespaces";

/// The path of a collection.
#[must_use]
pub fn collection(version: &str, kind: &str, namespace: Option<&str>) -> String {
    let root = if version.contains('/') { "apis" } else { "api" };
    let scope = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let kind = kind.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    };
    format!("/{root}/{version}{scope}/{plural}")
}

/// The path of an object.
#[must_use]
pub fn path_of(object: &Value, namespace: Option<&str>) -> String {
    let (version, kind) = kind_of(object);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{}/{name}", collection(version, kind, namespace))
}

/// The version and the kind of an object.
pub(super) fn kind_of(object: &Value) -> (&str, &str) {
    let field = |name: &str| object[name].as_str().unwrap_or_default();
    (field("apiVersion"), field("kind"))
}
