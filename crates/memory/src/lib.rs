//! Answers for objects, kept for the next object that differs in nothing that was read.
//!
//! An evaluation of an object is a function of what it reads of the object. Some fields are read of
//! every object. What an object has there is its first key, together with what the answer depends on
//! besides the object ([`Head`]). For each first key the memory keeps what evaluations of such objects
//! have read ([`Reading`]), as HTTP's `Vary` does for each URL: what an object has there, too, is its full
//! key. Keys are compared whole, and never by a hash alone.
//!
//! An evaluator records what it reads as [`Places`]. An answer may have slots for a value that it only
//! copies ([`Slotted`]); that value is not in the key then.
//!
//! The memory is bounded by its weight ([`Memory`]): objects that differ at random cost time and not
//! memory.
//!
//! Not for what an evaluator reads, nor for what an answer is: both belong to a mesh, and none is named
//! here.

#![cfg_attr(
    test,
    expect(clippy::disallowed_types, reason = "trees are what texts are compared with")
)]

mod store;

mod key;
mod places;
mod slots;
mod types;

mod reading;

pub use key::{Head, Key};
pub use places::{Place, Places};
pub use reading::{Reading, Unusual};
pub use slots::Slotted;
pub use store::{Known, MAX_READ, Memory, SEGMENTS, Weighed};
pub use types::{has_kubernetes_types, read_path};
