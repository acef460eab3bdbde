//! Sidecar templates evaluated over trees: slow, and obvious. It serves the commands, and says what a faster
//! way must answer.
//!
//! [`parameters`] reads the values that pods set, [`lay`] puts a finished overlay into a pod.

#![expect(clippy::disallowed_types, reason = "pods are trees here")]

pub mod enablement;
mod explain;
mod fill;
mod inject;
pub mod lay;
pub mod layers;
mod lazy;
pub mod mark;
pub mod matching;
pub mod mesh;
mod owner;
pub mod parameters;
mod ports;
mod run;
mod scope;
mod standing;
pub mod surroundings;
mod trace;
mod uninject;

pub use explain::{Explained, Explanation, explain};
pub use inject::{
    Changed, Decision, Denied, Injected, Request, State, inject, inject_in_order, inject_while,
};
pub use standing::{Standing, Stands, before, selected, standings};
pub use trace::Write;
pub use uninject::{Uninjected, by_mark, uninject};

#[cfg(test)]
mod tests;
