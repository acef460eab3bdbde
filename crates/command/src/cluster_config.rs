//! The configuration of the mesh in a cluster: what `--values` and `--trust-roots` name in files.

use std::path::PathBuf;

use injectd_cluster::{ClientError, ClientOptions, Unanswered, causes::with_causes};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use crate::{CommandError, first_set};

/// Where the values are.
const VALUES: ConfigMapKey = ConfigMapKey { name: "linkerd-config", key: "values" };
/// Where the trust roots are.
const TRUST_ROOTS: ConfigMapKey =
    ConfigMapKey { name: "linkerd-identity-trust-roots", key: "ca-bundle.crt" };

/// A key of a `ConfigMap`, as a `configMapKeyRef` names it.
#[derive(Debug, Clone, Copy)]
struct ConfigMapKey {
    name: &'static str,
    key: &'static str,
}

/// The cluster to read the configuration from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Path to a kubeconfig file: take the configuration of the mesh from its cluster [default: for
    /// files, read no cluster; else that of kubectl]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "CONTEXT")]
    context: Option<String>,
    /// User to impersonate
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
}

/// The configuration that a cluster has.
#[derive(Debug, Clone)]
pub struct Found {
    /// The values of the installation.
    pub values: String,
    /// The trust roots, as PEM.
    pub trust_roots: Vec<u8>,
}

impl ClusterArgs {
    /// Reads the configuration of the control plane in a namespace; `None` without flags.
    ///
    /// # Errors
    /// When the cluster does not answer, or lacks a part of the configuration.
    pub async fn read(&self, namespace: &str) -> Result<Option<Found>, CommandError> {
        let Some(client) = self.client(false).await? else { return Ok(None) };
        found(&client, namespace).await.map(Some)
    }

    /// A client for the cluster that the flags name; `None` without flags, unless one is needed: then
    /// for the cluster of the current context.
    ///
    /// # Errors
    /// When no cluster is found, or its configuration is not valid.
    pub async fn client(&self, is_needed: bool) -> Result<Option<Client>, CommandError> {
        if self.set().is_none() && !is_needed {
            return Ok(None);
        }
        let options = ClientOptions {
            kubeconfig: self.kubeconfig.as_deref(),
            context: self.context.as_deref(),
            user: self.user.as_deref(),
            groups: &self.groups,
        };
        injectd_cluster::client(options).await.map(Some).map_err(|error| self.error(&error))
    }

    /// The first of these flags that is set.
    #[must_use]
    pub fn set(&self) -> Option<&'static str> {
        let flags = [
            ("--kubeconfig", self.kubeconfig.is_some()),
            ("--context", self.context.is_some()),
            ("--as", self.user.is_some()),
        ];
        first_set(flags)
    }

    fn error(&self, error: &ClientError) -> CommandError {
        let text = with_causes(error);
        let problem = match error {
            ClientError::NoCluster(_) => "no kubeconfig is found; set --kubeconfig",
            // A library draws the place below its message.
            _ => text.lines().next().unwrap_or_default(),
        };
        let file = self.kubeconfig.as_ref();
        let flags = [
            file.map(|path| format!("--kubeconfig {}: ", path.display())),
            self.context.as_ref().map(|context| format!("--context {context}: ")),
        ];
        let flags: String = flags.into_iter().flatten().collect();
        CommandError::Incomplete(format!("{flags}{problem}"))
    }
}

/// Reads the configuration of the control plane in a namespace.
///
/// # Errors
/// When the cluster does not answer, or lacks a part of the configuration.
pub async fn found(client: &Client, namespace: &str) -> Result<Found, CommandError> {
    let values = text(client, namespace, VALUES).await?;
    let trust_roots = text(client, namespace, TRUST_ROOTS).await?.into_bytes();
    Ok(Found { values, trust_roots })
}

async fn text(client: &Client, namespace: &str, of: ConfigMapKey) -> Result<String, CommandError> {
    let ConfigMapKey { name, key } = of;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = api.get(name).await.map_err(|error| {
        let message = format!("cannot read the ConfigMap {namespace}/{name} (--linkerd-namespace)");
        CommandError::failed(message, Unanswered::from(error).text())
    })?;
    map.data.and_then(|mut data| data.remove(key)).ok_or_else(|| {
        let problem = format!("the key {key} is missing");
        CommandError::failed(format!("ConfigMap {namespace}/{name}"), problem)
    })
}
