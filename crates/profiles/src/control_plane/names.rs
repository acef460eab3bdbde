//! The names of the control plane's namespace and `ConfigMap`s.

use crate::DEFAULT_REVISION;

/// The namespace in which Istio's charts install istiod.
pub const ISTIO_NAMESPACE: &str = "istio-system";

/// The `ConfigMap` with policy, templates and values.
pub(super) const INJECTOR: &str = "istio-sidecar-injector";
/// The `ConfigMap` with the mesh config.
pub(super) const MESH: &str = "istio";

/// The name of the `ConfigMap` with policy, templates and values of a revision.
#[must_use]
pub fn injector_name(revision: &str) -> String {
    name_of(INJECTOR, revision)
}

/// The name of the `ConfigMap` with the mesh config of a revision.
#[must_use]
pub fn mesh_name(revision: &str) -> String {
    name_of(MESH, revision)
}

fn name_of(base: &str, revision: &str) -> String {
    if revision.is_empty() || revision == DEFAULT_REVISION {
        base.to_owned()
    } else {
        format!("{base}-{revision}")
    }
}

/// The revision whose policy, templates and values a `ConfigMap` of this name has.
#[must_use]
pub fn revision_of(name: &str) -> Option<&str> {
    match name.strip_prefix(INJECTOR)? {
        "" => Some(DEFAULT_REVISION),
        suffix => suffix
            .strip_prefix('-')
            .filter(|revision| !revision.is_empty() && *revision != DEFAULT_REVISION),
    }
}
