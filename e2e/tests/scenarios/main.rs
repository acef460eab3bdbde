//! End-to-end scenarios: injectd and a real Kubernetes API server, or a real client of gRPC. Each is a
//! test that runs alone.

#![expect(clippy::disallowed_types, reason = "Kubernetes objects of any kind are trees here")]

mod attacks;
mod audit;
mod container;
mod deploy;
mod dropin;
mod endurance;
mod grpc;
mod guard;
mod inject;
mod istio;
mod linkerd;
mod manifest;
mod memory;
mod replica;
mod restart;
mod standalone;
mod storm;
mod swap;
mod templates;
mod tutorial;
mod verdicts;
mod watched;
mod webhooks;
