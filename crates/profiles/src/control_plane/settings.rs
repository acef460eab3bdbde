//! What the revisions have in common, and how their texts become injectors.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

use injectd_istio::{
    release::Release,
    revision::{Files, Revision, StartError},
    taint::TaintedValues,
};

use super::{
    Note,
    names::{injector_name, mesh_name},
};

/// What the revisions of a process have in common.
#[derive(Debug, Default)]
pub struct Settings {
    /// The namespace of the `ConfigMap`s.
    pub namespace: String,
    /// The revisions to serve; `None` for those that have a `ConfigMap`.
    pub named: Option<BTreeSet<String>>,
    /// The `ConfigMap` with a mesh config that is applied before the one of the revision.
    pub shared_mesh: Option<String>,
    /// The release; `None` is that of the configuration.
    pub release: Option<Release>,
    /// istiod's variables.
    pub environment: BTreeMap<String, String>,
    /// As [`Files::allowed_functions`].
    pub allowed_functions: Vec<String>,
    /// What happens to pods whose values do not stay within their scalar.
    pub tainted_values: TaintedValues,
    /// The names of the cluster.
    pub clusters: Vec<String>,
}

/// The texts that configure a revision.
#[derive(Debug)]
pub(super) struct Texts<'m> {
    pub(super) config: &'m str,
    pub(super) values: &'m str,
    pub(super) mesh: &'m str,
    pub(super) shared_mesh: &'m str,
    pub(super) labels: &'m BTreeMap<String, String>,
}

impl Settings {
    /// What is wrong with a configuration, although it can be used.
    pub(super) fn warnings(&self, name: &str, revision: &Result<Revision, String>) -> Vec<Note> {
        let map = injector_name(name);
        let warning = |text| Note::Warning(format!("ConfigMap {}/{map}: {text}", self.namespace));
        revision.iter().flat_map(Revision::warnings).map(warning).collect()
    }

    /// Reads the configuration of a revision.
    pub(super) fn read(&self, name: &str, texts: &Texts<'_>) -> Result<Revision, String> {
        let files = Files {
            config: texts.config,
            values: texts.values,
            mesh: texts.mesh,
            shared_mesh: texts.shared_mesh,
            labels: texts.labels,
            release: self.release,
            revision: name,
            environment: &self.environment,
            allowed_functions: &self.allowed_functions,
        };
        // A panic is a bug; it rejects the configuration like any error.
        let with_mode = |revision: Revision| revision.with_tainted_values(self.tainted_values);
        let read = catch_unwind(AssertUnwindSafe(|| Revision::new(files).map(with_mode)));
        let bug = || format!("ConfigMap {}: a bug in injectd", injector_name(name));
        read.map_err(|_| bug())?.map_err(|error| {
            let map = match &error {
                StartError::Config(_) | StartError::Values(_) | StartError::Template { .. } => {
                    injector_name(name)
                }
                StartError::Mesh(_) => mesh_name(name),
                StartError::SharedMesh(_) => self.shared_mesh.clone().unwrap_or_default(),
            };
            format!("ConfigMap {}/{map}: {error}", self.namespace)
        })
    }
}
