//! The flags of the gRPC server: its address, and which callers are allowed.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use injectd_api::UNIX_SCHEME;
use injectd_cluster::Tokens;
use injectd_command::{CommandError, input};
use injectd_telemetry::metrics::{Registry, ReloadMetrics};
use tracing::warn;

use super::{addr_error, process::Cluster, tls::ClientCa};
use crate::{
    grpc::{Access, Allowed, Callers},
    reload::{self, Files, Schedule},
    server::Bound,
};

/// The address of the gRPC server if none is set.
const DEFAULT_ADDR: &str = "127.0.0.1:8444";

/// Address and access control of the gRPC server.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "the fields are named after their flags")]
#[command(next_help_heading = "gRPC server")]
pub(super) struct GrpcArgs {
    /// Address of the gRPC server: HOST:PORT, :PORT, or unix:PATH for a Unix socket of this user
    /// without TLS. Empty disables the gRPC server. Callers from other machines must authenticate
    /// with --grpc-client-ca or --grpc-token-audience [default: 127.0.0.1:8444; if another process
    /// uses it and no option of gRPC is set, no gRPC server]
    #[arg(long, value_name = "ADDR", env = "INJECTD_GRPC_ADDR")]
    grpc_addr: Option<String>,
    /// Also serve gRPC on the webhook's port, to authenticated callers
    #[arg(long, env = "INJECTD_GRPC_ON_WEBHOOK", conflicts_with = "client_ca")]
    pub(super) grpc_on_webhook: bool,
    /// PEM file with a CA bundle. Callers with a certificate signed by one of these CAs are
    /// authenticated
    #[arg(long, value_name = "FILE", env = "INJECTD_GRPC_CLIENT_CA")]
    grpc_client_ca: Option<PathBuf>,
    /// Audience of ServiceAccount tokens. Callers with a token for this audience are authenticated.
    /// Requires the permission to create TokenReviews
    #[arg(long, value_name = "AUDIENCE", env = "INJECTD_GRPC_TOKEN_AUDIENCE")]
    grpc_token_audience: Option<String>,
    /// Comma-separated names of allowed callers: DNS names or SPIFFE URIs of certificates, and users
    /// of tokens (system:serviceaccount:NAMESPACE:NAME). A name that begins with system: is never
    /// one of a certificate, and any other never a user [default: all authenticated callers]
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "INJECTD_GRPC_ALLOW")]
    grpc_allow: Vec<String>,
    /// File with more names for --grpc-allow, one per line, reloaded when it changes
    #[arg(long, value_name = "FILE", env = "INJECTD_GRPC_ALLOW_FILE")]
    grpc_allow_file: Option<PathBuf>,
}

impl GrpcArgs {
    /// Whether gRPC is served anywhere.
    pub(super) fn is_served(&self) -> bool {
        self.grpc_on_webhook || self.has_listener()
    }

    /// Whether the gRPC server has a listener of its own.
    pub(super) fn has_listener(&self) -> bool {
        !self.addr().is_empty()
    }

    fn addr(&self) -> &str {
        self.grpc_addr.as_deref().unwrap_or(DEFAULT_ADDR)
    }

    /// Whether an option of the listener is set.
    fn is_asked_for(&self) -> bool {
        self.grpc_addr.is_some()
            || self.authenticates_callers()
            || !self.grpc_allow.is_empty()
            || self.grpc_allow_file.is_some()
    }

    fn authenticates_callers(&self) -> bool {
        self.grpc_client_ca.is_some() || self.grpc_token_audience.is_some()
    }

    /// Rejects combinations of flags that are not allowed.
    pub(super) fn check(&self, is_standalone: bool) -> Result<(), CommandError> {
        let problem = if self.grpc_on_webhook && !self.authenticates_callers() {
            "--grpc-on-webhook: callers must authenticate; set --grpc-client-ca or \
             --grpc-token-audience"
        } else if !self.authenticates_callers() && !self.grpc_allow.is_empty() {
            "--grpc-allow: callers must authenticate; set --grpc-client-ca or \
             --grpc-token-audience"
        } else if !self.authenticates_callers() && self.grpc_allow_file.is_some() {
            "--grpc-allow-file: callers must authenticate; set --grpc-client-ca or \
             --grpc-token-audience"
        } else if is_standalone && self.grpc_token_audience.is_some() {
            "--grpc-token-audience: tokens can only be reviewed in a cluster; remove --standalone, \
             or set --grpc-client-ca instead"
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(problem.to_owned()))
    }

