//! What end-to-end scenarios share: a runner, clients, certificates, processes, Kubernetes objects.
//!
//! The scenarios are in `tests/e2e`, one module per suite. `run.sh` starts a control plane for them.

#![expect(clippy::disallowed_types, reason = "Kubernetes objects of any kind are trees here")]

pub mod api;
pub mod audit_log;
pub mod balancer;
pub mod certificates;
pub mod client;
pub mod expect;
pub mod injectd;
pub mod lab;
pub mod manifests;
pub mod metrics;
pub mod objects;
pub mod program;
pub mod relay;
pub mod run;
pub mod sidecar;
pub mod stream;
