//! Sidecar templates as a mesh.
//!
//! Most of a pod says nothing to a template. [`reads`](injectd_templates::reads) has what a template reads,
//! [`excerpt`](injectd_templates::excerpt) copies just that from the text of a pod, in one pass: an answer is
//! a function of the excerpt. It is the key under which the answer is kept, and the tree that is evaluated
//! is made of it.

#![expect(clippy::disallowed_types, reason = "excerpts of pods are evaluated as trees")]

mod explain;
mod mesh;

mod set;

mod answer;
mod candidates;
mod object;
mod tree;

pub use injectd_templates_tree::{Standing, Stands};
pub use mesh::{Known, Plan, Templates, Unknown};
pub use object::Object;

#[cfg(test)]
mod tests;
