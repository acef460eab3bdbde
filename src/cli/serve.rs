//! `injectd serve`: the doors, until told to stop.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use kube::Client;
use rustls::ServerConfig;
use tracing::{info, warn};

use super::{
    CommandError,
    config::{Bundle, ConfigArgs},
    input,
};
use crate::{
    admin::Admin,
    cluster::{self, Events, Lookups, Owners, WatchedNamespaces},
    events::Recorder,
    injector::Injector,
    log,
    metrics::{
        CacheMetrics, ConnectionMetrics, EventMetrics, Registry, ReloadMetrics, ReviewMetrics,
        WatchMetrics,
    },
    readiness::Readiness,
    reload::{self, Files},
    server::{self, Bound, Door, Limits, Shutdown},
    tls::{self, Identity},
    webhook::{LogStyle, Webhook},
};

/// Serve the admission webhook
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Serve without a cluster, on values and objects from files
    #[arg(long, env = "INJECTD_STANDALONE")]
    standalone: bool,
    /// Cluster to serve [default: that of the pod it runs in, else $KUBECONFIG's]
    #[arg(long, value_name = "FILE", env = "INJECTD_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Reviews that may wait for the API server; more are answered 503
    #[arg(long, value_name = "N", default_value = "1000", env = "INJECTD_MAX_WAITING")]
    max_waiting: u32,
    /// How long a review waits for one answer of the API server
    #[arg(long, value_name = "DURATION", default_value = "4s", value_parser = server::parse_duration, env = "INJECTD_LOOKUP_TIMEOUT")]
    lookup_timeout: Duration,
    /// Address of the webhook, as Go writes it: :8443 is every address of the machine
    #[arg(long, value_name = "ADDR", default_value = ":8443")]
    addr: String,
    /// Address of the admin door: /ping, /live, /ready and /metrics, without TLS
    #[arg(long, value_name = "ADDR", default_value = ":9995")]
    metrics_addr: String,
    /// Certificate chain of the webhook, PEM, leaf first [default: made at start, self-signed]
    #[arg(long, value_name = "FILE", requires = "tls_key", env = "INJECTD_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", env = "INJECTD_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Certificates as PEM: only clients with one of this CA are answered [default: everybody is]
    #[arg(long, value_name = "FILE", env = "INJECTD_CLIENT_CA")]
    client_ca: Option<PathBuf>,
    /// How often files are looked at for changes
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = server::parse_duration, env = "INJECTD_RELOAD_INTERVAL")]
    reload_interval: Duration,
    /// Offer CPU profiles at /debug/pprof/profile of the admin door
    #[arg(long, env = "INJECTD_ENABLE_PPROF")]
    enable_pprof: bool,
    /// A level (error, warn, info, debug, trace), or levels by module: info,hyper=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "INJECTD_LOG")]
    log_level: String,
    /// Form of the log's lines: plain or json
    #[arg(long, value_name = "FORMAT", default_value = "plain", env = "INJECTD_LOG_FORMAT")]
    log_format: log::Format,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    limits: Limits,
}

pub(super) fn run(args: Args, log_style: LogStyle) -> Result<(), CommandError> {
    let _log =
        log::start(&args.log_level, args.log_format).map_err(|error| args.log_error(&error))?;
    if log_style == LogStyle::Linkerd {
        info!("running version {}", env!("CARGO_PKG_VERSION"));
    }
    server::raise_descriptor_limit();
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| CommandError::failed("cannot start", error))?;
    runtime.block_on(serve(Arc::new(args), log_style))
}

