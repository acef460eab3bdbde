//! A server process: its configuration, its services and its listeners, in this order.

use std::{future::ready, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::join};
use injectd_cluster::{ClientOptions, Events, LookupLimits, sources::Sources};
use injectd_command::{CommandError, config::Purpose, input};
use injectd_controllers::audit::metrics::AuditMetrics;
use injectd_profiles::{Injector, Profiles, template_plane::KnownTemplates};
use injectd_telemetry::{
    metrics::{
        CacheMetrics, ConnectionMetrics, EventMetrics, Registry, ReloadMetrics, ReviewMetrics,
        TemplateMetrics,
    },
    readiness::Readiness,
    recent_errors::RecentErrors,
};
use injectd_tls::{HTTP, HTTP2};
use kube::Client;
use tokio::{sync::watch, task::JoinHandle, time::interval};
use tracing::info;

use super::{
    Args, addr_error,
    audit::Audit,
    certificates::Managed,
    reporter::Reporter,
    tls::{ClientCa, ServerTls},
};
use crate::{
    admin::Admin,
    drop_in::{Counters, IstioCounters},
    events::Recorder,
    grpc::{Access, Grpc, Life, MAX_AGE},
    observer::{LogStyle, Observer},
    profiler,
    reload::{self, Files, Reloaded, Schedule},
    server::{
        Addr, Bound, CurrentTls, Descriptors, EvaluationTurns, Limits, OnePort, Server, Shutdown,
    },
    standalone::Standalone,
    webhook::Webhook,
};

/// Interval between updates of the cache-size gauges.
// Shorter than the interval at which Prometheus reads them, usually 15 s or more.
const CACHE_SIZES_INTERVAL: Duration = Duration::from_secs(5);

/// The parts that all servers of the process share.
pub(super) struct Process {
    pub(super) args: Arc<Args>,
    limits: Limits,
    pub(super) readiness: Readiness,
    schedule: Schedule,
    pub(super) reporter: Reporter,
    pub(super) shutdown: Shutdown,
    descriptors: Descriptors,
    turns: EvaluationTurns,
    /// Errors of sidecar templates, of all servers.
    pub(super) template_errors: Arc<RecentErrors>,
}

/// A cluster's client, and the limits of lookups in the cluster.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) lookups: Arc<LookupLimits>,
}

/// The meshes of the process.
pub(super) struct Started {
    pub(super) profiles: Profiles,
    /// Becomes true once Istio's revisions were loaded.
    pub(super) is_loaded: Option<watch::Receiver<bool>>,
    /// The templates of the cluster, if they are served.
    pub(super) known_templates: Option<watch::Receiver<Arc<KnownTemplates>>>,
}

/// The services of the process, without connections.
pub(super) struct Services {
    webhook: Webhook,
    grpc: Option<Grpc>,
}

/// Listeners and their TLS. Connections wait in the backlog until a service answers them.
pub(super) struct Listeners {
    pub(super) webhook: Bound,
    webhook_tls: CurrentTls,
    pub(super) grpc: Option<Bound>,
    grpc_tls: Option<CurrentTls>,
}

