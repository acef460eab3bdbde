//! The flags that commands share: which values, trust roots and cluster objects to work on.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::{CommandError, input, note};
use crate::{
    cluster::{Owners, WatchedNamespaces},
    injector::Injector,
    linkerd::{
        release::Release,
        snapshot::{Config, Snapshot},
        values::DEFAULT_VALUES,
    },
    namespaces::Namespaces,
    objects::Objects,
    workloads::Workloads,
};

/// Stands in for the trust roots of a mesh that is not there.
const EXAMPLE_TRUST_ROOTS: &[u8] = include_bytes!("../linkerd/example-root.crt");

/// The release to assume for values that do not tell theirs.
const LINKERD_VERSION_VARIABLE: &str = "INJECTD_LINKERD_VERSION";

/// What to work on without a cluster.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ConfigArgs {
    /// Values of the Linkerd installation: key `values` of the `ConfigMap` linkerd-config, as YAML
    /// [default: what the newest release installs]
    #[arg(long, value_name = "FILE", env = "INJECTD_VALUES")]
    values: Option<PathBuf>,
    /// Trust roots of the mesh, PEM [default: an example nobody has the key of]
    #[arg(long, value_name = "FILE", env = "INJECTD_TRUST_ROOTS")]
    trust_roots: Option<PathBuf>,
    /// Namespace of Linkerd's control plane
    #[arg(long, value_name = "NAMESPACE", default_value = "linkerd")]
    linkerd_namespace: String,
    /// Cluster objects (Namespaces, `ReplicaSets`, Jobs …) as YAML or JSON; a namespace that is not
    /// in it does not exist [default: every namespace exists]
    #[arg(long, value_name = "FILE", env = "INJECTD_OBJECTS")]
    objects: Option<PathBuf>,
}

/// What a file of trust roots may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bundle {
    /// What Linkerd's injector takes: anything.
    Anything,
    /// Certificates: no proxy could join the mesh with anything else.
    Certificates,
}

impl Bundle {
    fn read(self, path: &Path) -> Result<Vec<u8>, CommandError> {
        let bundle = input::read(path)?;
        if self == Self::Anything {
            return Ok(bundle);
        }
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bundle).collect();
        let problem = match certificates {
            Ok(certificates) if !certificates.is_empty() => return Ok(bundle),
            Ok(_) => "found none".to_owned(),
            Err(error) => error.to_string(),
        };
        let expected = format!("expected certificates as PEM: {problem}");
        Err(CommandError::failed(format!("--trust-roots {}", path.display()), expected))
    }
}

impl ConfigArgs {
    /// An injector that works on this configuration alone.
    ///
    /// `annotations` are those of every namespace as long as no objects are given.
    pub(super) fn standalone_injector(
        &self,
        annotations: &[(&str, &str)],
        bundle: Bundle,
    ) -> Result<Injector, CommandError> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let (namespaces, workloads) = match &self.objects {
            None => {
                (Namespaces::Every(annotations.iter().map(owned).collect()), Workloads::Unknown)
            }
            Some(path) => {
                let objects = Objects::parse(&input::read_text(path)?).map_err(|error| {
                    CommandError::failed(format!("--objects {}", path.display()), error)
                })?;
                let objects = Arc::new(objects);
                (Namespaces::Listed(Arc::clone(&objects)), Workloads::Listed(objects))
            }
        };
        Ok(Injector::new(self.snapshot(1, bundle)?, namespaces, workloads))
    }

    /// Makes sure that nothing of a cluster's configuration is left to an example.
    pub(super) fn must_suit_a_cluster(&self) -> Result<(), CommandError> {
        for (flag, path) in [("--values", &self.values), ("--trust-roots", &self.trust_roots)] {
            if path.is_none() {
                let text =
                    format!("{flag} is needed to serve a cluster; --standalone does without");
                return Err(CommandError::Usage(text));
            }
        }
        if self.objects.is_some() {
            let text = "--objects goes with --standalone: a cluster has objects of its own";
            return Err(CommandError::Usage(text.to_owned()));
        }
        Ok(())
    }

    /// An injector for a cluster.
    pub(super) fn cluster_injector(
        &self,
        namespaces: Arc<WatchedNamespaces>,
        owners: Arc<Owners>,
    ) -> Result<Injector, CommandError> {
        let (namespaces, workloads) = (Namespaces::Watched(namespaces), Workloads::Asked(owners));
        let snapshot = self.snapshot(1, Bundle::Certificates)?;
        Ok(Injector::new(snapshot, namespaces, workloads))
    }

    /// The files of values and trust roots that were given.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        [&self.values, &self.trust_roots].into_iter().flatten().cloned().collect()
    }

    /// Tells when output is going to hold the example in place of trust roots.
    pub(super) fn warn_of_example_trust_roots(&self) {
        if self.trust_roots.is_none() {
            note("note: no --trust-roots: the proxies get an example and cannot join a mesh");
        }
    }

    /// Reads the configuration as it is now.
    pub(super) fn snapshot(
        &self,
        generation: u64,
        bundle: Bundle,
    ) -> Result<Snapshot, CommandError> {
        let values = match &self.values {
            Some(path) => input::read_text(path)?,
            None => DEFAULT_VALUES.to_owned(),
        };
        let trust_roots = match &self.trust_roots {
            Some(path) => bundle.read(path)?,
            None => EXAMPLE_TRUST_ROOTS.to_vec(),
        };
        let config = Config {
            values: &values,
            trust_roots: &trust_roots,
            control_plane_namespace: &self.linkerd_namespace,
            fallback_release: fallback_release()?,
        };
        Snapshot::new(config, generation).map_err(|error| {
            let file = self
                .values
                .as_deref()
                .map_or("built-in values".into(), |p| p.display().to_string());
            CommandError::failed(format!("--values {file}"), error)
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is configuration")]
fn fallback_release() -> Result<Option<Release>, CommandError> {
    let Ok(version) = env::var(LINKERD_VERSION_VARIABLE) else {
        return Ok(None);
    };
    let release = Release::parse(&version);
    let usage = || {
        CommandError::Usage(format!(
            "{LINKERD_VERSION_VARIABLE}={version}: expected a release such as edge-26.6.3 or stable-2.14.10"
        ))
    };
    release.map(Some).ok_or_else(usage)
}
