//! The permissions of restarts.

use injectd_k8s::rbac::Rule;

/// The rules of the `ClusterRole` without those that only restarts need.
pub const RULES: &[Rule] = &[
    // Its annotations.
    Rule { api_group: "", resources: &["namespaces"], verbs: &["get"] },
    Rule { api_group: "", resources: &["events"], verbs: &["create", "patch"] },
    // list: the rollouts of a previous leader.
    Rule {
        api_group: "apps",
        resources: &["deployments", "statefulsets", "daemonsets"],
        verbs: &["get", "list"],
    },
    Rule { api_group: "policy", resources: &["poddisruptionbudgets"], verbs: &["list"] },
];

/// The rules of the `ClusterRole` that a dry run does not need.
pub const RESTART_RULES: &[Rule] = &[
    Rule {
        api_group: "apps",
        resources: &["deployments", "statefulsets", "daemonsets"],
        verbs: &["patch"],
    },
    // The owner of a pod's ReplicaSet.
    Rule { api_group: "apps", resources: &["replicasets"], verbs: &["get"] },
];

/// The rules of the Role in the namespace of the Lease.
pub const LEASE_RULES: &[Rule] = &[Rule {
    api_group: "coordination.k8s.io",
    resources: &["leases"],
    verbs: &["get", "create", "update", "patch"],
}];