async fn serve(args: Arc<Args>, log_style: LogStyle) -> Result<(), CommandError> {
    let registry = Arc::new(Registry::new());
    registry.set("injectd_build_info", &[("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    let readiness = Readiness::default();
    let starting = readiness.hold();
    let shutdown = Shutdown::at_signals(readiness.clone())
        .map_err(|error| CommandError::failed("cannot listen for signals", error))?;
    let admin_addr = args.open_admin(&registry, &readiness, shutdown.clone(), log_style).await?;
    let client = args.client().await?;
    let injector = args.injector(client.clone(), &registry, &readiness)?;
    let recorder = client.map(|client| {
        let metrics = EventMetrics::register(&registry);
        Recorder::start(Arc::clone(&injector), Events::new(client), metrics)
    });
    let tls = args.tls(&registry)?;
    let bound =
        Bound::bind(&args.addr).await.map_err(|error| addr_error("--addr", &args.addr, error))?;
    match log_style {
        // Nobody has to read it.
        LogStyle::Line => drop(announce(bound.local_addr(), admin_addr)),
        LogStyle::Linkerd => info!("listening at {}", args.addr),
    }
    let metrics = ReviewMetrics::register(&registry, "webhook");
    let webhook = Webhook::new(injector, &args.limits, metrics, log_style, recorder);
    let metrics = ConnectionMetrics::register(&registry, "webhook");
    let door = Door::new(tls, args.limits.clone(), metrics);
    drop(starting);
    bound.serve(door, webhook, shutdown).await;
    Ok(())
}

impl Args {
    fn log_error(&self, error: &log::StartError) -> CommandError {
        let text = format!("--log-level {}: {}", self.log_level, log::with_causes(error));
        CommandError::Usage(text)
    }

    async fn open_admin(
        &self,
        registry: &Registry,
        readiness: &Readiness,
        mut shutdown: Shutdown,
        log_style: LogStyle,
    ) -> Result<SocketAddr, CommandError> {
        let addr = &self.metrics_addr;
        if log_style == LogStyle::Linkerd {
            info!("starting admin server on {addr}");
        }
        let bound =
            Bound::bind(addr).await.map_err(|error| addr_error("--metrics-addr", addr, error))?;
        let local_addr = bound.local_addr();
        let admin = Admin {
            readiness: readiness.clone(),
            exporter: registry.exporter(),
            has_profiles: self.enable_pprof,
        };
        // It tells that the process is not ready until the very end.
        let stopped = async move { shutdown.hastened().await };
        tokio::spawn(admin.serve(bound, stopped));
        Ok(local_addr)
    }

    /// A client for the cluster to serve; none standalone.
    async fn client(&self) -> Result<Option<Client>, CommandError> {
        if self.standalone {
            return Ok(None);
        }
        self.config.must_suit_a_cluster()?;
        let client = cluster::client(self.kubeconfig.as_deref()).await;
        client.map(Some).map_err(|error| CommandError::failed("serve", error))
    }

    /// An injector that takes over changed values and trust roots.
    fn injector(
        self: &Arc<Self>,
        client: Option<Client>,
        registry: &Arc<Registry>,
        readiness: &Readiness,
    ) -> Result<Arc<Injector>, CommandError> {
        let files = Files::new(self.config.files());
        let injector = match client {
            None => self.config.standalone_injector(&[], Bundle::Certificates)?,
            Some(client) => self.cluster_injector(client, registry, readiness)?,
        };
        let injector = Arc::new(injector.counting(CacheMetrics::register(registry, "templates")));
        tell_config(registry, &injector);
        let metrics = ReloadMetrics::register(registry, "config");
        let (args, registry) = (Arc::clone(self), Arc::clone(registry));
        let reloaded = Arc::clone(&injector);
        let reload = move || {
            let generation = reloaded.snapshot().generation + 1;
            let snapshot = args.config.snapshot(generation, Bundle::Certificates)?;
            reloaded.replace_snapshot(snapshot);
            tell_config(&registry, &reloaded);
            Ok::<_, CommandError>(())
        };
        reload::follow("config", files, self.reload_interval, metrics, reload)
            .map_err(|error| CommandError::failed("cannot follow files", error))?;
        Ok(injector)
    }

    /// An injector for a cluster; the process is ready once the namespaces are known.
    fn cluster_injector(
        &self,
        client: Client,
        registry: &Registry,
        readiness: &Readiness,
    ) -> Result<Injector, CommandError> {
        let lookups = Arc::new(Lookups::new(self.max_waiting as usize, self.lookup_timeout));
        let metrics = WatchMetrics::register(registry, "namespaces");
        let namespaces = WatchedNamespaces::new(client.clone(), Arc::clone(&lookups), metrics);
        let namespaces = Arc::new(namespaces);
        let owners = Owners::new(client, lookups, CacheMetrics::register(registry, "owners"));
        let injector = self.config.cluster_injector(Arc::clone(&namespaces), Arc::new(owners))?;
        info!("waiting for caches to sync");
        tokio::spawn(namespaces.follow(readiness.hold()));
        Ok(injector)
    }

    /// TLS that takes over a changed certificate and CA of clients.
    fn tls(self: &Arc<Self>, registry: &Arc<Registry>) -> Result<server::CurrentTls, CommandError> {
        let files = [&self.tls_cert, &self.tls_key, &self.client_ca];
        let files = Files::new(files.into_iter().flatten().cloned());
        let tls: server::CurrentTls = Arc::new(ArcSwap::new(self.server_config(registry)?));
        let metrics = ReloadMetrics::register(registry, "tls");
        let (args, registry, reloaded) = (Arc::clone(self), Arc::clone(registry), Arc::clone(&tls));
        let reload = move || {
            reloaded.store(args.server_config(&registry)?);
            info!("Updated certificate");
            Ok::<_, CommandError>(())
        };
        reload::follow("tls", files, self.reload_interval, metrics, reload)
            .map_err(|error| CommandError::failed("cannot follow files", error))?;
        Ok(tls)
    }

    fn server_config(&self, registry: &Registry) -> Result<Arc<ServerConfig>, CommandError> {
        let identity = self.identity()?;
        let expires = identity.expires();
        let client_ca = self.client_ca.as_deref().map(input::read).transpose()?;
        let config = tls::server_config(identity, client_ca.as_deref())
            .map_err(|error| CommandError::failed(self.tls_files(), error))?;
        if let Some(expires) = expires {
            if !is_in_future(expires) {
                warn!(
                    files = self.tls_files(),
                    "the certificate has expired: API servers refuse it"
                );
            }
            #[expect(
                clippy::cast_precision_loss,
                reason = "seconds since 1970 are exact for long"
            )]
            registry.set("injectd_certificate_expiry_timestamp_seconds", &[], expires as f64);
        }
        Ok(config)
    }

    fn identity(&self) -> Result<Identity, CommandError> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Identity::from_pem(&input::read(cert)?, &input::read(key)?)
                .map_err(|error| CommandError::failed(self.tls_files(), error)),
            _ => Identity::self_signed()
                .map_err(|error| CommandError::failed("cannot make a certificate", error)),
        }
    }

    /// What files are called in messages.
    fn tls_files(&self) -> String {
        let flags = [
            ("--tls-cert", &self.tls_cert),
            ("--tls-key", &self.tls_key),
            ("--client-ca", &self.client_ca),
        ];
        let given = flags.into_iter().filter_map(|(flag, path)| {
            path.as_ref().map(|path| format!("{flag} {}", path.display()))
        });
        given.collect::<Vec<_>>().join(", ")
    }
}

