//! Istio's sidecar injection, the release, the data of the templates, and what they make of a
//! pod.
//!
//! The templates' language is `injectd-gotemplate`, the merge `injectd-merge`.

#![expect(
    clippy::disallowed_types,
    reason = "templates read and write any field of a pod; the way of a known pod, mesh and memory, denies trees"
)]

mod advice;
pub mod annotations;
pub mod budget;
pub mod cluster;
pub mod config;
pub mod data;
pub mod decide;
pub mod detect;
pub mod document;
pub mod envelope;
pub mod explain;
mod fields;
mod go_json;
pub mod image;
pub mod injection;
pub mod leaks;
mod marker;
mod memory;
pub mod mesh;
pub mod message;
pub mod native;
mod object;
pub mod openshift;
pub mod owner;
mod parts;
pub mod patch;
pub mod path;
pub mod pod;
pub mod process;
pub mod proto;
pub mod reapply;
pub mod release;
pub mod render;
pub mod revision;
pub mod selection;
pub mod selector;
pub mod strip;
pub mod taint;
