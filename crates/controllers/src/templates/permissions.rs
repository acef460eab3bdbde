//! The permissions that the keeper needs: what a Role and a `ClusterRole` for it have.

/// A rule of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// Whether it is for all namespaces; else for injectd's own.
    pub is_of_cluster: bool,
    /// The group of the API; empty for the core.
    pub group: &'static str,
    /// The resources.
    pub resources: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
}

/// The permissions. The watches of templates need others besides.
pub const PERMISSIONS: [Permission; 4] = [
    // The Lease of the leader, and those of replicas, which have the names of their pods.
    Permission {
        is_of_cluster: false,
        group: "coordination.k8s.io",
        resources: &["leases"],
        verbs: &["get", "list", "create", "update", "patch", "delete"],
    },
    Permission {
        is_of_cluster: false,
        group: "apps",
        resources: &["controllerrevisions"],
        verbs: &["create", "patch", "delete"],
    },
    Permission {
        is_of_cluster: true,
        group: "injectd.dev",
        resources: &["clustersidecartemplates/status", "sidecartemplates/status"],
        verbs: &["patch"],
    },
    // Those with the label injectd.dev/injected are counted.
    Permission { is_of_cluster: true, group: "", resources: &["pods"], verbs: &["list"] },
];
