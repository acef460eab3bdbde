//! Cases for the agreement suite: configurations, clusters and reviews in every dimension of the
//! specification, each a function of a seed. "L§" and "T§" are sections of
//! `docs/linkerd/injection.md` and `docs/linkerd/template.md`.
//!
//! `configs` is the entry point: a configuration and its reviews. `subjects` calls the product and
//! the reference, `agreement` compares and counts, `minimise` shrinks a case, `mutations` changes a
//! review without changing its meaning. A test target that includes it needs `mod reference`, `mod
//! yaml` and `use injectd::go;` at its root.

pub(crate) mod agreement;
pub(crate) mod annotations;
mod cluster;
pub(crate) mod configs;
mod containers;
mod env_lists;
mod exclusions;
mod fields;
mod json_parts;
pub(crate) mod json_text;
pub(crate) mod minimise;
pub(crate) mod mutations;
mod parameters;
pub(crate) mod patches;
mod pods;
pub(crate) mod random;
pub(crate) mod releases;
mod reviews;
mod shapes;
pub(crate) mod small;
pub(crate) mod subjects;
mod texts;
mod values;
pub(crate) mod yaml_text;