fn is_in_future(seconds: i64) -> bool {
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    u64::try_from(seconds).is_ok_and(|seconds| seconds > now)
}

#[expect(clippy::cast_precision_loss, reason = "configurations are few")]
fn tell_config(registry: &Registry, injector: &Injector) {
    let snapshot = injector.snapshot();
    registry.set("injectd_config_generation", &[], snapshot.generation as f64);
    registry.set_info("injectd_config_info", "linkerd_release", snapshot.release.to_string());
}

fn addr_error(flag: &str, addr: &str, error: io::Error) -> CommandError {
    let flag = format!("{flag} {addr}");
    if error.kind() == io::ErrorKind::InvalidInput {
        return CommandError::Usage(format!("{flag}: {error}; expected HOST:PORT or :PORT"));
    }
    CommandError::failed(flag, error)
}

/// Tells where the door is and how to try it.
fn announce(addr: SocketAddr, admin: SocketAddr) -> io::Result<()> {
    let host = if addr.ip().is_unspecified() { "localhost".into() } else { addr.ip().to_string() };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let url = format!("https://{host}:{}/", addr.port());
    let mut out = io::stdout().lock();
    writeln!(out, "webhook door: {addr} (TLS 1.3, HTTP/1.1 and HTTP/2)")?;
    writeln!(out, "admin door: {admin} (/ping, /live, /ready, /metrics)")?;
    writeln!(out, "try it: inject a pod and read the patch")?;
    writeln!(out, "  curl -sk {url} -d '{EXAMPLE_REVIEW}' \\")?;
    writeln!(out, "    | sed 's/.*\"patch\":\"\\([^\"]*\\)\".*/\\1/' | base64 -d")?;
    out.flush()
}

/// A review of a pod that asks for its sidecar.
const EXAMPLE_REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","#,
    r#""kind":{"version":"v1","kind":"Pod"},"namespace":"default","object":{"metadata":"#,
    r#"{"name":"web","annotations":{"linkerd.io/inject":"enabled"}},"spec":{"containers":"#,
    r#"[{"name":"web","image":"nginx","ports":[{"containerPort":80}]}]}}}}"#,
);
