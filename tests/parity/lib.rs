//! The parity suite: a subject's answers against what real injectors answered.
//!
//! `corpus` reads recordings, `subject` is what is measured, `differences` holds one function for
//! each row of `docs/differences.md`, `run` judges case by case, `report` counts. Nothing here knows
//! a case by its id. A test target that includes it needs `mod reference`, `mod door` and
//! `use injectd::go;` at its root.

pub(crate) mod compare;
pub(crate) mod core_subject;
pub(crate) mod corpus;
pub(crate) mod differences;
pub(crate) mod doors;
pub(crate) mod reference_subject;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod subject;
pub(crate) mod yaml;
