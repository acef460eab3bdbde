//! The TLS configuration of the servers: certificate, client authentication, reload of both.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use injectd_cluster::causes::with_causes;
use injectd_command::{CommandError, input};
use injectd_telemetry::metrics::{Registry, ReloadMetrics};
use injectd_tls::{ClientAuth, Identity};
use rustls::ServerConfig;
use tokio::{task::spawn_blocking, time::sleep};
use tracing::{info, warn};

use super::certificates::Managed;
use crate::{
    reload::{self, Files, Schedule},
    server::CurrentTls,
};

/// Time after which a managed certificate is loaded again that could not be.
// A managed certificate is announced once: without another attempt the servers would keep the old
// one until the next renewal. What fails is mostly the file of a client CA that is being replaced.
const RELOAD_RETRY: Duration = Duration::from_secs(2);

/// Certificate and key of the servers.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TlsArgs {
    /// PEM file with the certificate chain of the servers, leaf first [default: a self-signed
    /// certificate, generated at startup; required in a cluster]
    #[arg(long, value_name = "FILE", requires = "tls_key", env = "INJECTD_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert", env = "INJECTD_TLS_KEY")]
    tls_key: Option<PathBuf>,
}

/// The CA that signs the certificates of a server's clients.
#[derive(Debug, Clone)]
pub(super) struct ClientCa {
    /// The flag that names the file.
    pub(super) flag: &'static str,
    pub(super) path: PathBuf,
    /// Whether clients without a certificate are refused.
    pub(super) is_required: bool,
}

/// The flags that configure the TLS of a server.
#[derive(Debug, Clone)]
pub(super) struct ServerTls {
    /// Value of the label `what` of the reload metrics.
    pub(super) what: &'static str,
    pub(super) identity: TlsArgs,
    /// The certificate of --manage-certs, in place of files.
    pub(super) managed: Option<Managed>,
    pub(super) client_ca: Option<ClientCa>,
    pub(super) protocols: &'static [&'static str],
}

/// What was read of the files.
struct ReadTls {
    config: Arc<ServerConfig>,
    /// When the certificate expires, in seconds since 1970.
    expires: Option<i64>,
}

impl ServerTls {
    /// Reads the files, and reloads them when they change.
    pub(super) fn follow(
        self,
        schedule: &Schedule,
        registry: &Arc<Registry>,
    ) -> Result<CurrentTls, CommandError> {
        let Self { identity, client_ca, .. } = &self;
        let client_ca = client_ca.as_ref().map(|ca| &ca.path);
        let files = [identity.tls_cert.as_ref(), identity.tls_key.as_ref(), client_ca];
        let files = Files::new(files.into_iter().flatten().cloned());
        let first = self.read()?;
        first.show(&self, registry);
        let tls: CurrentTls = Arc::new(ArcSwap::new(Arc::clone(&first.config)));
        let (what, metrics) = (self.what, ReloadMetrics::register(registry, self.what));
        let (registry, reloaded) = (Arc::clone(registry), Arc::clone(&tls));
        let managed = self.managed.clone();
        // Two reloads at once could store the older configuration last.
        let served = Arc::new(Mutex::new(first));
        let reload = move || {
            let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
            let read = self.read()?;
            if read.has_expired() && !served.has_expired() {
                return Err(CommandError::failed(
                    self.names(),
                    "the certificate has expired, and the one in use has not",
                ));
            }
            read.show(&self, &registry);
            reloaded.store(Arc::clone(&read.config));
            *served = read;
            info!("Updated certificate");
            Ok::<_, CommandError>(())
        };
        if let Some(managed) = managed {
            tokio::spawn(reload_when_managed(managed, reload.clone()));
        }
        reload::follow(what, files, schedule, metrics, reload)
            .map_err(|error| CommandError::failed("cannot start the reload thread", error))?;
        Ok(tls)
    }

    fn read(&self) -> Result<ReadTls, CommandError> {
        // A clone, because the controller that writes the certificate waits while it is borrowed.
        let managed = self.managed.as_ref().and_then(|managed| managed.borrow().clone());
        let identity = match managed {
            Some(leaf) => Identity::from_pem(leaf.chain().as_bytes(), leaf.key().as_bytes())
                .map_err(|error| CommandError::failed("--manage-certs", error))?,
            // With --manage-certs, until there is a certificate, and the process is not ready.
            None => self.identity.read()?,
        };
        let expires = identity.expires();
        let read = |ca: &ClientCa| input::read_served(ca.flag, &ca.path);
        let roots = self.client_ca.as_ref().map(read).transpose()?;
        let client_auth = match (&self.client_ca, &roots) {
            (Some(ClientCa { is_required: true, .. }), Some(roots)) => ClientAuth::Required(roots),
            (Some(_), Some(roots)) => ClientAuth::Offered(roots),
            _ => ClientAuth::None,
        };
        let config = injectd_tls::server_config(identity, client_auth, self.protocols)
            .map_err(|error| CommandError::failed(self.names(), error))?;
        Ok(ReadTls { config, expires })
    }

    /// The flags and their files, for messages.
    fn names(&self) -> String {
        let client_ca = self.client_ca.as_ref().map(|ca| (ca.flag, &ca.path));
        named(self.identity.files().chain(client_ca))
    }
}

impl ReadTls {
    fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| !is_in_future(expires))
    }

    /// Shows until when the certificate that is served is valid.
    fn show(&self, of: &ServerTls, registry: &Registry) {
        if self.has_expired() {
            warn!(files = of.names(), "the certificate has expired: API servers reject it");
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact for long")]
        if let Some(expires) = self.expires {
            registry.set("injectd_certificate_expiry_timestamp_seconds", &[], expires as f64);
        }
    }
}

impl TlsArgs {
    fn read(&self) -> Result<Identity, CommandError> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => {
                let chain = input::read_served("--tls-cert", cert)?;
                let key = input::read_served("--tls-key", key)?;
                Identity::from_pem(&chain, &key)
                    .map_err(|error| CommandError::failed(named(self.files()), error))
            }
            _ => Identity::self_signed().map_err(|error| {
                CommandError::failed("cannot generate a self-signed certificate", error)
            }),
        }
    }

    /// The files that are set, with their flags.
    fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [("--tls-cert", &self.tls_cert), ("--tls-key", &self.tls_key)];
        files.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)))
    }
}

/// Reloads at each new certificate of --manage-certs, until it is loaded.
async fn reload_when_managed<R>(mut managed: Managed, reload: R)
where
    R: Fn() -> Result<(), CommandError> + Clone + Send + 'static,
{
    managed.mark_changed();
    while managed.changed().await.is_ok() {
        if managed.borrow_and_update().is_none() {
            // The servers have one of their own until there is a managed one.
            continue;
        }
        // It reads files.
        while let Ok(Err(error)) = spawn_blocking(reload.clone()).await {
            warn!(
                error = with_causes(&error),
                "the managed certificate cannot be loaded; retrying"
            );
            sleep(RELOAD_RETRY).await;
        }
    }
}

/// Flags and their files, for messages.
fn named<'p>(files: impl Iterator<Item = (&'static str, &'p PathBuf)>) -> String {
    let files = files.map(|(flag, path)| format!("{flag} {}", path.display()));
    files.collect::<Vec<_>>().join(", ")
}

fn is_in_future(seconds: i64) -> bool {
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    u64::try_from(seconds).is_ok_and(|seconds| seconds > now)
}
