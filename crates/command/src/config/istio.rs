//! The flags of `--mesh istio`.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::PathBuf,
    sync::Arc,
};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use injectd_cluster::sources::Sources;
use injectd_core::{injector, standalone::Standalone};
use injectd_istio::{
    cluster::Cluster,
    mesh::Istio,
    openshift,
    path::{DEFAULT_CLUSTER, DEFAULT_TARGET},
    release::Release,
    revision::{Files, Revision, StartError},
    taint::TaintedValues,
};
use injectd_k8s::names::is_dns_subdomain;
use injectd_profiles::{
    DEFAULT_REVISION, IstioInjector, NoWebhook, Profile, control_plane::Settings,
};

use super::{ConfigArgs, Purpose};
use crate::{CommandError, first_set};

/// What `--mesh istio` needs besides --values and --objects.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Options of --mesh istio")]
pub(super) struct IstioArgs {
    /// YAML file with the key config of the ConfigMap istio-sidecar-injector: policy and templates
    /// [default of serve in a cluster: the ConfigMaps of the cluster]
    #[arg(long, value_name = "FILE")]
    injector_config: Option<PathBuf>,
    /// YAML or JSON file with the key values of the ConfigMap istio-sidecar-injector [default:
    /// --values, if Istio is the only mesh]
    #[arg(long, value_name = "FILE")]
    injector_values: Option<PathBuf>,
    /// YAML file with the key mesh of the ConfigMap istio [default: Istio's defaults]
    #[arg(long, value_name = "FILE")]
    mesh_config: Option<PathBuf>,
    /// Revision of the control plane; may be empty. In a cluster, serve takes several with commas
    /// between [default: $REVISION, or default; in a cluster each one that has ConfigMaps]
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
    /// What happens to a pod with a value that is not one value in the YAML of the templates, but
    /// changes other fields: off, warn or deny
    #[arg(long, value_name = "MODE", default_value_t, value_parser = tainted_values())]
    tainted_values: TaintedValues,
    /// Target of the requests, such as /inject/cluster/c1/net/n1 [default: /inject]
    #[arg(long, value_name = "TARGET")]
    path: Option<String>,
}

impl IstioArgs {
    /// The first of these flags that is set.
    pub(super) fn set(&self) -> Option<&'static str> {
        let flags = [
            ("--injector-config", self.injector_config.is_some()),
            ("--injector-values", self.injector_values.is_some()),
            ("--mesh-config", self.mesh_config.is_some()),
            ("--revision", self.revision.is_some()),
            ("--istio-release", self.istio_release.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--clusters", self.clusters.is_some()),
            ("--allow-functions", !self.allow_functions.is_empty()),
            ("--tainted-values", self.tainted_values != TaintedValues::default()),
            ("--path", self.path.is_some()),
        ];
        first_set(flags)
    }

    /// The revisions to serve; `None` without --revision.
    fn revisions(&self) -> Result<Option<BTreeSet<String>>, CommandError> {
        let Some(names) = &self.revision else { return Ok(None) };
        let revision = |name: &str| match name.trim() {
            "" => Ok(DEFAULT_REVISION.to_owned()),
            name if is_dns_subdomain(name) => Ok(name.to_owned()),
            name => Err(CommandError::Usage(format!(
                "--revision: {name:?} is no revision; expected names such as default or 1-24-6, \
                 with commas between"
            ))),
        };
        names.split(',').map(revision).collect::<Result<_, _>>().map(Some)
    }

