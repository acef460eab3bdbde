//! The load of echo, benchmarks and tests: one review, and the injector that `injectd serve
//! --standalone` answers it with.

use injectd::{
    linkerd::{
        snapshot::{Config, Snapshot},
        values::DEFAULT_VALUES,
    },
    sources::{Injector, Sources},
};

/// An injector on the built-in values, in a cluster that nothing is known of.
pub(crate) fn injector() -> Injector {
    let config = Config {
        values: DEFAULT_VALUES,
        trust_roots: include_bytes!("../src/linkerd/example-root.crt"),
        control_plane_namespace: "linkerd",
        fallback_release: None,
    };
    let snapshot = Snapshot::new(config, 1).expect("the built-in values must be read");
    Injector::new(snapshot, Sources::Every([].into()))
}
