//! The commands that need no server: they work on files, and on a cluster if a flag names one.
//!
//! Not for `serve`, `proxy-injector` and `probe`: the service has those. `main` links both. Each
//! command has its own file; the modules below the commands are what several of them use.

#![expect(
    clippy::disallowed_types,
    reason = "manifests, objects and reports are trees of any shape"
)]

pub mod audit;
pub mod compare;
pub mod explain;
pub mod inject;
pub mod manifest;
pub mod manual;
pub mod restart;
pub mod review;
pub mod template;
pub mod uninject;
pub mod version;

mod answering;
mod facts;
mod in_force;
mod manifests;
mod meshes;
mod progress;
mod sidecars;
mod stream;
