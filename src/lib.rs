//! injectd injects sidecars into pods: the library behind the `injectd` command.
//!
//! Here are the servers and the command line; the injection core is the package
//! `injectd-core`, whose modules this library re-exports. The modules are listed in the order in
//! which a review passes through them; each module uses only modules below it. `ARCHITECTURE.md`
//! describes the life of a review.

pub mod cli;

#[cfg(feature = "service")]
pub mod admin;
#[cfg(feature = "service")]
pub mod grpc;
#[cfg(feature = "service")]
pub mod webhook;

#[cfg(feature = "service")]
pub mod observer;

#[cfg(feature = "service")]
pub mod events;
#[cfg(feature = "service")]
pub mod reload;
#[cfg(feature = "service")]
pub mod server;

#[cfg(feature = "service")]
pub mod drop_in;

#[cfg(feature = "service")]
pub use injectd_api::client;
pub use injectd_core::{
    injector, json, linkerd, lookups, mesh, namespace, object, objects, outcome, patch, request,
    review, standalone, text, view, yaml,
};

#[cfg(feature = "service")]
pub mod profiler;
