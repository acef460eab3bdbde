//! The flags that commands share: values, trust roots and cluster objects.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use injectd_cluster::sources::Sources;
use injectd_core::{
    linkerd::{
        release::{Release, ReleaseChoice},
        snapshot::{Config, Snapshot},
        trust_roots::EXAMPLE_TRUST_ROOTS,
        values::DEFAULT_VALUES,
    },
    objects::Objects,
    standalone::Standalone,
    yaml,
};
use injectd_profiles::{Injector, Profile};
use serde_json::Value;

use crate::{CommandError, cluster_config::Found, first_set, print::print_line};

mod istio;
mod purpose;
mod trust_roots;

use self::istio::IstioArgs;
pub use self::purpose::Purpose;

/// Names the Linkerd release to use for values of an unknown release.
const LINKERD_VERSION_VARIABLE: &str = "INJECTD_LINKERD_VERSION";

/// The configuration of an injector, from files.
#[derive(Debug, Clone, clap::Args)]
pub struct ConfigArgs {
    /// Mesh whose sidecars are injected; templates, for sidecar templates, is for serve: other commands
    /// have --templates [default: linkerd]
    #[arg(long, value_name = "MESH", value_delimiter = ',')]
    mesh: Vec<Served>,
    /// YAML or JSON file with the values of the installation: the key values of the ConfigMap
    /// linkerd-config or istio-sidecar-injector [default, for Linkerd: the chart's defaults of the
    /// newest release; required in a cluster]
    #[arg(long, value_name = "FILE", env = "INJECTD_VALUES")]
    values: Option<PathBuf>,
    /// PEM file with the mesh's trust roots [default: a placeholder certificate, with which injected
    /// proxies cannot join a mesh; required in a cluster]
    #[arg(long, value_name = "FILE", env = "INJECTD_TRUST_ROOTS")]
    trust_roots: Option<PathBuf>,
    /// Namespace of the Linkerd control plane [default: linkerd]
    #[arg(short = 'L', long, value_name = "NAMESPACE")]
    linkerd_namespace: Option<String>,
    /// YAML or JSON file with cluster objects to look up: for Linkerd Namespaces, ReplicaSets, Jobs,
    /// where a namespace missing from the file does not exist; for Istio Namespaces, Nodes,
    /// ProxyConfigs; for sidecar templates Namespaces, service accounts and owners of pods [default:
    /// every namespace exists]
    #[arg(long, value_name = "FILE", env = "INJECTD_OBJECTS")]
    objects: Option<PathBuf>,
    /// Action for values of a Linkerd release that this version of injectd does not know: warn and
    /// use the nearest known release, or reject the values. To choose a release yourself, set
    /// INJECTD_LINKERD_VERSION [default: warn]
    #[arg(long, value_name = "ACTION", env = "INJECTD_UNKNOWN_RELEASE")]
    unknown_release: Option<UnknownRelease>,
    #[command(flatten)]
    istio: IstioArgs,
    /// What a cluster has, where no file is named.
    #[arg(skip)]
    found: Option<Found>,
}

/// The action for values of an unknown Linkerd release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnknownRelease {
    Warn,
    Reject,
}

/// A mesh, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[expect(missing_docs, reason = "clap prints what a variant has as its help")]
pub enum MeshName {
    Linkerd,
    Istio,
    Templates,
}

/// What a server injects, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Served {
    Linkerd,
    Istio,
    Templates,
}

impl ConfigArgs {
    /// The mesh that is chosen, with its configuration and without a cluster.
    ///
    /// # Errors
    /// When a flag of another mesh is set, or a file of the chosen mesh cannot be read or is not valid. The
    /// error names flag and file.
    pub fn standalone_profile(&self, purpose: Purpose) -> Result<Profile, CommandError> {
        self.must_suit_the_mesh()?;
        if self.is_istio() {
            return Ok(Profile::Istio(Arc::new(self.istio_injector(purpose)?)));
        }
        Ok(Profile::Linkerd(Arc::new(self.standalone_injector(&[], purpose)?)))
    }

    /// Chooses Linkerd, whatever `--mesh` says.
    pub fn choose_linkerd(&mut self) {
        self.mesh = vec![Served::Linkerd];
    }

    /// The mesh that `--mesh` names; `None` without.
    #[must_use]
    pub fn named_mesh(&self) -> Option<MeshName> {
        match self.mesh.first()? {
            Served::Linkerd => Some(MeshName::Linkerd),
            Served::Istio => Some(MeshName::Istio),
            Served::Templates => None,
        }
    }

