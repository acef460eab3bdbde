//! What tests start and ask: injectd, a Kubernetes control plane, clients, relays, certificates.
//!
//! A scenario is a plain test: [`scenario::with_lab`] gives it a cluster, [`namespaced::with_namespace`]
//! a namespace of its own; [`scenario::with_binary`] is for one without a cluster. Scenarios run in any order, beside one another and alone. Not for what an
//! answer of injectd must be: that is in the tests themselves.

#![expect(clippy::disallowed_types, reason = "Kubernetes objects of any kind are trees here")]

pub mod api;
pub mod audit_log;
pub mod balancer;
pub mod called;
pub mod certificates;
pub mod client;
pub mod component;
pub mod connection;
pub mod edits;
pub mod expect;
pub mod http2;
pub mod injectd;
pub mod isolated;
pub mod istio;
pub mod istio_files;
pub mod lab;
pub mod linkerd;
pub mod manifests;
pub mod metrics;
pub mod namespaced;
pub mod objects;
pub mod overload;
pub mod process;
pub mod program;
pub mod relay;
pub mod scenario;
pub mod sidecar;
pub mod stream;
pub mod tls;
pub mod volume;
