//! injectd injects sidecars into pods: the library behind the `injectd` command.
//!
//! The modules are listed in the order in which a review passes through them; each module uses only
//! modules below it. A second mesh gets its own module beside [`linkerd`]. `ARCHITECTURE.md`
//! describes the life of a review.

pub mod cli;
pub mod client;

pub mod admin;
pub mod grpc;
pub mod webhook;

pub mod observer;

pub mod events;
pub mod reload;
pub mod server;
pub mod tls;

pub mod sources;

pub mod cluster;
pub mod metrics;
pub mod objects;

pub mod injector;

pub mod review;

pub mod linkerd;

pub mod lookups;
pub mod outcome;
pub mod patch;
pub mod pod;

pub mod causes;
pub mod go;
pub mod json;
pub mod log;
pub mod profiler;
pub mod readiness;
pub mod yaml;
