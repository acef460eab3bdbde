//! The names of a release, and what the chart makes of values.

use std::{path::Path, process::Command};

use injectd_harness::{
    api::{WEBHOOK_CONFIGURATIONS, collection, path_of},
    expect::{Outcome, failed},
    namespaced::Namespaced,
    objects::{RBAC_VERSION, ServiceAccount},
    process::run,
};
use injectd_templates::schema;
use serde_json::Value;

/// The release, whose name is that of its namespace, its Service, its `ServiceAccount` and its tag.
#[derive(Clone, Debug)]
pub(super) struct Release(pub(super) String);

impl Release {
    /// The webhook configurations: Linkerd's, and that of the tag.
    pub(super) fn configurations(&self) -> [String; 2] {
        let name = &self.0;
        [format!("{name}-linkerd"), format!("{name}-tag-{name}")]
    }

    /// The Secret, the Lease and the Role of the same name.
    pub(super) fn certificates(&self) -> String {
        format!("{}-certificates", self.0)
    }

    /// The Lease of the audit, and the Role that allows it.
    pub(super) fn audit(&self) -> String {
        format!("{}-audit", self.0)
    }

    pub(super) fn account(&self) -> ServiceAccount<'_> {
        ServiceAccount { namespace: &self.0, name: &self.0 }
    }
}

/// No image is published: the chart has no default.
pub(super) const IMAGE: &str = "image.repository=ghcr.io/injectd/injectd";

/// The objects that `injectd manifest install` prints with these arguments.
pub(super) async fn objects(binary: &Path, arguments: &[&str]) -> Outcome<Vec<Value>> {
    let mut command = Command::new(binary);
    command.args(["manifest", "install", "-o", "json", "--set", IMAGE]).args(arguments);
    let mut list: Value = serde_json::from_str(&run(command).await?.with_code(0)?)?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Err(failed("no list of objects")),
    }
}

/// Lets the end of a scenario delete what a release of its name has in no namespace.
pub(super) fn delete_release_at_end(it: &Namespaced<'_>) {
    let kinds = ["ClusterRole", "ClusterRoleBinding"];
    let roles = kinds.map(|kind| collection(RBAC_VERSION, kind, None));
    for path in roles.iter().map(String::as_str).chain([WEBHOOK_CONFIGURATIONS]) {
        let selector = format!("app.kubernetes.io%2Finstance%3D{}", it.name);
        it.delete_at_end(format!("{path}?labelSelector={selector}"));
    }
    // Helm keeps them.
    for definition in schema::crds() {
        it.delete_at_end(path_of(&definition, None));
    }
}
