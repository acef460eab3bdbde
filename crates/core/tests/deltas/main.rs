//! The releases: each row of the delta table (`docs/spec/linkerd/injection.md` §1.1) on both sides of
//! its first edge, in the table's order. `docs/spec/linkerd/template.md` has the rows' details. A row
//! that is not about the patch is a comment with the place of its test.

#![expect(clippy::disallowed_types, reason = "patches are looked into as trees")]

mod beside;
mod case;
mod to_2_15;
mod to_2_16;
mod to_2_18;
mod to_2_19;
mod to_main;
