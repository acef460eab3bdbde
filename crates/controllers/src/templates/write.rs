//! What a leader writes. Each write names the version that it is for: a leader that was replaced in the
//! meantime writes nothing.

use injectd_templates::{
    object::Identity,
    schema::{CLUSTER_KIND, CLUSTER_PLURAL, NAMESPACED_KIND, NAMESPACED_PLURAL},
};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::api::ObjectMeta;
use serde_json::Value;

/// A write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    /// Makes a revision. Its name follows from template and content: a second one is not made.
    CreateRevision(Box<ControllerRevision>),
    /// Makes a revision the newest one of its template.
    RenumberRevision { of: Found, revision: i64 },
    /// Removes a revision.
    DeleteRevision(Found),
    /// Writes the status of a template.
    Status { identity: Identity, version: String, status: Value },
    /// Removes the Lease of a replica that is gone.
    DeleteLease(Found),
}

/// An object as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) object_uid: String,
    pub(super) resource_version: String,
}

impl Found {
    pub(super) fn of(metadata: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            name: text(&metadata.name),
            object_uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
        }
    }
}

impl Write {
    /// The object that is written, for the log.
    pub(super) fn object(&self) -> String {
        match self {
            Self::CreateRevision(revision) => {
                format!("ControllerRevision {}", revision.metadata.name.as_deref().unwrap_or(""))
            }
            Self::RenumberRevision { of, .. } | Self::DeleteRevision(of) => {
                format!("ControllerRevision {}", of.name)
            }
            Self::Status { identity, .. } => format!("{} {identity}", kind(identity)),
            Self::DeleteLease(of) => format!("Lease {}", of.name),
        }
    }

    /// The version of the object that the write is for; empty for a new one.
    pub(super) fn version(&self) -> &str {
        match self {
            Self::CreateRevision(_) => "",
            Self::RenumberRevision { of, .. }
            | Self::DeleteRevision(of)
            | Self::DeleteLease(of) => &of.resource_version,
            Self::Status { version, .. } => version,
        }
    }
}

/// The kind of a template.
pub(super) fn kind(identity: &Identity) -> &'static str {
    if identity.namespace.is_some() { NAMESPACED_KIND } else { CLUSTER_KIND }
}

/// How paths of the API server name the kind of a template.
pub(super) fn plural(identity: &Identity) -> &'static str {
    if identity.namespace.is_some() { NAMESPACED_PLURAL } else { CLUSTER_PLURAL }
}