impl Process {
    pub(super) fn new(
        args: Args,
        log_style: LogStyle,
        descriptors: Descriptors,
    ) -> Result<Self, CommandError> {
        let schedule = Schedule::new(args.reload_interval);
        schedule
            .reload_at_hangup()
            .map_err(|error| CommandError::failed("cannot install the SIGHUP handler", error))?;
        let registry = Arc::new(Registry::new());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        registry.set("injectd_build_info", &[("version", version)], 1.0);
        let reporter = Reporter::new(registry, log_style);
        let readiness = Readiness::default();
        let shutdown = Shutdown::at_signals(readiness.clone())
            .map_err(|error| CommandError::failed("cannot install the signal handlers", error))?;
        let limits = Limits::from(&args.limits);
        let turns = EvaluationTurns::of_runtime(&limits);
        if args.config.is_istio() || args.config.is_templates() {
            turns.register(&reporter.registry);
        }
        Ok(Self {
            args: Arc::new(args),
            limits,
            readiness,
            schedule,
            reporter,
            shutdown,
            descriptors,
            turns,
            template_errors: Arc::default(),
        })
    }

    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.reporter.registry
    }

    pub(super) fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Starts the admin server, which answers probes from now on.
    pub(super) async fn open_admin(&self) -> Result<Addr, CommandError> {
        let addr = &self.args.metrics_addr;
        if self.reporter.log_style == LogStyle::Linkerd {
            info!("starting admin server on {addr}");
        }
        let admin = Admin {
            readiness: self.readiness.clone(),
            turns: self.turns.clone(),
            ready_texts: Arc::clone(&self.reporter.ready_texts),
            exporter: self.registry().exporter(),
            has_profiles: self.args.enable_pprof && profiler::prepare(),
            max_connections: self.descriptors.admin_connections(),
        };
        let mut shutdown = self.shutdown.clone();
        // Until the process exits or a second signal arrives, probes are answered "not ready".
        let stopped = async move { shutdown.forced().await };
        let started = admin.start(addr.clone(), stopped).await;
        started.map_err(|error| addr_error("--metrics-addr", addr, error))
    }

    /// The cluster; `None` with --standalone.
    pub(super) async fn cluster(&self) -> Result<Option<Cluster>, CommandError> {
        if self.args.standalone {
            return Ok(None);
        }
        self.args.config.must_suit_a_cluster()?;
        if let Some(path) = &self.args.kubeconfig {
            // The client reads the file again, to resolve relative paths in it. This read rejects
            // pipes and devices, which could block the client.
            input::read_served("--kubeconfig", path)?;
        }
        let kubeconfig = self.args.kubeconfig.as_deref();
        let client =
            injectd_cluster::client(ClientOptions { kubeconfig, ..ClientOptions::default() })
                .await
                .map_err(|error| {
                    CommandError::failed("cannot create the Kubernetes client", error)
                })?;
        let lookups = LookupLimits::new(self.args.max_waiting as usize, self.args.lookup_timeout);
        Ok(Some(Cluster { client, lookups: Arc::new(lookups) }))
    }

    /// The meshes, which reload their configuration when it changes.
    pub(super) fn profiles(&self, cluster: Option<&Cluster>) -> Result<Started, CommandError> {
        let config = &self.args.config;
        let sources =
            cluster.filter(|_| self.watches_namespaces()).map(|cluster| self.sources(cluster));
        let linkerd = match (config.is_linkerd(), &sources) {
            (false, _) => None,
            (true, sources) => Some(self.linkerd(sources.clone())?),
        };
        let istio = match cluster {
            _ if !config.is_istio() => None,
            None => Some(self.standalone_istio()?),
            Some(cluster) => {
                let none = || Sources::from(Standalone::default());
                Some(self.cluster_istio(&cluster.client, sources.clone().unwrap_or_else(none))?)
            }
        };
        let mut known_templates = None;
        let templates = match (cluster, &sources) {
            _ if !config.is_templates() => None,
            (Some(cluster), Some(sources)) if self.args.templates.are_of_cluster() => {
                let (injector, known) = self.cluster_templates(&cluster.client, sources.clone());
                known_templates = Some(known);
                Some(injector)
            }
            _ => Some(self.templates(sources.clone())?),
        };
        if let Some(sources) = &sources {
            self.watch_namespaces(sources);
        }
        let is_loaded = istio.as_ref().map(|istio| istio.is_loaded.clone());
        let istio = istio.map(|istio| istio.revisions);
        let profiles = Profiles { linkerd, istio, templates };
        Ok(Started { profiles, is_loaded, known_templates })
    }

    /// Whether a mesh reads labels or annotations of namespaces.
    fn watches_namespaces(&self) -> bool {
        let config = &self.args.config;
        config.is_linkerd() || config.is_on_openshift() || config.is_templates()
    }

    pub(super) fn follow_config<R: Into<Reloaded>>(
        &self,
        what: &'static str,
        files: Files,
        reload: impl FnMut() -> Result<R, CommandError> + Send + 'static,
    ) -> Result<(), CommandError> {
        let metrics = ReloadMetrics::register(self.registry(), what);
        reload::follow(what, files, &self.schedule, metrics, reload)
            .map_err(|error| CommandError::failed("cannot start the reload thread", error))
    }

    /// An injector that reloads values and trust roots when their files change; without sources, one
    /// without a cluster.
    fn linkerd(&self, sources: Option<Sources>) -> Result<Arc<Injector>, CommandError> {
        let config = &self.args.config;
        let files = Files::new(config.files());
        let injector = Arc::new(match sources {
            None => config.standalone_injector(&[], Purpose::Serve)?,
            Some(sources) => config.injector(sources, Purpose::Serve)?,
        });
        self.reporter.report(&injector.mesh());
        let (args, reporter) = (Arc::clone(&self.args), self.reporter.clone());
        let reloaded = Arc::clone(&injector);
        self.follow_config("config", files, move || {
            let generation = reloaded.mesh().configuration.generation + 1;
            let snapshot = args.config.snapshot(generation, Purpose::Serve)?;
            reloaded.replace_mesh(snapshot);
            reporter.report(&reloaded.mesh());
            Ok(())
        })?;
        Ok(injector)
    }

    pub(super) fn services(
        &self,
        cluster: Option<&Cluster>,
        profiles: &Profiles,
    ) -> Result<Services, CommandError> {
        let (args, registry) = (&self.args, self.registry());
        let recorder = match (cluster, &profiles.linkerd) {
            (Some(cluster), Some(injector)) => {
                let metrics = EventMetrics::register(registry);
                let events = Events::new(cluster.client.clone());
                Some(Recorder::start(injector.lookups().clone(), events, metrics))
            }
            _ => None,
        };
        let reasons = profiles.skip_reasons();
        let observer = |server| Observer {
            metrics: ReviewMetrics::register(registry, server, &reasons),
            linkerd: profiles.linkerd.as_ref().map(|_| Counters::new(registry)),
            istio: profiles.istio.as_ref().map(|_| IstioCounters::register(registry)),
            templates: profiles
                .templates
                .as_ref()
                .map(|_| TemplateMetrics::new(registry, Arc::clone(&self.template_errors))),
            log_style: self.reporter.log_style,
            recorder: recorder.clone(),
        };
        let turns = || self.turns.clone();
        let webhook = Webhook::new(profiles.clone(), &self.limits, turns(), observer("webhook"));
        if !args.grpc.is_served() {
            return Ok(Services { webhook, grpc: None });
        }
        let access = args.grpc.access(cluster, args.lookup_timeout, &self.schedule, registry)?;
        let (readiness, shutdown) = (self.readiness.clone(), self.shutdown.clone());
        let life = Life { readiness, shutdown, turns: turns() };
        let observer = observer("grpc");
        let grpc = Grpc::new(profiles.clone(), &self.limits, observer, access, life);
        Ok(Services { webhook, grpc: Some(grpc) })
    }

    /// Starts to manage the certificates, if the flags ask for it.
    pub(super) fn manage_certificates(
        &self,
        cluster: Option<&Cluster>,
    ) -> Option<(Managed, JoinHandle<()>)> {
        let args = self.args.certificates.clone();
        let client = cluster.filter(|_| args.is_on())?.client.clone();
        let hold = self.readiness.hold();
        Some(args.start(client, self.registry(), hold, self.shutdown.clone()))
    }

    /// Starts to watch the webhook configurations of the process, if they are known.
    pub(super) fn watch_webhooks(&self, cluster: Option<&Cluster>) {
        if let Some(Cluster { client, .. }) = cluster {
            let args = &self.args.certificates;
            let managed = self.args.webhook_scope.managed();
            args.watch_webhooks(client.clone(), managed, self.registry(), self.shutdown.clone());
        }
    }

    /// Reads certificates and binds the addresses.
    pub(super) async fn listen(&self, managed: Option<Managed>) -> Result<Listeners, CommandError> {
        let (args, schedule, registry) = (&self.args, &self.schedule, self.registry());
        let webhook_tls = self.webhook_tls(managed.clone()).follow(schedule, registry)?;
        let webhook = Bound::bind(&args.addr).await;
        let webhook = webhook.map_err(|error| addr_error("--addr", &args.addr, error))?;
        let grpc = args.grpc.bind().await?;
        let grpc_tls = match &grpc {
            Some(_) => Some(self.grpc_tls(managed).follow(schedule, registry)?),
            None => None,
        };
        Ok(Listeners { webhook, webhook_tls, grpc, grpc_tls })
    }

    fn webhook_tls(&self, managed: Option<Managed>) -> ServerTls {
        let args = &self.args;
        let own = args.client_ca.clone().map(|path| ClientCa {
            flag: "--client-ca",
            path,
            is_required: true,
        });
        // --client-ca comes first: it is required of each client, the one for gRPC only offered.
        let grpc = args.grpc.client_ca().filter(|_| args.grpc.grpc_on_webhook);
        let (identity, client_ca) = (args.tls.clone(), own.or(grpc));
        ServerTls { what: "tls", identity, managed, client_ca, protocols: &HTTP }
    }

    fn grpc_tls(&self, managed: Option<Managed>) -> ServerTls {
        let (identity, client_ca) = (self.args.tls.clone(), self.args.grpc.client_ca());
        ServerTls { what: "grpc_tls", identity, managed, client_ca, protocols: &HTTP2 }
    }

    /// Serves until shutdown.
    pub(super) async fn serve(&self, services: Services, listeners: Listeners) {
        let Services { webhook, grpc } = services;
        let server = |name, tls| {
            let metrics = ConnectionMetrics::register(self.registry(), name);
            Server::new(tls, self.limits.clone(), metrics)
        };
        let shutdown = || self.shutdown.clone();
        let grpc_served = match (listeners.grpc.zip(listeners.grpc_tls), &grpc) {
            (Some((bound, tls)), Some(grpc)) => {
                let grpc = match bound.addr() {
                    Addr::Tcp(_) => grpc.clone(),
                    // Only this user can open the socket. Without TLS there is no client
                    // certificate.
                    Addr::Unix(_) => grpc.clone().with_access(Access::default()),
                };
                bound.serve(server("grpc", tls).with_max_age(MAX_AGE), grpc, shutdown()).boxed()
            }
            _ => ready(()).boxed(),
        };
        let (bound, server) = (listeners.webhook, server("webhook", listeners.webhook_tls));
        let webhook_served = match grpc.filter(|_| self.args.grpc.grpc_on_webhook) {
            Some(grpc) => bound.serve(server, OnePort { webhook, grpc }, shutdown()).boxed(),
            None => bound.serve(server, webhook, shutdown()).boxed(),
        };
        join(webhook_served, grpc_served).await;
    }

    /// Audits and restarts until the process ends, if the flags ask for it. Not in the task that
    /// accepts connections.
    pub(super) fn audit(&self, cluster: Option<&Cluster>, profiles: Profiles) -> JoinHandle<()> {
        let (audit, lease) = (self.args.audit.clone(), self.args.audit_lease());
        let metrics = AuditMetrics::new(Arc::clone(self.registry()));
        let (client, shutdown) =
            (cluster.map(|cluster| cluster.client.clone()), self.shutdown.clone());
        tokio::spawn(async move {
            if let Some(client) = client.filter(|_| audit.is_on()) {
                audit.run(Audit { client, profiles, metrics }, lease, shutdown).await;
            }
        })
    }

    /// Updates the cache-size gauges until the process exits.
    pub(super) fn cache_sizes(&self, profiles: Profiles) -> impl Future<Output = ()> + use<> {
        let templates = CacheMetrics::register(self.registry(), "templates");
        async move {
            let mut ticks = interval(CACHE_SIZES_INTERVAL);
            loop {
                ticks.tick().await;
                templates.keep(profiles.template_count());
                if let Some(sources) = profiles.sources() {
                    sources.record_cache_sizes();
                }
            }
        }
    }
}