    /// The names of the cluster.
    fn clusters(&self, environment: &BTreeMap<String, String>) -> Vec<String> {
        let local = || environment.get("CLUSTER_ID").map_or(DEFAULT_CLUSTER, String::as_str);
        let local = || self.cluster.clone().unwrap_or_else(|| local().to_owned());
        self.clusters.clone().unwrap_or_else(|| vec![local()])
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
    /// Checks that there is one mesh, and that no flag is set that only another mesh has.
    ///
    /// # Errors
    /// When `--mesh` names several meshes, or as for [`Self::must_suit_the_meshes`].
    pub fn must_suit_the_mesh(&self) -> Result<(), CommandError> {
        let text = match self.mesh.len() {
            0 | 1 if !self.is_templates() => return self.must_suit_the_meshes(),
            0 | 1 => "--mesh templates is for serve only; choose linkerd, istio or --templates",
            _ => "--mesh: only serve takes several meshes; choose linkerd or istio",
        };
        Err(CommandError::Usage(text.to_owned()))
    }

    /// The same for one mesh or several.
    ///
    /// # Errors
    /// When `--mesh` names a mesh twice, a flag belongs to a mesh that is not chosen, or two flags set the values
    /// of Istio. The error names the flag, and what to set instead.
    pub fn must_suit_the_meshes(&self) -> Result<(), CommandError> {
        if self.mesh.iter().any(|mesh| self.mesh.iter().filter(|other| *other == mesh).count() > 1)
        {
            let text = "--mesh names a mesh twice; expected linkerd, istio, templates, or several with commas between";
            return Err(CommandError::Usage(text.to_owned()));
        }
        let without = |is_served: bool, flag, mesh| match flag {
            Some(flag) if !is_served => {
                Err(CommandError::Usage(format!("{flag} needs --mesh {mesh}")))
            }
            _ => Ok(()),
        };
        without(self.is_istio(), self.istio.set(), "istio")?;
        without(self.is_linkerd(), self.set_for_linkerd(), "linkerd")?;
        let has_mesh = self.is_linkerd() || self.is_istio();
        let values = self.values.as_ref().map(|_| "--values (or its variable INJECTD_VALUES)");
        without(has_mesh, values, "linkerd or --mesh istio")?;
        if self.is_istio() && !self.is_linkerd() && self.values.is_some() {
            return match &self.istio.injector_values {
                None => Ok(()),
                Some(_) => Err(CommandError::Usage(
                    "--injector-values and --values (or its variable INJECTD_VALUES) are the same \
                     with --mesh istio: set one of them"
                        .to_owned(),
                )),
            };
        }
        Ok(())
    }

    /// Whether Istio reads annotations of namespaces: on `OpenShift`.
    #[must_use]
    pub fn is_on_openshift(&self) -> bool {
        self.is_istio() && openshift::is_platform(&environment())
    }

    /// Flag and path of the values of Istio.
    fn istio_values(&self) -> (&'static str, Option<&PathBuf>) {
        match &self.istio.injector_values {
            Some(path) => ("--injector-values", Some(path)),
            None if self.is_linkerd() => ("--injector-values", None),
            None => ("--values", self.values.as_ref()),
        }
    }

    /// Whether files have the configuration of Istio, where a cluster might.
    ///
    /// # Errors
    /// When values or mesh configuration are in files, and the injector's configuration is not: there is no way to
    /// take a part from a cluster.
    pub fn has_istio_files(&self) -> Result<bool, CommandError> {
        if self.istio.injector_config.is_some() {
            return Ok(true);
        }
        let (flag, path) = self.istio_values();
        let variable = if flag == "--values" { " (or its variable INJECTD_VALUES)" } else { "" };
        let flags = [
            (format!("{flag}{variable}"), path.is_some()),
            ("--mesh-config".to_owned(), self.istio.mesh_config.is_some()),
        ];
        match flags.into_iter().find(|(_, is_set)| *is_set) {
            None => Ok(false),
            Some((flag, _)) => Err(CommandError::Usage(format!(
                "{flag} needs --injector-config: the configuration of Istio is in files, or in the \
                 ConfigMaps of the cluster"
            ))),
        }
    }

    /// Checks the flags of a server.
    ///
    /// # Errors
    /// When a file is missing, or `--revision` names several revisions where files have the configuration of one;
    /// when a release or a revision is not valid.
    pub fn must_suit_an_istio_server(&self, is_standalone: bool) -> Result<(), CommandError> {
        if is_standalone || self.has_istio_files()? {
            self.required_istio_files()?;
            self.revision()?;
        }
        self.istio.release()?;
        if is_standalone { Ok(()) } else { self.istio.revisions().map(drop) }
    }

    /// The paths of the files of Istio's configuration, where set.
    #[must_use]
    pub fn istio_files(&self) -> Vec<PathBuf> {
        let own = [&self.istio.injector_config, &self.istio.mesh_config];
        let values = self.istio_values().1;
        own.into_iter().flatten().chain(values).cloned().collect()
    }

    /// The revision of configuration in files.
    ///
    /// # Errors
    /// When `--revision` names several: files have the configuration of one.
    pub fn revision(&self) -> Result<String, CommandError> {
        match &self.istio.revision {
            Some(revision) if revision.contains(',') => Err(CommandError::Usage(format!(
                "--revision {revision}: only serve in a cluster, without --injector-config, takes \
                 several revisions"
            ))),
            Some(revision) => Ok(revision.clone()),
            None => {
                let revision = environment().remove("REVISION");
                Ok(revision.unwrap_or_else(|| DEFAULT_REVISION.to_owned()))
            }
        }
    }

    /// What the revisions of a cluster have in common; their `ConfigMap`s are in this namespace.
    ///
    /// # Errors
    /// When a revision or the release is not valid.
    pub fn istio_settings(&self, namespace: String) -> Result<Settings, CommandError> {
        let environment = environment();
        let shared_mesh = environment.get("SHARED_MESH_CONFIG").filter(|name| !name.is_empty());
        Ok(Settings {
            namespace,
            named: self.istio.revisions()?,
            shared_mesh: shared_mesh.cloned(),
            release: self.istio.release()?,
            allowed_functions: self.istio.allow_functions.clone(),
            tainted_values: self.istio.tainted_values,
            clusters: self.istio.clusters(&environment),
            environment,
        })
    }

    pub(super) fn set_for_linkerd(&self) -> Option<&'static str> {
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
    #[must_use]
    pub fn sets_path(&self) -> bool {
        self.istio.path.is_some()
    }

    /// The decoded path of the requests, by --path.
    ///
    /// # Errors
    /// What a server answers that does not send the requests to the injector.
    pub fn path(&self, profile: &Profile) -> Result<String, String> {
        let target = self.istio.path.as_deref().unwrap_or(DEFAULT_TARGET);
        let failed =
            |error: NoWebhook| format!("--path {target}: HTTP {}, {error}", error.status());
        profile.path(target).map_err(failed)
    }

    /// Istio's injector without a cluster.
    ///
    /// # Errors
    /// When the file of `--objects` cannot be read or is not valid, or as for [`Self::read_istio`].
    pub fn istio_injector(&self, purpose: Purpose) -> Result<IstioInjector, CommandError> {
        let sources = match self.objects(purpose)? {
            None => Standalone::default(),
            Some(objects) => Standalone::Listed(Arc::new(objects)),
        };
        Ok(injector::Injector::new(self.istio(1, purpose)?, Sources::from(sources)))
    }

    /// Istio with the configuration of the files.
    ///
    /// # Errors
    /// When a node, a `ProxyConfig` or a namespace of `--objects` is not valid, or as for [`Self::read_istio`].
    pub fn istio(&self, generation: u64, purpose: Purpose) -> Result<Istio, CommandError> {
        let names = self.istio.clusters(&environment());
        let revision = self.read_istio(purpose)?;
        let cluster = match &self.objects {
            None => Cluster::new(names),
            Some(path) => {
                let text = purpose.read_text("--objects", path)?;
                Cluster::parse(names, &text, revision.release()).map_err(|error| {
                    CommandError::failed(format!("--objects {}", path.display()), error)
                })?
            }
        };
        Ok(Istio::new(revision, cluster, generation))
    }

    /// The files with policy, templates and values.
    fn required_istio_files(&self) -> Result<(&PathBuf, &PathBuf), CommandError> {
        let missing = |flag| CommandError::Usage(format!("--mesh istio needs {flag}"));
        let config = self.istio.injector_config.as_ref();
        let config = config.ok_or_else(|| missing("--injector-config"))?;
        let (flag, values) = self.istio_values();
        Ok((config, values.ok_or_else(|| missing(flag))?))
    }

    /// Reads the files of the configuration.
    ///
    /// # Errors
    /// When a file is not named or cannot be read, or the configuration is not valid: the error names the flag of the
    /// file with the mistake.
    pub fn read_istio(&self, purpose: Purpose) -> Result<Revision, CommandError> {
        let (config_path, values_path) = self.required_istio_files()?;
        let config = purpose.read_text("--injector-config", config_path)?;
        let (values_flag, _) = self.istio_values();
        let values = purpose.read_text(values_flag, values_path)?;
        let mesh = match &self.istio.mesh_config {
            Some(path) => purpose.read_text("--mesh-config", path)?,
            None => String::new(),
        };
        let files = Files {
            config: &config,
            values: &values,
            mesh: &mesh,
            shared_mesh: "",
            labels: &BTreeMap::new(),
            release: self.istio.release()?,
            revision: &self.revision()?,
            environment: &environment(),
            allowed_functions: &self.istio.allow_functions,
        };
        let revision = Revision::new(files).map_err(|error| {
            let (flag, path) = match &error {
                StartError::Config(_) | StartError::Template { .. } => {
                    ("--injector-config", Some(config_path))
                }
                StartError::Values(_) => (values_flag, Some(values_path)),
                StartError::Mesh(_) | StartError::SharedMesh(_) => {
                    ("--mesh-config", self.istio.mesh_config.as_ref())
                }
            };
            let file = path.map(|path| path.display()).map(|path| format!("{flag} {path}"));
            let file = file.unwrap_or_default();
            if error.is_about_allowed_functions() {
                return CommandError::Incomplete(format!("{file}: {error}"));
            }
            CommandError::failed(file, error)
        })?;
        let revision = revision.with_tainted_values(self.istio.tainted_values);
        let file = format!("--injector-config {}", config_path.display());
        for warning in revision.warnings() {
            purpose.warn(&file, &warning);
        }
        Ok(revision)
    }
}

/// The names of the modes.
fn tainted_values() -> impl TypedValueParser<Value = TaintedValues> {
    let names = TaintedValues::ALL.map(TaintedValues::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// istiod's variables: those of this process.
fn environment() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}
