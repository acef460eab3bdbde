//! Restarts workloads whose pods were left out of injection, or are outdated.
//!
//! A restart is that of `kubectl rollout restart`: it sets the annotation
//! `kubectl.kubernetes.io/restartedAt` of the pod template, and nothing else. The planner
//! (`plan.rs`) is pure and decides which workloads are restarted now: few at a time, inside of
//! maintenance windows, only while their `PodDisruptionBudgets` allow it, and none twice an hour.
//! The restarter reads and writes; the controller runs it in the replica that holds a Lease.
//! Everything that must outlast a process is read from the workloads themselves.
//!
//! Not for finding the workloads: [`Findings`] is the audit.

mod budget;
mod controller;
mod decision;
mod namespace;
mod plan;
mod reads;
mod report;
mod restarter;
mod rules;
mod window;
mod workload;

pub use crate::cluster::lease::LeaseOptions;
pub use budget::Budget;
pub use controller::{
    AuditError, Controller, DEFAULT_AUDIT_INTERVAL, DEFAULT_POLL_INTERVAL, Findings, NoObserver,
    Observer, Options,
};
pub use decision::{Decision, Wait};
pub use namespace::{Mode, NamespaceSettings, RESTART_ANNOTATION, WINDOW_ANNOTATION};
pub use plan::{
    Candidate, DEFAULT_MAX_RESTARTING, DEFAULT_ROLLOUT_TIMEOUT, InFlight, PAUSE, Policy,
};
pub use reads::RequestError;
pub use restarter::{MAX_FINDINGS, Notice, Restarter};
pub use rules::{LEASE_RULES, RULES, Rule};
pub use window::{ParseError, Window, Windows};
pub use workload::{
    FIELD_MANAGER, Finding, Observed, RESTARTED_AT_ANNOTATION, Rollout, RolloutKind, Workload,
};
