//! `injectd serve`: runs the servers until a signal stops them.

#![deny(clippy::disallowed_types, reason = "no review makes a tree")]

use std::{io, path::PathBuf, time::Duration};

use clap::value_parser;
use injectd_cluster::{causes::with_causes, lease::LeaseOptions};
use injectd_command::{CommandError, config::ConfigArgs, units::parse_duration, version};
use injectd_k8s::names::{is_dns_label, is_dns1035_label};
use injectd_profiles::control_plane::ISTIO_NAMESPACE;
use injectd_telemetry::log;
use tracing::{info, warn};

use crate::{
    observer::LogStyle,
    server::{self, Descriptors},
};

mod announce;
mod audit;
mod certificates;
mod grpc;
mod istio;
mod limits;
mod lookups;
mod pod;
mod process;
mod reporter;
mod template_keeper;
mod template_watch;
mod templates;
mod tls;
mod webhook_scope;

use self::{
    audit::AuditArgs,
    certificates::CertificateArgs,
    grpc::GrpcArgs,
    limits::LimitArgs,
    process::{Process, Started},
    templates::TemplateArgs,
    tls::TlsArgs,
    webhook_scope::WebhookScopeArgs,
};

/// Run the admission webhook server
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run without a cluster, with values and objects from files
    #[arg(long, env = "INJECTD_STANDALONE")]
    standalone: bool,
    /// Path to a kubeconfig file [default: $KUBECONFIG or ~/.kube/config, else the in-cluster
    /// configuration]
    #[arg(long, value_name = "FILE", env = "INJECTD_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of Istio's ConfigMaps, for --mesh istio in a cluster [default: $POD_NAMESPACE, or
    /// istio-system]
    #[arg(long, value_name = "NAMESPACE")]
    istio_namespace: Option<String>,
    /// Maximum number of reviews that wait for lookups in the API server at the same time. Further
    /// reviews are rejected with 503
    #[arg(long, value_name = "N", default_value = "1000", env = "INJECTD_MAX_WAITING")]
    max_waiting: u32,
    /// Maximum time that a review waits for one lookup in the API server
    #[arg(long, value_name = "DURATION", default_value = "4s", value_parser = parse_duration, env = "INJECTD_LOOKUP_TIMEOUT")]
    lookup_timeout: Duration,
    /// Address of the webhook server: HOST:PORT, or :PORT for all interfaces
    #[arg(long, value_name = "ADDR", default_value = ":8443")]
    addr: String,
    /// Address of the admin server, which serves /ping, /live, /ready and /metrics without TLS
    #[arg(long, value_name = "ADDR", default_value = ":9995")]
    metrics_addr: String,
    #[command(flatten)]
    tls: TlsArgs,
    /// PEM file with a CA bundle. If set, the webhook server only accepts clients with a
    /// certificate signed by one of these CAs [default: no client authentication]
    #[arg(long, value_name = "FILE", env = "INJECTD_CLIENT_CA")]
    client_ca: Option<PathBuf>,
    /// Number of threads that answer reviews [default: one per CPU core, at most 4]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024), env = "INJECTD_WORKER_THREADS")]
    worker_threads: Option<u16>,
    /// Interval between checks for changed files. SIGHUP reloads all files immediately
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_duration, env = "INJECTD_RELOAD_INTERVAL")]
    reload_interval: Duration,
    /// Serve CPU profiles at /debug/pprof/profile on the admin server
    #[arg(long, env = "INJECTD_ENABLE_PPROF")]
    enable_pprof: bool,
    /// Log level: error, warn, info, debug or trace; or a list with levels by module, such as
    /// info,hyper=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "INJECTD_LOG")]
    log_level: String,
    /// Log format
    #[arg(long, value_name = "FORMAT", default_value = "plain", env = "INJECTD_LOG_FORMAT")]
    log_format: log::Format,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    grpc: GrpcArgs,
    /// Beginning of the names of the Leases of the audit and of the webhook's scope, for several
    /// installations in a namespace
    #[arg(long, value_name = "NAME", default_value = "injectd")]
    lease_prefix: String,
    #[command(flatten)]
    audit: AuditArgs,
    #[command(flatten)]
    certificates: CertificateArgs,
    #[command(flatten)]
    templates: TemplateArgs,
    #[command(flatten)]
    webhook_scope: WebhookScopeArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

pub(super) fn run(mut args: Args, log_style: LogStyle) -> Result<(), CommandError> {
    args.check()?;
    let _log =
        log::start(&args.log_level, args.log_format).map_err(|error| args.log_error(&error))?;
    if log_style == LogStyle::Linkerd {
        info!("running version {}", version());
    }
    let descriptors = Descriptors::raise();
    args.fit(descriptors)?;
    let runtime = server::runtime(args.worker_threads)
        .map_err(|error| CommandError::failed("cannot start the async runtime", error))?;
    let served = runtime.block_on(serve(args, log_style, descriptors));
    // Requests had their time until the end of the drain. An evaluation that still runs has no caller
    // any more, and must not keep the process.
    runtime.shutdown_background();
    served
}

