//! The parity suite: compares a subject's answers with recorded answers of real injectors.
//!
//! `corpus` reads recordings, `subject` is the interface of subjects, `differences` has one
//! function for each row of `docs/differences.md`, `run` checks case by case, and `report` counts.
//! No rule depends on the id of a case. A test target that includes it needs `mod reference`, `mod
//! server` and `use injectd::go;` at its root.

pub(crate) mod compare;
pub(crate) mod core_subject;
pub(crate) mod corpus;
pub(crate) mod differences;
pub(crate) mod reference_subject;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod servers;
pub(crate) mod subject;
pub(crate) mod yaml;
