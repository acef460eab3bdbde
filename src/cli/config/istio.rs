//! The flags of `--mesh istio`.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use injectd_istio::{
    cluster::Cluster,
    injector::{Files, Injector, StartError},
    mesh::Istio,
    path::DEFAULT_CLUSTER,
    release::Release,
};

use super::{
    super::{CommandError, first_set},
    ConfigArgs, MeshName, Purpose,
};
use crate::{
    injector,
    profiles::{IstioInjector, NoWebhook, Profile},
    sources::Sources,
    standalone::Standalone,
};

/// The path of the webhook that Istio's charts configure.
const DEFAULT_TARGET: &str = "/inject";

/// What `--mesh istio` needs besides --values and --objects.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Options of --mesh istio")]
pub(in crate::cli) struct IstioArgs {
    /// YAML file with the key config of the ConfigMap istio-sidecar-injector: policy and templates
    #[arg(long, value_name = "FILE")]
    injector_config: Option<PathBuf>,
    /// YAML file with the key mesh of the ConfigMap istio [default: Istio's defaults]
    #[arg(long, value_name = "FILE")]
    mesh_config: Option<PathBuf>,
    /// Revision of the control plane; may be empty [default: $REVISION, or default]
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Release of Istio, such as 1.24.6 [default: the one that the configuration is for]
    #[arg(long, value_name = "RELEASE")]
    istio_release: Option<String>,
    /// Name of the local cluster [default: $CLUSTER_ID, or Kubernetes]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Names under which the cluster of --objects is known, with commas between. Pods of another
    /// cluster find no nodes and no namespace [default: the name of the local cluster]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    clusters: Option<Vec<String>>,
    /// Functions that templates may call although they reach out of the process, with commas between:
    /// expandenv reads the environment, getHostByName waits for DNS
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = ["expandenv", "getHostByName"])]
    allow_functions: Vec<String>,
    /// Target of the requests, such as /inject/cluster/c1/net/n1 [default: /inject]
    #[arg(long, value_name = "TARGET")]
    path: Option<String>,
}

impl IstioArgs {
    /// The first of these flags that is set.
    fn set(&self) -> Option<&'static str> {
        let flags = [
            ("--injector-config", self.injector_config.is_some()),
            ("--mesh-config", self.mesh_config.is_some()),
            ("--revision", self.revision.is_some()),
            ("--istio-release", self.istio_release.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--clusters", self.clusters.is_some()),
            ("--allow-functions", !self.allow_functions.is_empty()),
            ("--path", self.path.is_some()),
        ];
        first_set(flags)
    }

    /// The files of the configuration.
    pub(super) fn files(&self) -> [&Option<PathBuf>; 2] {
        [&self.injector_config, &self.mesh_config]
    }

    fn release(&self) -> Result<Option<Release>, CommandError> {
        let Some(text) = &self.istio_release else { return Ok(None) };
        let release = Release::parse(text).filter(|release| *release >= Release::OLDEST);
        release.map(Some).ok_or_else(|| {
            CommandError::Usage(format!(
                "--istio-release {text}: unknown release; expected one from {} on, such as 1.24.6",
                Release::OLDEST
            ))
        })
    }
}

impl ConfigArgs {
    /// Checks that no flag is set that only another mesh has.
    pub(in crate::cli) fn must_suit_the_mesh(&self) -> Result<(), CommandError> {
        let (flag, mesh) = match self.mesh {
            MeshName::Linkerd => (self.istio.set(), "istio"),
            MeshName::Istio => (self.set_for_linkerd(), "linkerd"),
        };
        match flag {
            None => Ok(()),
            Some(flag) => Err(CommandError::Usage(format!("{flag} needs --mesh {mesh}"))),
        }
    }

