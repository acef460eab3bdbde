//! An injector: a configuration that was read and checked.

use std::{collections::BTreeMap, sync::Arc};

use injectd_gotemplate::{Functions, ParseError, Template, Value};

use crate::{
    config::{Config, ConfigError, Values},
    detect::detect,
    native::{Mode, NATIVE_SIDECARS_VARIABLE},
    proto::{
        Message, defaults,
        mesh::{self, MeshError},
    },
    release::Release,
};

/// What an injector runs with: the files of its `ConfigMap`s, and its environment.
#[derive(Debug, Clone, Copy)]
pub struct Files<'f> {
    /// The key `config` of `istio-sidecar-injector`.
    pub config: &'f str,
    /// The key `values` of it.
    pub values: &'f str,
    /// The key `mesh` of `istio`.
    pub mesh: &'f str,
    /// The release; `None` is that of config and values.
    pub release: Option<Release>,
    /// The revision; empty is `default`.
    pub revision: &'f str,
    /// istiod's variables.
    pub environment: &'f BTreeMap<String, String>,
}

/// Why an injector cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// `config`.
    #[error(transparent)]
    Config(ConfigError),
    /// `values`.
    #[error(transparent)]
    Values(ConfigError),
    /// `mesh`.
    #[error("mesh: {0}")]
    Mesh(#[from] MeshError),
    /// A template does not parse.
    #[error("config.templates.{name}: {error}")]
    Template {
        /// The name of the template.
        name: String,
        /// Why.
        error: ParseError,
    },
}

/// An injector of one revision.
#[derive(Debug)]
pub struct Injector {
    pub(crate) release: Release,
    pub(crate) config: Config,
    pub(crate) templates: BTreeMap<String, Template>,
    pub(crate) values: Values,
    pub(crate) values_data: Value,
    pub(crate) mesh: Arc<Message>,
    pub(crate) revision: String,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) mode: Mode,
}

impl Injector {
    /// Reads the configuration.
    ///
    /// # Errors
    /// The first document that cannot be used, with the place in it.
    pub fn new(files: Files<'_>) -> Result<Self, StartError> {
        let config = Config::parse(files.config).map_err(StartError::Config)?;
        let values = Values::parse(files.values).map_err(StartError::Values)?;
        let label = |_: &str| None;
        let release = files.release.unwrap_or_else(|| detect(label, &config, &values).0);
        let mesh = Arc::new(mesh::apply(&defaults::mesh_config(release), files.mesh, release)?);
        let functions = functions(release);
        let parse = |(name, text): (&String, &String)| {
            let template = Template::parse("inject", text, &functions);
            let failed = |error| StartError::Template { name: name.clone(), error };
            template.map(|template| (name.clone(), template)).map_err(failed)
        };
        let templates = config.templates.iter().map(parse).collect::<Result<_, _>>()?;
        let native = files.environment.get(NATIVE_SIDECARS_VARIABLE).map(String::as_str);
        Ok(Self {
            release,
            templates,
            values_data: Value::from_json(values.tree()),
            values,
            config,
            mesh,
            revision: files.revision.to_owned(),
            environment: files.environment.clone(),
            mode: Mode::read(release, native).0,
        })
    }

    /// The release whose rules apply.
    #[must_use]
    pub fn release(&self) -> Release {
        self.release
    }

    /// Whether the proxy's user comes from the namespace: on `OpenShift`.
    #[must_use]
    pub fn is_openshift(&self) -> bool {
        self.environment.get("PLATFORM").is_some_and(|platform| platform == "openshift")
    }

    pub(crate) fn default_config(&self) -> Option<&Message> {
        self.mesh.message("default_config")
    }
}

/// The functions of a release.
fn functions(release: Release) -> Functions {
    let mut functions = Functions::istio();
    let later: [(&str, &[(u16, u16)]); 4] = [
        ("mergeMaps", &[(21, 0)]),
        ("sha512sum", &[(24, 0)]),
        ("omitNil", &[(28, 6), (29, 1), (30, 0)]),
        ("otelResourceAttributes", &[(30, 0)]),
    ];
    for (name, first) in later {
        if !release.since(first) {
            functions = functions.without(name);
        }
    }
    if !release.since(&[(23, 6), (24, 4), (25, 1)]) {
        functions = functions.with_plain_networks();
    }
    functions
}
