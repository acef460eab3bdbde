//! The flags that commands share: which values, trust roots and cluster objects to work on.

use std::{env, path::PathBuf, sync::Arc};

use super::{CommandError, note};
use crate::{
    cluster::{Owners, WatchedNamespaces},
    injector::Injector,
    linkerd::{
        release::{Release, ReleaseChoice},
        snapshot::{Config, Snapshot},
        values::DEFAULT_VALUES,
    },
    namespaces::Namespaces,
    objects::Objects,
    workloads::Workloads,
};

mod purpose;
mod trust_roots;

pub(super) use self::purpose::Purpose;

/// Stands in for the trust roots of a mesh that is not there.
const EXAMPLE_TRUST_ROOTS: &[u8] = include_bytes!("../linkerd/example-root.crt");

/// The release to speak for values whose own is unknown.
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
    /// For values of a Linkerd release that this injectd does not know: warn and inject as the
    /// nearest known release, or refuse the values; `$INJECTD_LINKERD_VERSION` names a release to
    /// use instead
    #[arg(long, value_name = "ACTION", default_value = "warn", env = "INJECTD_UNKNOWN_RELEASE")]
    unknown_release: UnknownRelease,
}

/// What to do with values of an unknown release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnknownRelease {
    Warn,
    Refuse,
}

impl ConfigArgs {
    /// An injector that works on this configuration alone. Commands without a server print a warning
    /// if the release is unknown; a server logs it.
    ///
    /// `annotations` are those of every namespace as long as no objects are given.
    pub(super) fn standalone_injector(
        &self,
        annotations: &[(&str, &str)],
        purpose: Purpose,
    ) -> Result<Injector, CommandError> {
        let workloads = self.objects(purpose)?.map_or(Workloads::Unknown, Workloads::Listed);
        self.injector_with(annotations, workloads, purpose)
    }

    /// The same where owners are looked up in `workloads`, and namespaces in its objects.
    pub(super) fn injector_with(
        &self,
        annotations: &[(&str, &str)],
        workloads: Workloads,
        purpose: Purpose,
    ) -> Result<Injector, CommandError> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let namespaces = match &workloads {
            Workloads::Listed(objects) | Workloads::ListedInPart(objects) => {
                Namespaces::Listed(Arc::clone(objects))
            }
            _ => Namespaces::Every(annotations.iter().map(owned).collect()),
        };
        let snapshot = self.snapshot(1, purpose)?;
        let warning = unknown_release(&snapshot.release_choice);
        if let Some(warning) = warning.filter(|_| purpose != Purpose::Serve) {
            note(&format!("warning: {warning}"));
        }
        Ok(Injector::new(snapshot, namespaces, workloads))
    }

    /// The objects that were given.
    pub(super) fn objects(&self, purpose: Purpose) -> Result<Option<Arc<Objects>>, CommandError> {
        let Some(path) = &self.objects else { return Ok(None) };
        let objects = Objects::parse(&purpose.read_text("--objects", path)?).map_err(|error| {
            CommandError::failed(format!("--objects {}", path.display()), error)
        })?;
        Ok(Some(Arc::new(objects)))
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
        let snapshot = self.snapshot(1, Purpose::Serve)?;
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
        purpose: Purpose,
    ) -> Result<Snapshot, CommandError> {
        let values = match &self.values {
            Some(path) => purpose.read_text("--values", path)?,
            None => DEFAULT_VALUES.to_owned(),
        };
        let trust_roots = match &self.trust_roots {
            Some(path) => purpose.read_trust_roots(path)?,
            None => EXAMPLE_TRUST_ROOTS.to_vec(),
        };
        let config = Config {
            values: &values,
            trust_roots: &trust_roots,
            control_plane_namespace: &self.linkerd_namespace,
            fallback_release: fallback_release()?,
        };
        let file = || {
            let path = self.values.as_deref();
            let file = path.map_or("built-in values".into(), |path| path.display().to_string());
            format!("--values {file}")
        };
        let snapshot = Snapshot::new(config, generation)
            .map_err(|error| CommandError::failed(file(), error))?;
        match snapshot.release_choice.unknown() {
            Some(problem) if self.unknown_release == UnknownRelease::Refuse => {
                let problem = format!("{problem}; {}", remedy());
                Err(CommandError::failed(format!("--unknown-release refuse: {}", file()), problem))
            }
            _ => Ok(snapshot),
        }
    }
}

/// What to report of a release that is unknown: what was found, what is done and what to do.
pub(super) fn unknown_release(choice: &ReleaseChoice) -> Option<String> {
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
            "{LINKERD_VERSION_VARIABLE}={version}: unknown Linkerd release; expected one from {oldest} to {newest}, such as edge-26.6.3 or stable-2.14.10"
        ))
    };
    Release::parse(&version).map(Some).ok_or_else(usage)
}
