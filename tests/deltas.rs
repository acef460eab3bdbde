//! The releases: each row of the delta table (`docs/linkerd/injection.md` §1.1) on both sides of
//! its first edge, in the table's order. `docs/linkerd/template.md` has the rows' details. A row
//! that is not about the patch is a comment with the place of its test.

#![expect(clippy::disallowed_types, reason = "patches are looked into as trees")]

#[path = "deltas/beside.rs"]
mod beside;
#[path = "deltas/case.rs"]
mod case;
#[path = "deltas/to_2_15.rs"]
mod to_2_15;
#[path = "deltas/to_2_16.rs"]
mod to_2_16;
#[path = "deltas/to_2_18.rs"]
mod to_2_18;
#[path = "deltas/to_2_19.rs"]
mod to_2_19;
#[path = "deltas/to_main.rs"]
mod to_main;
