//! Sidecar templates (`SidecarTemplate`, `ClusterSidecarTemplate`): the objects, their schema, and what their
//! expressions read of the text of a pod.

#![expect(clippy::disallowed_types, reason = "templates and overlays have any shape")]

pub mod advice;
pub mod ceiling;
pub mod conflicts;
pub mod costs;
pub mod excerpt;
pub mod expression;
pub mod fill;
pub mod limits;
pub mod mark;
pub mod matching;
pub mod named;
pub mod object;
mod own_entry;
pub mod parameters;
pub mod permitted;
pub mod portability;
mod problem;
mod read;
pub mod reads;
pub mod releases;
pub mod schema;
pub mod scope;
mod spot;
pub mod structure;
mod template;
mod text;
pub mod union;

pub use problem::Problem;
pub use template::{
    Condition, ForEach, Message, Place, Rule, Select, Step, Template, Validation, Variable,
};
pub use text::{PodText, wanted};

#[cfg(test)]
mod tests;
