//! Istio's sidecar injection, the release, the data of the templates, and what they make of a
//! pod.
//!
//! The templates' language is `injectd-gotemplate`, the merge `injectd-merge`.

pub mod data;
pub mod pod;
pub mod proto;
pub mod release;
pub mod render;
