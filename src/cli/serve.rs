//! `injectd serve`: the doors, until told to stop.

use std::{
    future::ready,
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::value_parser;
use futures_util::{FutureExt as _, future::join};
use kube::Client;
use tokio::time::interval;
use tracing::info;

use super::{
    CommandError,
    config::{ConfigArgs, Purpose},
    input, version,
};
use crate::{
    admin::Admin,
    cluster::{self, Events, Lookups, Owners, WatchedNamespaces},
    events::Recorder,
    grpc::{Access, Grpc, MAX_AGE, WebhookAndGrpc},
    injector::Injector,
    log,
    metrics::{
        CacheMetrics, ConnectionMetrics, EventMetrics, Registry, ReloadMetrics, ReviewMetrics,
        WatchMetrics,
    },
    observer::{LogStyle, Observer},
    profiler,
    readiness::Readiness,
    reload::{self, Files, Schedule},
    server::{self, Addr, Bound, Door, Limits, Shutdown},
    tls::{HTTP, HTTP2},
    webhook::Webhook,
};

mod grpc;
mod reporter;
mod tls;

use self::{
    grpc::GrpcArgs,
    reporter::Reporter,
    tls::{ClientCa, DoorTls, TlsArgs},
};

/// How often the number of cached entries is told.
const ENTRIES_INTERVAL: Duration = Duration::from_secs(5);

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
    #[command(flatten)]
    tls: TlsArgs,
    /// Certificates as PEM: only clients with one of this CA are answered [default: everybody is]
    #[arg(long, value_name = "FILE", env = "INJECTD_CLIENT_CA")]
    client_ca: Option<PathBuf>,
    /// Threads that answer reviews [default: one for each core, 4 at most]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024), env = "INJECTD_WORKER_THREADS")]
    worker_threads: Option<u16>,
    /// How often files are looked at for changes; SIGHUP reads all files at once
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
    grpc: GrpcArgs,
    #[command(flatten)]
    limits: Limits,
}

pub(super) fn run(args: Args, log_style: LogStyle) -> Result<(), CommandError> {
    let _log =
        log::start(&args.log_level, args.log_format).map_err(|error| args.log_error(&error))?;
    if log_style == LogStyle::Linkerd {
        info!("running version {}", version());
    }
    server::raise_descriptor_limit();
    let runtime = server::runtime(args.worker_threads)
        .map_err(|error| CommandError::failed("cannot start", error))?;
    runtime.block_on(serve(Arc::new(args), log_style))
}

