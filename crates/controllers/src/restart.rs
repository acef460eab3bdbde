//! Restarts workloads whose pods were left out of injection, or are outdated.
//!
//! A restart is that of `kubectl rollout restart`: it sets the annotation
//! `kubectl.kubernetes.io/restartedAt` of the pod template, and beside it what the restart is for.
//! The planner (`plan.rs`) is pure and decides which workloads are restarted now: one at a time of a
//! namespace, few in all, inside of maintenance windows, only while their `PodDisruptionBudgets`
//! allow it, none twice an hour, and none again for the same if that did not help. The outcomes
//! (`outcomes.rs`) are pure, too, and stop all if several did not help. The restarter reads and writes;
//! the controller runs it in the replica that holds a Lease. What must outlast a process is read
//! from the workloads themselves. Cluster and time are behind a trait (`rim.rs`): the API server
//! (`reads.rs`), or a simulation.
//!
//! Tenants write pods, workloads and annotations of their namespaces. In fewer than
//! [`MAX_NAMESPACES`] namespaces none of that stops restarts of others, and nowhere does it restart a
//! workload of which a pod only claims to be.
//!
//! Not for finding the workloads: [`Findings`] is the audit.

mod annotations;
mod budget;
mod controller;
mod decision;
mod finding;
mod namespace;
mod outcomes;
mod plan;
mod queue;
mod reads;
mod report;
mod restarter;
mod rim;
mod rules;
mod window;
mod workload;

pub use injectd_cluster::lease::LeaseOptions;
pub use injectd_k8s::workload::Workload;

pub use annotations::{RESTART_ANNOTATION, WINDOW_ANNOTATION};
pub use budget::Budget;
pub use controller::{AuditError, Controller, DEFAULT_POLL_INTERVAL, Findings, Observer, Options};
pub use decision::{Decision, Wait};
pub use finding::{Audit, Evidence, Finding, MAX_REPLICA_SETS, ReplicaSet, Seen, Trigger};
pub use namespace::{Mode, NamespaceSettings};
pub use outcomes::{MAX_NAMESPACES, MAX_UNVERIFIED, MAX_WORKLOADS};
pub use plan::{
    Candidate, DEFAULT_MAX_RESTARTING, DEFAULT_ROLLOUT_TIMEOUT, InFlight, PAUSE, Policy,
};
pub use restarter::{MAX_FINDINGS, MayAct, Notice, Restarter};
pub use rim::RequestError;
pub use rules::{LEASE_RULES, RESTART_RULES, RULES};
pub use window::{ParseError, Window, Windows};
pub use workload::{
    FIELD_MANAGER, Observed, RESTARTED_AT_ANNOTATION, RESTARTED_FOR_ANNOTATION, Rollout,
    RolloutKind,
};