    /// Binds the listener of the gRPC server; `None` if --grpc-addr is empty, or if no flag asks for
    /// the server and its default address is in use, as by another `serve`.
    pub(super) async fn bind(&self) -> Result<Option<Bound>, CommandError> {
        let addr = self.addr();
        let bound = match addr.strip_prefix(UNIX_SCHEME) {
            _ if addr.is_empty() => return Ok(None),
            Some(path) => Bound::bind_unix(path.as_ref()),
            None => Bound::bind(addr).await,
        };
        let bound = match bound {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !self.is_asked_for() => {
                warn!("no gRPC server: another process uses {addr}; set --grpc-addr to serve gRPC");
                return Ok(None);
            }
            bound => bound.map_err(|error| addr_error("--grpc-addr", addr, error))?,
        };
        if !bound.addr().is_local() && !self.authenticates_callers() {
            return Err(CommandError::Usage(format!(
                "--grpc-addr {addr}: callers from other machines must authenticate; set \
                 --grpc-client-ca or --grpc-token-audience, or use a loopback address or a Unix \
                 socket"
            )));
        }
        Ok(Some(bound))
    }

    /// The CA of callers. A certificate is optional if callers can send a token instead.
    pub(super) fn client_ca(&self) -> Option<ClientCa> {
        let is_required = self.grpc_token_audience.is_none() && !self.grpc_on_webhook;
        self.grpc_client_ca.clone().map(|path| ClientCa {
            flag: "--grpc-client-ca",
            path,
            is_required,
        })
    }

    /// The access control, with a reload of --grpc-allow-file when it changes.
    pub(super) fn access(
        &self,
        cluster: Option<&Cluster>,
        lookup_timeout: Duration,
        schedule: &Schedule,
        registry: &Registry,
    ) -> Result<Arc<Access>, CommandError> {
        let callers = if self.authenticates_callers() {
            let audience = self.grpc_token_audience.clone().zip(cluster);
            Callers::Authenticated(audience.map(|(audience, cluster)| {
                Arc::new(Tokens::new(cluster.client.clone(), audience, lookup_timeout))
            }))
        } else {
            Callers::Anyone
        };
        // Recorded before the first read, so that a change in between causes a reload.
        let files = Files::new(self.grpc_allow_file.iter().cloned());
        let access = Arc::new(Access::new(callers, self.allowed()?));
        if let Some(path) = &self.grpc_allow_file {
            let metrics = ReloadMetrics::register(registry, "grpc_allow");
            let allowed = AllowList { names: self.grpc_allow.clone(), file: path.clone() };
            let reloaded = Arc::clone(&access);
            let reload = move || {
                reloaded.replace_allowed(Some(allowed.read()?));
                Ok::<_, CommandError>(())
            };
            reload::follow("grpc_allow", files, schedule, metrics, reload)
                .map_err(|error| CommandError::failed("cannot start the reload thread", error))?;
        }
        Ok(access)
    }

    /// The names of allowed callers; `None` allows all authenticated callers.
    ///
    /// A list without names is an error at the start. A file that loses its last name later revokes
    /// all callers.
    fn allowed(&self) -> Result<Option<Allowed>, CommandError> {
        let (flag, allowed) = match &self.grpc_allow_file {
            Some(file) => {
                let list = AllowList { names: self.grpc_allow.clone(), file: file.clone() };
                (format!("--grpc-allow-file {}", file.display()), list.read()?)
            }
            None if self.grpc_allow.is_empty() => return Ok(None),
            None => ("--grpc-allow".to_owned(), self.grpc_allow.iter().collect::<Allowed>()),
        };
        if allowed.is_empty() {
            return Err(CommandError::Usage(format!(
                "{flag}: the list of allowed callers has no name, so no caller would be allowed; \
                 add names, or remove the flag or variable to allow all authenticated callers"
            )));
        }
        Ok(Some(allowed))
    }
}

/// Where the names of allowed callers are: in --grpc-allow and --grpc-allow-file.
struct AllowList {
    names: Vec<String>,
    file: PathBuf,
}

impl AllowList {
    /// Reads the file: one name per line; `#` starts a comment.
    fn read(&self) -> Result<Allowed, CommandError> {
        let bytes = input::read_served("--grpc-allow-file", &self.file)?;
        let file = format!("--grpc-allow-file {}", self.file.display());
        let text = input::utf8(&file, bytes)?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        Ok(self.names.iter().map(String::as_str).chain(lines).collect())
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::{super::Args, *};

    fn args(words: &[&str]) -> GrpcArgs {
        let command = Args::augment_args(Command::new("serve").no_binary_name(true));
        let matches = command.try_get_matches_from(words).expect("the words must be flags");
        Args::from_arg_matches(&matches).expect("the flags must fit").grpc
    }

    #[tokio::test]
    async fn the_default_address_may_be_in_use_unless_grpc_is_asked_for() {
        // If this fails, another process has it.
        let taken = std::net::TcpListener::bind(DEFAULT_ADDR);
        assert!(args(&[]).has_listener());
        assert!(args(&[]).bind().await.expect("must not be needed").is_none());
        for asked in [&["--grpc-addr", DEFAULT_ADDR][..], &["--grpc-token-audience", "a"]] {
            let error = args(asked).bind().await.expect_err("must be in use");
            let text = injectd_cluster::causes::with_causes(&error);
            assert!(text.starts_with(&format!("--grpc-addr {DEFAULT_ADDR}: ")), "{text}");
        }
        assert!(args(&["--grpc-addr", ""]).bind().await.expect("must be off").is_none());
        drop(taken);
    }
}
