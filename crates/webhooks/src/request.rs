//! The request that webhooks are called for.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// Creates an object.
    Create,
    /// Changes an object.
    Update,
    /// Deletes an object.
    Delete,
    /// Connects to an object, such as `pods/exec`.
    Connect,
}

/// A resource of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// The group; empty for that of pods.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name in lower case.
    pub resource: String,
}

/// A request to the API server, as far as webhooks see it.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// What it does.
    pub operation: Operation,
    /// The resource.
    pub resource: Resource,
    /// The kind of the object.
    pub kind: &'r str,
    /// The subresource; empty without one.
    pub subresource: &'r str,
    /// The name; empty if the API server will generate it.
    pub name: &'r str,
    /// The namespace; empty for cluster-scoped objects. For a Namespace its own name.
    pub namespace: &'r str,
    /// The object; `None` for deletions.
    pub object: Option<&'r Value>,
    /// The object before the change or deletion.
    pub old_object: Option<&'r Value>,
    /// Who sends it: `userInfo` of the admission request; `None` if that is not known.
    pub user_info: Option<&'r Value>,
    /// Whether nothing is stored.
    pub dry_run: bool,
}

impl Operation {
    /// The name in rules.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl Resource {
    /// A resource.
    #[must_use]
    pub fn new(group: &str, version: &str, resource: &str) -> Self {
        let [group, version, resource] = [group, version, resource].map(str::to_owned);
        Self { group, version, resource }
    }

    /// Whether it is the resource of Namespaces.
    pub(crate) fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.version == "v1" && self.resource == "namespaces"
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, resource } = self;
        match &**group {
            "" => write!(f, "{resource} of {version}"),
            group => write!(f, "{resource} of {group}/{version}"),
        }
    }
}

impl<'r> Request<'r> {
    /// The creation of a pod by an unknown user.
    #[must_use]
    pub fn creates_pod(pod: &'r Value, namespace: &'r str) -> Self {
        let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        Self {
            operation: Operation::Create,
            resource: Resource::new("", "v1", "pods"),
            kind: "Pod",
            subresource: "",
            name,
            namespace,
            object: Some(pod),
            old_object: None,
            user_info: None,
            dry_run: false,
        }
    }

    /// The variable `request` of conditions (`admission.k8s.io/v1`, `AdmissionRequest`). Without
    /// `userInfo` if that is not known.
    pub(crate) fn variable(&self) -> Value {
        let Resource { group, version, resource } = &self.resource;
        let kind = json!({"group": group, "version": version, "kind": self.kind});
        let resource = json!({"group": group, "version": version, "resource": resource});
        let mut variable = json!({
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "operation": self.operation.as_str(),
            "dryRun": self.dry_run,
        });
        let texts = [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            variable[key] = text.into();
        }
        if let Some(user) = self.user_info {
            variable["userInfo"] = user.clone();
        }
        variable
    }
}
