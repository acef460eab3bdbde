//! A small configuration of Istio, with the injector that it makes.

use std::{collections::BTreeMap, env, fs, path::Path};

use injectd_core::{injector, lookups::Lookups, standalone::Standalone};
use injectd_istio::{
    cluster::Cluster,
    mesh::Istio,
    path::DEFAULT_CLUSTER,
    revision::{Files, Revision},
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
    injector_with(mesh_of(config, values, mesh))
}

/// An injector without a cluster.
pub fn injector_with<L: Lookups + From<Standalone>>(mesh: Istio) -> injector::Injector<Istio, L> {
    injector::Injector::new(mesh, L::from(Standalone::default()))
}

/// A mesh without objects, of the keys `config`, `values` and `mesh`.
pub fn mesh_of(config: &str, values: &str, mesh: &str) -> Istio {
    without_objects(revision_of(config, values, mesh))
}

fn without_objects(revision: Revision) -> Istio {
    Istio::new(revision, Cluster::new(vec![DEFAULT_CLUSTER.to_owned()]), 1)
}

/// A revision, of the keys `config`, `values` and `mesh`.
pub fn revision_of(config: &str, values: &str, mesh: &str) -> Revision {
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
    Revision::new(files).expect("the configuration must be valid")
}

/// A name, and the default configuration of a release if `$INJECTD_CORPUS` has it, else the small one.
pub fn found() -> (&'static str, Istio) {
    const RELEASE: &str = "1.30.3";
    match env::var_os("INJECTD_CORPUS").filter(|corpus| !corpus.is_empty()) {
        Some(corpus) => (RELEASE, recorded(Path::new(&corpus), RELEASE)),
        None => ("small", mesh_of(CONFIG, VALUES, MESH)),
    }
}

/// The mesh of a release's default configuration, as `$INJECTD_CORPUS` has it.
pub fn recorded(corpus: &Path, release: &str) -> Istio {
    without_objects(recorded_revision(corpus, release))
}

/// The revision of a release's default configuration, as `$INJECTD_CORPUS` has it.
pub fn recorded_revision(corpus: &Path, release: &str) -> Revision {
    let folder = corpus.join("istio").join(release);
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    revision_of(
        &read("config-default.yaml"),
        &read("values-default.json"),
        &read("mesh-default.yaml"),
    )
}