    fn set_for_linkerd(&self) -> Option<&'static str> {
        let flags = [
            ("--trust-roots (or its variable INJECTD_TRUST_ROOTS)", self.trust_roots.is_some()),
            ("--linkerd-namespace", self.linkerd_namespace.is_some()),
            (
                "--unknown-release (or its variable INJECTD_UNKNOWN_RELEASE)",
                self.unknown_release.is_some(),
            ),
        ];
        first_set(flags)
    }

    /// Whether --path is set, which only commands without a server have.
    pub(in crate::cli) fn sets_path(&self) -> bool {
        self.istio.path.is_some()
    }

    /// The decoded path of the requests, by --path.
    ///
    /// # Errors
    /// What a server answers that does not send the requests to the injector.
    pub(in crate::cli) fn path(&self, profile: &Profile) -> Result<String, String> {
        let target = self.istio.path.as_deref().unwrap_or(DEFAULT_TARGET);
        let failed = |error: NoWebhook| format!("--path {target}: HTTP {}, {error}", error.status);
        profile.path(target).map_err(failed)
    }

    /// Istio's injector without a cluster.
    pub(in crate::cli) fn istio_injector(
        &self,
        purpose: Purpose,
    ) -> Result<IstioInjector, CommandError> {
        let sources = match self.objects(purpose)? {
            None => Standalone::Every(Arc::default()),
            Some(objects) => Standalone::Listed(Arc::new(objects)),
        };
        Ok(injector::Injector::new(self.istio(1, purpose)?, Sources::from(sources)))
    }

    /// Istio with the configuration of the files.
    pub(in crate::cli) fn istio(
        &self,
        generation: u64,
        purpose: Purpose,
    ) -> Result<Istio, CommandError> {
        let environment = environment();
        let local = || environment.get("CLUSTER_ID").map_or(DEFAULT_CLUSTER, String::as_str);
        let local = self.istio.cluster.clone().unwrap_or_else(|| local().to_owned());
        let names = self.istio.clusters.clone().unwrap_or_else(|| vec![local]);
        let injector = self.read_istio(&environment, purpose)?;
        let cluster = match &self.objects {
            None => Cluster::new(names),
            Some(path) => {
                let text = purpose.read_text("--objects", path)?;
                Cluster::parse(names, &text, injector.release()).map_err(|error| {
                    CommandError::failed(format!("--objects {}", path.display()), error)
                })?
            }
        };
        Ok(Istio::new(injector, cluster, generation))
    }

    fn read_istio(
        &self,
        environment: &BTreeMap<String, String>,
        purpose: Purpose,
    ) -> Result<Injector, CommandError> {
        let required = |flag: &'static str, path: &Option<PathBuf>| {
            let missing = || CommandError::Usage(format!("--mesh istio needs {flag}"));
            let path = path.clone().ok_or_else(missing)?;
            let text = purpose.read_text(flag, &path)?;
            Ok::<_, CommandError>((path, text))
        };
        let (config_path, config) = required("--injector-config", &self.istio.injector_config)?;
        let (values_path, values) = required("--values", &self.values)?;
        let mesh = match &self.istio.mesh_config {
            Some(path) => purpose.read_text("--mesh-config", path)?,
            None => String::new(),
        };
        let revision = self.istio.revision.as_ref().or_else(|| environment.get("REVISION"));
        let files = Files {
            config: &config,
            values: &values,
            mesh: &mesh,
            release: self.istio.release()?,
            revision: revision.map_or("default", String::as_str),
            environment,
            allowed_functions: &self.istio.allow_functions,
        };
        let injector = Injector::new(files).map_err(|error| {
            let (flag, path) = match &error {
                StartError::Config(_) | StartError::Template { .. } => {
                    ("--injector-config", Some(&*config_path))
                }
                StartError::Values(_) => ("--values", Some(&*values_path)),
                StartError::Mesh(_) => ("--mesh-config", self.istio.mesh_config.as_deref()),
            };
            let file = path.map(Path::display).map(|path| format!("{flag} {path}"));
            let file = file.unwrap_or_default();
            if error.is_about_allowed_functions() {
                let text = format!("{file}: {error}; --allow-functions turns it on");
                return CommandError::Incomplete(text);
            }
            CommandError::failed(file, error)
        })?;
        let file = format!("--injector-config {}", config_path.display());
        for warning in injector.warnings() {
            purpose.warn(&file, &warning);
        }
        Ok(injector)
    }
}

/// istiod's variables: those of this process.
fn environment() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}
