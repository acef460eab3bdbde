//! Small rules of Kubernetes that several parts of injectd follow.
//!
//! Not for the types of the API (`k8s-openapi`), not for requests to an API server, and not for what
//! one mesh makes of an object.

pub mod names;
pub mod object;
pub mod pod_security;
pub mod rbac;
pub mod selector;
pub mod workload;