    /// Whether Linkerd's sidecars are injected.
    #[must_use]
    pub fn is_linkerd(&self) -> bool {
        self.mesh.is_empty() || self.mesh.contains(&Served::Linkerd)
    }

    /// Whether Istio's sidecars are injected.
    #[must_use]
    pub fn is_istio(&self) -> bool {
        self.mesh.contains(&Served::Istio)
    }

    /// Whether sidecar templates are served.
    #[must_use]
    pub fn is_templates(&self) -> bool {
        self.mesh.contains(&Served::Templates)
    }

    /// The first flag that says which mesh is injected, or with what configuration.
    #[must_use]
    pub fn set_for_a_mesh(&self) -> Option<&'static str> {
        let values = "--values (or its variable INJECTD_VALUES)";
        let flags = [("--mesh", !self.mesh.is_empty()), (values, self.values.is_some())];
        first_set(flags).or(self.set_for_linkerd()).or(self.istio.set())
    }

    /// Checks that the mesh is Linkerd, for what Istio does not have.
    ///
    /// # Errors
    /// With `--mesh istio`, and `what` begins the message; or when a flag does not suit the mesh.
    pub fn must_be_linkerd(&self, what: &str) -> Result<(), CommandError> {
        self.must_suit_the_mesh()?;
        if self.is_istio() {
            return Err(CommandError::Usage(format!("{what} does not work with --mesh istio")));
        }
        Ok(())
    }

    /// An injector without a cluster. If the release is unknown or one to leave, commands without a
    /// server print a warning; a server logs it.
    ///
    /// Without --objects, every namespace has these `annotations`.
    ///
    /// # Errors
    /// When the file of `--values`, `--trust-roots` or `--objects` cannot be read or is not valid. With
    /// `--unknown-release reject` also when the release of the values is not known.
    pub fn standalone_injector(
        &self,
        annotations: &[(&str, &str)],
        purpose: Purpose,
    ) -> Result<Injector, CommandError> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let objects = match self.objects(purpose)? {
            Some(objects) => Standalone::Listed(Arc::new(objects)),
            None => Standalone::annotated(annotations.iter().map(owned)),
        };
        self.injector(objects.into(), purpose)
    }

    /// The same, with these sources.
    ///
    /// # Errors
    /// When the file of `--values` or `--trust-roots` cannot be read or is not valid. With
    /// `--unknown-release reject` also when the release of the values is not known.
    pub fn injector(&self, sources: Sources, purpose: Purpose) -> Result<Injector, CommandError> {
        let snapshot = self.snapshot(1, purpose)?;
        if purpose != Purpose::Serve {
            let choice = &snapshot.release_choice;
            let advice = choice.advice().map(str::to_owned);
            for warning in unknown_release(choice).into_iter().chain(advice) {
                print_line(&format!("warning: {warning}"));
            }
        }
        Ok(Injector::new(snapshot, sources))
    }

    /// The objects of --objects; `None` without the flag.
    ///
    /// # Errors
    /// When the file cannot be read, or an object in it has another shape than Kubernetes'.
    pub fn objects(&self, purpose: Purpose) -> Result<Option<Objects>, CommandError> {
        let Some(path) = &self.objects else { return Ok(None) };
        let objects = Objects::parse(&purpose.read_text("--objects", path)?).map_err(|error| {
            CommandError::failed(format!("--objects {}", path.display()), error)
        })?;
        Ok(Some(objects))
    }

    /// The objects of --objects with all their fields; `None` without the flag.
    ///
    /// # Errors
    /// When the file cannot be read, or is not YAML.
    pub fn object_values(&self, purpose: Purpose) -> Result<Option<Vec<Value>>, CommandError> {
        let Some(path) = &self.objects else { return Ok(None) };
        let objects = yaml::parse_all(&purpose.read_text("--objects", path)?);
        let name = || format!("--objects {}", path.display());
        objects.map(Some).map_err(|problem| CommandError::failed(name(), problem))
    }

    /// Whether --objects is set.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        self.objects.is_some()
    }

    /// The namespace of Linkerd's control plane.
    #[must_use]
    pub fn linkerd_namespace(&self) -> &str {
        self.linkerd_namespace.as_deref().unwrap_or("linkerd")
    }

    /// Uses what a cluster has, where no file is named.
    pub fn use_found(&mut self, found: Found) {
        self.found = Some(found);
    }

    /// Checks the flags for a cluster, where built-in values and trust roots are not allowed.
    ///
    /// # Errors
    /// When a file is not named that a cluster needs.
    pub fn must_suit_a_cluster(&self) -> Result<(), CommandError> {
        for (flag, path) in [("--values", &self.values), ("--trust-roots", &self.trust_roots)] {
            if self.is_linkerd() && path.is_none() {
                let text = format!("{flag} is required, unless --standalone is set");
                return Err(CommandError::Usage(text));
            }
        }
        if self.objects.is_some() {
            let text = "--objects is only allowed with --standalone";
            return Err(CommandError::Usage(text.to_owned()));
        }
        Ok(())
    }

    /// The paths of the files of Linkerd's configuration, where set.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        [&self.values, &self.trust_roots].into_iter().flatten().cloned().collect()
    }

    /// Prints a note if the output gets the placeholder trust roots.
    pub fn warn_of_example_trust_roots(&self) {
        if self.trust_roots.is_none() && self.found.is_none() {
            print_line(
                "note: --trust-roots is not set: proxies get a placeholder certificate and cannot \
                 join a mesh",
            );
        }
    }

    /// Reads the files of the configuration.
    ///
    /// # Errors
    /// When a file cannot be read, or values or trust roots are not valid. With `--unknown-release reject`
    /// also when the release of the values is not known. The error names the flag, or the cluster's values.
    pub fn snapshot(&self, generation: u64, purpose: Purpose) -> Result<Snapshot, CommandError> {
        let values = match (&self.values, &self.found) {
            (Some(path), _) => purpose.read_text("--values", path)?,
            (None, Some(found)) => found.values.clone(),
            (None, None) => DEFAULT_VALUES.to_owned(),
        };
        let trust_roots = match (&self.trust_roots, &self.found) {
            (Some(path), _) => purpose.read_trust_roots(path)?,
            (None, Some(found)) => found.trust_roots.clone(),
            (None, None) => EXAMPLE_TRUST_ROOTS.to_vec(),
        };
        let config = Config {
            values: &values,
            trust_roots: &trust_roots,
            control_plane_namespace: self.linkerd_namespace(),
            fallback_release: fallback_release()?,
        };
        let file = || {
            let path = self.values.as_deref();
            match (path, &self.found) {
                (Some(path), _) => format!("--values {}", path.display()),
                (None, Some(_)) => "the values of the cluster".to_owned(),
                (None, None) => "the built-in values".to_owned(),
            }
        };
        let snapshot = Snapshot::new(config, generation)
            .map_err(|error| CommandError::failed(file(), error))?;
        match snapshot.release_choice.unknown() {
            Some(problem) if self.unknown_release == Some(UnknownRelease::Reject) => {
                let problem = format!("{problem}; {}", remedy());
                Err(CommandError::failed(format!("--unknown-release reject: {}", file()), problem))
            }
            _ => Ok(snapshot),
        }
    }
}

