//! A small configuration of Istio, with the injector that it makes.

use std::collections::BTreeMap;

use injectd_core::{injector, lookups::Lookups, standalone::Standalone};
use injectd_istio::{
    cluster::Cluster,
    injector::{Files, Injector},
    mesh::Istio,
    path::DEFAULT_CLUSTER,
};

/// The key `config` of the `ConfigMap` `istio-sidecar-injector`.
pub const CONFIG: &str = include_str!("istio/config.yaml");
/// The key `values` of it: JSON, as Istio's charts write it.
pub const VALUES: &str = include_str!("istio/values.json");
/// The key `mesh` of the `ConfigMap` `istio`.
pub const MESH: &str = include_str!("istio/mesh.yaml");

/// An injector of this configuration without a cluster.
pub fn injector<L: Lookups + From<Standalone>>() -> injector::Injector<Istio, L> {
    injector_of(CONFIG, VALUES, MESH)
}

/// An injector without a cluster, of the keys `config`, `values` and `mesh`.
pub fn injector_of<L: Lookups + From<Standalone>>(
    config: &str,
    values: &str,
    mesh: &str,
) -> injector::Injector<Istio, L> {
    let environment = BTreeMap::new();
    let files = Files {
        config,
        values,
        mesh,
        shared_mesh: "",
        labels: &BTreeMap::new(),
        release: None,
        revision: "default",
        environment: &environment,
        allowed_functions: &[],
    };
    let injector = Injector::new(files).expect("the configuration must be valid");
    let cluster = Cluster::new(vec![DEFAULT_CLUSTER.to_owned()]);
    let sources = L::from(Standalone::Every([].into()));
    injector::Injector::new(Istio::new(injector, cluster, 1), sources)
}
