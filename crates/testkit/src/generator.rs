//! Cases for the agreement suite: configurations, clusters and reviews in every dimension of the
//! specification, each a function of a seed. "L§" and "T§" are sections of
//! `docs/spec/linkerd/injection.md` and `docs/spec/linkerd/template.md`.
//!
//! `configs` is the entry point: a configuration and its reviews. `subjects` calls the product and
//! the reference, `agreement` compares and counts, `minimise` shrinks a case, `mutations` changes a
//! review without changing its meaning. `manifests` writes manifests in odd but legal styles.

pub mod agreement;
pub mod annotations;
mod cluster;
pub mod configs;
mod containers;
mod env_lists;
mod exclusions;
mod fields;
mod json_parts;
pub mod json_text;
pub mod manifests;
pub mod minimise;
pub mod mutations;
mod parameters;
pub mod patches;
mod pods;
pub mod random;
pub mod releases;
mod reviews;
mod shapes;
pub mod small;
pub mod subjects;
mod texts;
pub mod typos;
mod values;
pub mod yaml_text;