/// The configuration of values from a file, or of the built-in ones, for what does not depend on
/// trust roots.
///
/// # Errors
/// When the file cannot be read, or its values are not valid.
pub fn snapshot_of_values(values: Option<&Path>) -> Result<Snapshot, CommandError> {
    let args = ConfigArgs {
        values: values.map(Path::to_owned),
        trust_roots: None,
        mesh: vec![Served::Linkerd],
        linkerd_namespace: None,
        objects: None,
        unknown_release: None,
        istio: IstioArgs::default(),
        found: None,
    };
    args.snapshot(1, Purpose::Inject)
}

/// The warning about an unknown release, with the release in use and what to do; `None` if the
/// release is known.
#[must_use]
pub fn unknown_release(choice: &ReleaseChoice) -> Option<String> {
    let problem = choice.unknown()?;
    let release = choice.release;
    Some(format!("unknown Linkerd release: {problem}; injecting as {release}; {}", remedy()))
}

fn remedy() -> String {
    let (oldest, newest) = (Release::stable_2_14(), Release::NEWEST);
    format!(
        "set {LINKERD_VERSION_VARIABLE} to a release from {oldest} to {newest}, or upgrade injectd"
    )
}

#[expect(clippy::disallowed_methods, reason = "this is configuration")]
fn fallback_release() -> Result<Option<Release>, CommandError> {
    let Ok(version) = env::var(LINKERD_VERSION_VARIABLE) else {
        return Ok(None);
    };
    let usage = || {
        let (oldest, newest) = (Release::stable_2_14(), Release::NEWEST);
        CommandError::Usage(format!(
            "{LINKERD_VERSION_VARIABLE}={version}: unknown Linkerd release; expected one from \
             {oldest} to {newest}, such as edge-26.6.3 or stable-2.14.10"
        ))
    };
    Release::parse(&version).map(Some).ok_or_else(usage)
}
