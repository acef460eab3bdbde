//! injectd puts sidecars into pods: the library behind the command of the same name.
//!
//! The modules in the order a review meets them; each uses only what comes below it. A second
//! mesh will stand beside [`linkerd`]. Life of a review:
//! `ARCHITECTURE.md`.

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

pub mod injector;

pub mod review;

pub mod namespaces;
pub mod workloads;

pub mod linkerd;

pub mod cluster;

pub mod metrics;
pub mod objects;
pub mod outcome;
pub mod patch;
pub mod pod;

pub mod go;
pub mod json;
pub mod log;
pub mod profiler;
pub mod readiness;
pub mod yaml;
