//! `injectd serve`: runs the servers until a signal stops them.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::value_parser;
use tracing::info;

use super::{CommandError, config::ConfigArgs, version};
use crate::{
    causes::with_causes,
    log,
    observer::LogStyle,
    profiles::Profile,
    server::{self, Addr, Bound, Limits},
};

mod grpc;
mod process;
mod reporter;
mod tls;

use self::{
    grpc::GrpcArgs,
    process::{Listeners, Process},
    tls::TlsArgs,
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
    /// Maximum number of reviews that wait for lookups in the API server at the same time. Further
    /// reviews are rejected with 503
    #[arg(long, value_name = "N", default_value = "1000", env = "INJECTD_MAX_WAITING")]
    max_waiting: u32,
    /// Maximum time that a review waits for one lookup in the API server
    #[arg(long, value_name = "DURATION", default_value = "4s", value_parser = server::parse_duration, env = "INJECTD_LOOKUP_TIMEOUT")]
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
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = server::parse_duration, env = "INJECTD_RELOAD_INTERVAL")]
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
    #[command(flatten)]
    limits: Limits,
}

pub(super) fn run(args: Args, log_style: LogStyle) -> Result<(), CommandError> {
    args.config.must_suit_the_mesh()?;
    if args.config.is_istio() && !args.standalone {
        let text = "--mesh istio needs --standalone, with the configuration in files";
        return Err(CommandError::Usage(text.to_owned()));
    }
    if args.config.sets_path() {
        let text = "--path does not work with serve: each request has its own";
        return Err(CommandError::Usage(text.to_owned()));
    }
    let _log =
        log::start(&args.log_level, args.log_format).map_err(|error| args.log_error(&error))?;
    if log_style == LogStyle::Linkerd {
        info!("running version {}", version());
    }
    server::raise_descriptor_limit();
    let runtime = server::runtime(args.worker_threads)
        .map_err(|error| CommandError::failed("cannot start the async runtime", error))?;
    runtime.block_on(serve(args, log_style))
}

async fn serve(args: Args, log_style: LogStyle) -> Result<(), CommandError> {
    args.grpc.check(args.standalone)?;
    let process = Process::new(args, log_style)?;
    let starting = process.readiness.hold();
    let admin = process.open_admin().await?;
    let cluster = process.cluster().await?;
    let profile = process.profile(cluster.as_ref())?;
    let services = process.services(cluster.as_ref(), &profile)?;
    let listeners = process.listen().await?;
    if let Profile::Linkerd(injector) = &profile {
        tokio::spawn(process.cache_sizes(Arc::clone(injector)));
    }
    drop(starting);
    match log_style {
        // Serving must not depend on an open stdout.
        LogStyle::Line => drop(announce(&profile, &listeners, &admin)),
        LogStyle::Linkerd => info!("listening at {}", process.args.addr),
    }
    process.serve(services, listeners).await;
    Ok(())
}

impl Args {
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
    CommandError::failed(flag, error)
}

/// Prints the addresses of the servers, and a command that tries the webhook.
fn announce(profile: &Profile, listeners: &Listeners, admin: &Addr) -> io::Result<()> {
    let addr = listeners.webhook.addr();
    let url = match addr {
        Addr::Tcp(addr) if addr.ip().is_unspecified() => format!("localhost:{}", addr.port()),
        addr => addr.to_string(),
    };
    let mut out = io::stdout().lock();
    writeln!(out, "webhook server: {addr} (TLS 1.3, HTTP/1.1 and HTTP/2)")?;
    if let Some(grpc) = listeners.grpc.as_ref().map(Bound::addr) {
        let tls = if matches!(grpc, Addr::Unix(_)) { "no TLS" } else { "TLS 1.3" };
        writeln!(out, "gRPC server: {grpc} ({tls}, injectd.v1.Injector)")?;
    }
    writeln!(out, "admin server: {admin} (/ping, /live, /ready, /metrics)")?;
    writeln!(out, "try it: inject a pod and read the patch")?;
    let (path, key, value) = match profile {
        Profile::Linkerd(_) => ("/", "linkerd.io/inject", "enabled"),
        Profile::Istio(_) => ("/inject", "sidecar.istio.io/inject", "true"),
    };
    let review = EXAMPLE_REVIEW.replace("KEY", key).replace("VALUE", value);
    writeln!(out, "  curl -sk https://{url}{path} -d '{review}' \\")?;
    writeln!(out, "    | sed 's/.*\"patch\":\"\\([^\"]*\\)\".*/\\1/' | base64 -d")?;
    out.flush()
}

/// A review of a pod with injection enabled.
const EXAMPLE_REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","#,
    r#""kind":{"version":"v1","kind":"Pod"},"namespace":"default","object":{"metadata":"#,
    r#"{"name":"web","annotations":{"KEY":"VALUE"}},"spec":{"containers":"#,
    r#"[{"name":"web","image":"nginx","ports":[{"containerPort":80}]}]}}}}"#,
);
