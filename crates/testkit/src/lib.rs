//! What the tests, benchmarks and load tests of several packages share.

#![expect(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "for tests only"
)]
#![expect(clippy::disallowed_types, reason = "values and reviews are trees, slow and obvious")]

use injectd_core::{
    injector,
    linkerd::{
        snapshot::{Config, Snapshot},
        trust_roots::EXAMPLE_TRUST_ROOTS,
        values::DEFAULT_VALUES,
    },
    lookups::Lookups,
    standalone::Standalone,
};
use serde_json::Value;

pub mod cost;
pub mod generator;
pub mod istio;
pub mod pairs;
pub mod reviews;
pub mod templates;
pub mod workloads;

pub use injectd_reference::{self as reference, yaml};

/// The injection core for Linkerd; without a cluster, unless its lookups say so.
pub type Injector<L = Standalone> = injector::Injector<Snapshot, L>;

/// The injector of `injectd serve --standalone`: built-in values, and every namespace exists and has
/// no annotations.
pub fn injector<L: Lookups + From<Standalone>>() -> Injector<L> {
    injector_of(DEFAULT_VALUES, Standalone::default().into())
}

/// An injector with these values and lookups.
pub fn injector_of<L: Lookups>(values: &str, lookups: L) -> Injector<L> {
    let config = Config {
        values,
        trust_roots: EXAMPLE_TRUST_ROOTS,
        control_plane_namespace: "linkerd",
        fallback_release: None,
    };
    let snapshot = Snapshot::new(config, 1).expect("the values must be read");
    Injector::new(snapshot, lookups)
}

/// Maps are merged, everything else is replaced.
pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
