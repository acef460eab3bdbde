//! Names and words that decide which pods a template is for.

/// The namespace of the system.
pub const SYSTEM_NAMESPACE: &str = "kube-system";

/// The priority classes of the system.
pub const SYSTEM_PRIORITY_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// Values of the enablement key that switch a template on, in any case.
pub const ON: [&str; 2] = ["enabled", "true"];

/// Values of the enablement key that switch a template off, in any case.
pub const OFF: [&str; 2] = ["disabled", "false"];
