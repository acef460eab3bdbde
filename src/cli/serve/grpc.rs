//! The flags of the gRPC door: where it is, and who may call.

use std::{path::PathBuf, sync::Arc, time::Duration};

use super::{
    super::{CommandError, input},
    Cluster, addr_error,
    tls::ClientCa,
};
use crate::{
    cluster::Tokens,
    grpc::{Access, Callers},
    metrics::{Registry, ReloadMetrics},
    reload::{self, Files, Schedule},
    server::{Bound, UNIX_SCHEME},
};

/// Where gRPC is served, and to whom.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "the fields are named after their flags")]
#[command(next_help_heading = "gRPC door")]
pub(super) struct GrpcArgs {
    /// Address of the gRPC door: as Go writes it, or unix:PATH for a socket of this user, without TLS.
    /// Empty: there is none. Beyond this machine callers have to prove who they are
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8444", env = "INJECTD_GRPC_ADDR")]
    grpc_addr: String,
    /// Serve gRPC on the webhook's port, too, to callers who prove who they are
    #[arg(long, env = "INJECTD_GRPC_ON_WEBHOOK", conflicts_with = "client_ca")]
    pub(super) grpc_on_webhook: bool,
    /// Certificates as PEM: clients with one of this CA may call
    #[arg(long, value_name = "FILE", env = "INJECTD_GRPC_CLIENT_CA")]
    grpc_client_ca: Option<PathBuf>,
    /// `ServiceAccounts` with a token for this audience may call; needs the permission to create
    /// `TokenReviews`
    #[arg(long, value_name = "AUDIENCE", env = "INJECTD_GRPC_TOKEN_AUDIENCE")]
    grpc_token_audience: Option<String>,
    /// Only these callers may call: DNS names and SPIFFE URIs of certificates, users of tokens
    /// (`system:serviceaccount:NAMESPACE:NAME`) [default: all who prove any]
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "INJECTD_GRPC_ALLOW")]
    grpc_allow: Vec<String>,
    /// A file of more names for --grpc-allow, one in a line, read again when it changes
    #[arg(long, value_name = "FILE", env = "INJECTD_GRPC_ALLOW_FILE")]
    grpc_allow_file: Option<PathBuf>,
}

impl GrpcArgs {
    /// Whether gRPC is served anywhere.
    pub(super) fn is_served(&self) -> bool {
        self.grpc_on_webhook || !self.grpc_addr.is_empty()
    }

    fn has_proof(&self) -> bool {
        self.grpc_client_ca.is_some() || self.grpc_token_audience.is_some()
    }

    /// Refuses flags that do not go together.
    pub(super) fn check(&self, is_standalone: bool) -> Result<(), CommandError> {
        let problem = if self.grpc_on_webhook && !self.has_proof() {
            "--grpc-on-webhook: callers have to prove who they are; give --grpc-client-ca or \
             --grpc-token-audience"
        } else if !self.has_proof() && !self.grpc_allow.is_empty() {
            "--grpc-allow: nobody can prove a name; give --grpc-client-ca or --grpc-token-audience"
        } else if !self.has_proof() && self.grpc_allow_file.is_some() {
            "--grpc-allow-file: nobody can prove a name; give --grpc-client-ca or \
             --grpc-token-audience"
        } else if is_standalone && self.grpc_token_audience.is_some() {
            "--grpc-token-audience: tokens are reviewed by a cluster; serve one, or give \
             --grpc-client-ca"
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(problem.to_owned()))
    }

    /// The listener of the door, if it has one of its own.
    pub(super) async fn bind(&self) -> Result<Option<Bound>, CommandError> {
        let addr = &self.grpc_addr;
        let bound = match addr.strip_prefix(UNIX_SCHEME) {
            _ if addr.is_empty() => return Ok(None),
            Some(path) => Bound::bind_unix(path.as_ref()),
            None => Bound::bind(addr).await,
        };
        let bound = bound.map_err(|error| addr_error("--grpc-addr", addr, error))?;
        if !bound.addr().is_local() && !self.has_proof() {
            return Err(CommandError::Usage(format!(
                "--grpc-addr {addr}: callers from other machines have to prove who they are; give \
                 --grpc-client-ca or --grpc-token-audience, or an address of this machine alone"
            )));
        }
        Ok(Some(bound))
    }

    /// The CA of callers; those who may come with a token instead need no certificate.
    pub(super) fn client_ca(&self) -> Option<ClientCa> {
        let is_required = self.grpc_token_audience.is_none() && !self.grpc_on_webhook;
        self.grpc_client_ca.clone().map(|path| ClientCa {
            flag: "--grpc-client-ca",
            path,
            is_required,
        })
    }

    /// Who may call; takes over changed names.
    pub(super) fn access(
        &self,
        cluster: Option<&Cluster>,
        lookup_timeout: Duration,
        schedule: &Schedule,
        registry: &Registry,
    ) -> Result<Arc<Access>, CommandError> {
        let callers = if self.has_proof() {
            let audience = self.grpc_token_audience.clone().zip(cluster);
            Callers::Known(audience.map(|(audience, cluster)| {
                Arc::new(Tokens::new(cluster.client.clone(), audience, lookup_timeout))
            }))
        } else {
            Callers::Anybody
        };
        // Looked at before they are read: what changes in between is read again.
        let files = Files::new(self.grpc_allow_file.iter().cloned());
        let access = Arc::new(Access::new(callers, self.allowed()?));
        if let Some(path) = &self.grpc_allow_file {
            let metrics = ReloadMetrics::register(registry, "grpc_allow");
            let again = Allowed { names: self.grpc_allow.clone(), file: path.clone() };
            let reloaded = Arc::clone(&access);
            let reload = move || {
                reloaded.replace_allowed(Some(again.read()?));
                Ok::<_, CommandError>(())
            };
            reload::follow("grpc_allow", files, schedule, metrics, reload)
                .map_err(|error| CommandError::failed("cannot follow files", error))?;
        }
        Ok(access)
    }

    /// The names of callers; `None`: all.
    fn allowed(&self) -> Result<Option<Vec<String>>, CommandError> {
        let names = self.grpc_allow.clone();
        match &self.grpc_allow_file {
            Some(file) => Allowed { names, file: file.clone() }.read().map(Some),
            None => Ok(Some(names).filter(|names| !names.is_empty())),
        }
    }
}

/// Names of callers from flags and a file.
struct Allowed {
    names: Vec<String>,
    file: PathBuf,
}

impl Allowed {
    /// One in a line; what follows `#` is a comment.
    fn read(&self) -> Result<Vec<String>, CommandError> {
        let bytes = input::read_served("--grpc-allow-file", &self.file)?;
        let text = input::utf8(&self.file, bytes)?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let names = lines.filter(|name| !name.is_empty()).map(str::to_owned);
        Ok(self.names.iter().cloned().chain(names).collect())
    }
}
