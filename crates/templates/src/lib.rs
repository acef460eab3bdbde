//! Sidecar templates (`SidecarTemplate`, `ClusterSidecarTemplate`): the objects, and what their expressions
//! read of the text of a pod.

#![expect(clippy::disallowed_types, reason = "templates and overlays have any shape")]

pub mod fill;
pub mod object;
mod problem;
mod text;

pub use problem::Problem;
pub use text::PodText;

#[cfg(test)]
mod tests;