async fn serve(args: Arc<Args>, log_style: LogStyle) -> Result<(), CommandError> {
    let schedule = Schedule::new(args.reload_interval);
    schedule
        .reload_at_hangup()
        .map_err(|error| CommandError::failed("cannot listen for SIGHUP", error))?;
    args.grpc.check(args.standalone)?;
    let registry = Arc::new(Registry::new());
    registry.set("injectd_build_info", &[("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    let reporter = Reporter::new(Arc::clone(&registry), log_style);
    let readiness = Readiness::default();
    let starting = readiness.hold();
    let shutdown = Shutdown::at_signals(readiness.clone())
        .map_err(|error| CommandError::failed("cannot listen for signals", error))?;
    let admin_addr = args.open_admin(&reporter, &readiness, shutdown.clone()).await?;
    let cluster = args.cluster().await?;
    let injector = args.injector(cluster.as_ref(), &schedule, &reporter, &readiness)?;
    let recorder = cluster.as_ref().map(|cluster| {
        let metrics = EventMetrics::register(&registry);
        Recorder::start(Arc::clone(&injector), Events::new(cluster.client.clone()), metrics)
    });
    let observer = |door| Observer {
        metrics: ReviewMetrics::register(&registry, door),
        log_style,
        recorder: recorder.clone(),
    };
    let webhook = Webhook::new(Arc::clone(&injector), &args.limits, observer("webhook"));
    let grpc = if args.grpc.is_served() {
        let timeout = args.lookup_timeout;
        let access = args.grpc.access(cluster.as_ref(), timeout, &schedule, &registry)?;
        let (readiness, shutdown) = (readiness.clone(), shutdown.clone());
        let observer = observer("grpc");
        let injector = Arc::clone(&injector);
        Some(Grpc::new(injector, &args.limits, observer, access, readiness, shutdown))
    } else {
        None
    };
    let tls = args.webhook_tls().follow(&schedule, &registry)?;
    let bound =
        Bound::bind(&args.addr).await.map_err(|error| addr_error("--addr", &args.addr, error))?;
    let grpc_bound = args.grpc.bind().await?;
    let (addr, grpc_addr) = (bound.addr().clone(), grpc_bound.as_ref().map(|it| it.addr().clone()));
    let door = |name, tls| {
        Door::new(tls, args.limits.clone(), ConnectionMetrics::register(&registry, name))
    };
    let grpc_served = match (grpc_bound, &grpc) {
        (Some(bound), Some(grpc)) => {
            let tls = args.grpc_tls().follow(&schedule, &registry)?;
            let grpc = match bound.addr() {
                Addr::Tcp(_) => grpc.clone(),
                // Only this user can open it, and there is no TLS to show a certificate by.
                Addr::Unix(_) => grpc.clone().with_access(Access::default()),
            };
            let door = door("grpc", tls).with_max_age(MAX_AGE);
            bound.serve(door, grpc, shutdown.clone()).boxed()
        }
        _ => ready(()).boxed(),
    };
    let webhook_served = match grpc.filter(|_| args.grpc.grpc_on_webhook) {
        Some(grpc) => {
            let both = WebhookAndGrpc { webhook, grpc };
            bound.serve(door("webhook", tls), both, shutdown).boxed()
        }
        None => bound.serve(door("webhook", tls), webhook, shutdown).boxed(),
    };
    tokio::spawn(tell_entries(injector));
    drop(starting);
    match log_style {
        // Nobody has to read it.
        LogStyle::Line => drop(announce(&addr, grpc_addr.as_ref(), &admin_addr)),
        LogStyle::Linkerd => info!("listening at {}", args.addr),
    }
    join(webhook_served, grpc_served).await;
    Ok(())
}

/// Tells for ever how much is kept.
async fn tell_entries(injector: Arc<Injector>) {
    let mut ticks = interval(ENTRIES_INTERVAL);
    loop {
        ticks.tick().await;
        injector.tell_entries().await;
    }
}

/// What a cluster is asked with.
struct Cluster {
    client: Client,
    lookups: Arc<Lookups>,
}

impl Args {
    fn log_error(&self, error: &log::StartError) -> CommandError {
        let text = format!("--log-level {}: {}", self.log_level, log::with_causes(error));
        CommandError::Usage(text)
    }

    async fn open_admin(
        &self,
        reporter: &Reporter,
        readiness: &Readiness,
        mut shutdown: Shutdown,
    ) -> Result<Addr, CommandError> {
        let addr = &self.metrics_addr;
        if reporter.log_style == LogStyle::Linkerd {
            info!("starting admin server on {addr}");
        }
        if self.enable_pprof {
            profiler::prepare();
        }
        let admin = Admin {
            readiness: readiness.clone(),
            ready_text: Arc::clone(&reporter.ready_text),
            exporter: reporter.registry.exporter(),
            has_profiles: self.enable_pprof,
        };
        // It tells that the process is not ready until the very end.
        let stopped = async move { shutdown.hastened().await };
        let started = admin.start(addr.clone(), stopped).await;
        started.map_err(|error| addr_error("--metrics-addr", addr, error))
    }

    /// The cluster to serve; none standalone.
    async fn cluster(&self) -> Result<Option<Cluster>, CommandError> {
        if self.standalone {
            return Ok(None);
        }
        self.config.must_suit_a_cluster()?;
        if let Some(path) = &self.kubeconfig {
            // The client reads it by its path, for the paths in it; here it is made sure that it can.
            input::read_served("--kubeconfig", path)?;
        }
        let client = cluster::client(self.kubeconfig.as_deref())
            .await
            .map_err(|error| CommandError::failed("serve", error))?;
        let lookups = Lookups::new(self.max_waiting as usize, self.lookup_timeout);
        Ok(Some(Cluster { client, lookups: Arc::new(lookups) }))
    }

    /// An injector that takes over changed values and trust roots.
    fn injector(
        self: &Arc<Self>,
        cluster: Option<&Cluster>,
        schedule: &Schedule,
        reporter: &Reporter,
        readiness: &Readiness,
    ) -> Result<Arc<Injector>, CommandError> {
        let registry = &*reporter.registry;
        let files = Files::new(self.config.files());
        let injector = match cluster {
            None => self.config.standalone_injector(&[], Purpose::Serve)?,
            Some(cluster) => self.cluster_injector(cluster, registry, readiness)?,
        };
        let injector = Arc::new(injector.counting(CacheMetrics::register(registry, "templates")));
        reporter.report(&injector.snapshot());
        let metrics = ReloadMetrics::register(registry, "config");
        let (args, reporter) = (Arc::clone(self), reporter.clone());
        let reloaded = Arc::clone(&injector);
        let reload = move || {
            let generation = reloaded.snapshot().generation + 1;
            let snapshot = args.config.snapshot(generation, Purpose::Serve)?;
            reloaded.replace_snapshot(snapshot);
            reporter.report(&reloaded.snapshot());
            Ok::<_, CommandError>(())
        };
        reload::follow("config", files, schedule, metrics, reload)
            .map_err(|error| CommandError::failed("cannot follow files", error))?;
        Ok(injector)
    }

    /// An injector for a cluster; the process is ready once the namespaces are known.
    fn cluster_injector(
        &self,
        cluster: &Cluster,
        registry: &Registry,
        readiness: &Readiness,
    ) -> Result<Injector, CommandError> {
        let Cluster { client, lookups } = cluster;
        let metrics = WatchMetrics::register(registry, "namespaces");
        let namespaces = WatchedNamespaces::new(client.clone(), Arc::clone(lookups), metrics);
        let namespaces = Arc::new(namespaces);
        let metrics = CacheMetrics::register(registry, "owners");
        let owners = Owners::new(client.clone(), Arc::clone(lookups), metrics);
        let injector = self.config.cluster_injector(Arc::clone(&namespaces), Arc::new(owners))?;
        info!("waiting for caches to sync");
        tokio::spawn(namespaces.follow(readiness.hold()));
        Ok(injector)
    }

    fn webhook_tls(&self) -> DoorTls {
        let own = self.client_ca.clone().map(|path| ClientCa {
            flag: "--client-ca",
            path,
            is_required: true,
        });
        let grpc = self.grpc.client_ca().filter(|_| self.grpc.grpc_on_webhook);
        let (identity, client_ca) = (self.tls.clone(), own.or(grpc));
        DoorTls { what: "tls", identity, client_ca, protocols: &HTTP }
    }

    fn grpc_tls(&self) -> DoorTls {
        let (identity, client_ca) = (self.tls.clone(), self.grpc.client_ca());
        DoorTls { what: "grpc_tls", identity, client_ca, protocols: &HTTP2 }
    }
}

fn addr_error(flag: &str, addr: &str, error: io::Error) -> CommandError {
    let flag = format!("{flag} {addr}");
    if error.kind() == io::ErrorKind::InvalidInput {
        return CommandError::Usage(format!("{flag}: {error}; expected HOST:PORT or :PORT"));
    }
    CommandError::failed(flag, error)
}

/// Tells where the doors are and how to try the webhook.
fn announce(addr: &Addr, grpc: Option<&Addr>, admin: &Addr) -> io::Result<()> {
    let url = match addr {
        Addr::Tcp(addr) if addr.ip().is_unspecified() => format!("localhost:{}", addr.port()),
        addr => addr.to_string(),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "webhook door: {addr} (TLS 1.3, HTTP/1.1 and HTTP/2)")?;
    if let Some(grpc) = grpc {
        let tls = if matches!(grpc, Addr::Unix(_)) { "no TLS" } else { "TLS 1.3" };
        writeln!(out, "gRPC door: {grpc} ({tls}, injectd.v1.Injector)")?;
    }
    writeln!(out, "admin door: {admin} (/ping, /live, /ready, /metrics)")?;
    writeln!(out, "try it: inject a pod and read the patch")?;
    writeln!(out, "  curl -sk https://{url}/ -d '{EXAMPLE_REVIEW}' \\")?;
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