async fn serve(
    args: Args,
    log_style: LogStyle,
    descriptors: Descriptors,
) -> Result<(), CommandError> {
    args.grpc.check(args.standalone)?;
    let process = Process::new(args, log_style, descriptors)?;
    let starting = process.readiness.hold();
    // First of all servers: the kubelet may ask for liveness while the API server is still slow to
    // answer, and must not restart a pod that waits.
    let admin = process.open_admin().await?;
    let cluster = process.cluster().await?;
    let Started { profiles, is_loaded, known_templates } = process.profiles(cluster.as_ref())?;
    let services = process.services(cluster.as_ref(), &profiles)?;
    let (managed, keeper) = process.manage_certificates(cluster.as_ref()).unzip();
    process.watch_webhooks(cluster.as_ref());
    // Bound last: a process that ends because of wrong files has let no API server connect.
    let listeners = process.listen(managed).await?;
    tokio::spawn(process.cache_sizes(profiles.clone()));
    let audit = process.audit(cluster.as_ref(), profiles.clone());
    let keepers = process.keep_templates(cluster.as_ref(), known_templates);
    // The pod may become ready only now, as its Service would send reviews before.
    drop(starting);
    match log_style {
        LogStyle::Line => announce::print(profiles, is_loaded, &listeners, &admin),
        LogStyle::Linkerd => info!("listening at {}", process.args.addr),
    }
    process.serve(services, listeners).await;
    // They give their Leases away. A panic is in the log.
    drop(audit.await);
    for keeper in keeper.into_iter().chain(keepers) {
        drop(keeper.await);
    }
    Ok(())
}

impl Args {
    /// Rejects combinations of flags that are not allowed.
    fn check(&self) -> Result<(), CommandError> {
        let config = &self.config;
        config.must_suit_the_meshes()?;
        self.certificates.check(self.standalone)?;
        self.webhook_scope.check(config.is_templates(), self.standalone, &self.templates)?;
        let problem = if config.sets_path() {
            "--path does not work with serve: each request has its own"
        } else if self.istio_namespace.is_some() && !config.is_istio() {
            "--istio-namespace needs --mesh istio"
        } else if self.istio_namespace.is_some() && self.standalone {
            "--istio-namespace names ConfigMaps of a cluster: remove --standalone"
        } else if let Some(problem) = self.templates.problem(config.is_templates(), self.standalone)
        {
            return Err(CommandError::Usage(problem));
        } else if self.audit.is_on() && self.standalone {
            "--audit reads a cluster: remove --standalone"
        } else if let Some(flag) = self.audit.set_without_audit() {
            return Err(CommandError::Usage(format!("{flag} needs --audit")));
        } else if !is_dns1035_label(&self.lease_prefix) {
            "--lease-prefix: write a name such as injectd: at most 63 lower-case letters, digits and \
             hyphens, the first a letter, the last no hyphen"
        } else if config.is_istio() && !is_dns_label(&self.istio_namespace()) {
            "--istio-namespace (or the variable POD_NAMESPACE) is not the name of a namespace"
        } else {
            if config.is_istio() {
                config.must_suit_an_istio_server(self.standalone)?;
            }
            return Ok(());
        };
        Err(CommandError::Usage(problem.to_owned()))
    }

    /// Lowers `--max-connections` to what the descriptors are enough for.
    fn fit(&mut self, descriptors: Descriptors) -> Result<(), CommandError> {
        let servers = 1 + u64::from(self.grpc.has_listener());
        let asked = self.limits.max_connections;
        let most = descriptors.connections(servers, asked);
        let (limit, enough) = (descriptors.limit(), Descriptors::enough(servers, asked));
        if most == 0 {
            let cause = format!(
                "raise the hard limit of open files (ulimit -Hn), to {enough} for \
                 --max-connections {asked}"
            );
            return Err(CommandError::failed(
                format!("cannot serve with a limit of {limit} open files"),
                cause,
            ));
        }
        if most < asked {
            warn!(
                "--max-connections is {most} and not {asked}, because the process may open only \
                 {limit} files: raise the hard limit of open files (ulimit -Hn) to {enough}"
            );
        }
        self.limits.max_connections = most;
        Ok(())
    }

    /// The Lease of the audit.
    fn audit_lease(&self) -> LeaseOptions {
        let named = self.audit.lease_namespace().or_else(pod::namespace);
        let namespace = named.unwrap_or_else(|| "default".to_owned());
        LeaseOptions::new(namespace, self.lease_name("audit"), pod::identity())
    }

    /// The name of a Lease of which each installation has its own.
    fn lease_name(&self, of: &str) -> String {
        format!("{}-{of}", self.lease_prefix)
    }

    /// The namespace of Istio's `ConfigMap`s.
    fn istio_namespace(&self) -> String {
        let named = self.istio_namespace.clone().or_else(pod::namespace);
        named.unwrap_or_else(|| ISTIO_NAMESPACE.to_owned())
    }

    fn log_error(&self, error: &log::StartError) -> CommandError {
        let text = format!("--log-level {}: {}", self.log_level, with_causes(error));
        CommandError::Usage(text)
    }
}

fn addr_error(flag: &str, addr: &str, error: io::Error) -> CommandError {
    let flag = format!("{flag} {addr}");
    if error.kind() == io::ErrorKind::InvalidInput {
        return CommandError::Usage(format!("{flag}: {error}; expected HOST:PORT or :PORT"));
    }
    if error.kind() == io::ErrorKind::AddrInUse {
        let remedy = "another process uses this address; stop it, or choose another address";
        return CommandError::failed(flag, remedy);
    }
    if error.kind() == io::ErrorKind::AddrNotAvailable {
        return CommandError::failed(
            flag,
            "this machine has no such address; choose one that it has",
        );
    }
    CommandError::failed(flag, error)
}
