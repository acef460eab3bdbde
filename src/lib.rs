//! injectd injects sidecars into pods: the library behind the `injectd` command.
//!
//! Here are the servers and the command line; the injection core is the package
//! `injectd-core`, whose modules this library re-exports. The modules are listed in the order in
//! which a review passes through them; each module uses only modules below it. `ARCHITECTURE.md`
//! describes the life of a review.

pub mod cli;

pub mod admin;
pub mod grpc;
pub mod webhook;

pub mod observer;

pub mod events;
pub mod reload;
pub mod server;

pub mod drop_in;

pub use injectd_api::client;
pub use injectd_core::{
    injector, json, linkerd, lookups, mesh, namespace, object, objects, outcome, patch, request,
    review, standalone, text, view, yaml,
};

pub mod profiler;
