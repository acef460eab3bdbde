//! `injectd serve`: the doors, until told to stop.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
};

use super::{CommandError, config::ConfigArgs, input};
use crate::{
    log,
    server::{self, Bound},
    tls::{self, Identity},
    webhook::Webhook,
};

/// Filter of the log.
const LOG_VARIABLE: &str = "INJECTD_LOG";

/// Serve the admission webhook
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Serve without a cluster, on values and objects from files
    #[arg(long)]
    standalone: bool,
    /// Address of the webhook, as Go writes it: :8443 is every address of the machine
    #[arg(long, value_name = "ADDR", default_value = ":8443")]
    addr: String,
    /// Certificate chain of the webhook, PEM, leaf first [default: made at start, self-signed]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    if !args.standalone {
        let text = "serve: a cluster cannot be watched yet; add --standalone to serve on files";
        return Err(CommandError::Usage(text.to_owned()));
    }
    let _log = start_log()?;
    let injector = Arc::new(args.config.standalone_injector(&[])?);
    let tls = tls::server_config(args.identity()?)
        .map_err(|error| CommandError::failed("--tls-cert and --tls-key", error))?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| CommandError::failed("cannot start", error))?;
    runtime.block_on(async {
        let bound = Bound::bind(&args.addr).await.map_err(|error| args.addr_error(error))?;
        announce(bound.local_addr()).map_err(CommandError::output)?;
        bound.serve(tls, Webhook::new(injector), server::shutdown_signal()).await;
        Ok(())
    })
}

impl Args {
    fn addr_error(&self, error: io::Error) -> CommandError {
        let flag = format!("--addr {}", self.addr);
        if error.kind() == io::ErrorKind::InvalidInput {
            return CommandError::Usage(format!("{flag}: {error}; expected HOST:PORT or :PORT"));
        }
        CommandError::failed(flag, error)
    }

    fn identity(&self) -> Result<Identity, CommandError> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Identity::from_pem(&input::read(cert)?, &input::read(key)?)
                .map_err(|error| {
                    let files = format!("{} and {}", cert.display(), key.display());
                    CommandError::failed(files, error)
                }),
            _ => Identity::self_signed()
                .map_err(|error| CommandError::failed("cannot make a certificate", error)),
        }
    }
}

/// The variable `INJECTD_LOG` holds a level, or levels by module.
#[expect(clippy::disallowed_methods, reason = "this is configuration")]
fn start_log() -> Result<log::Guard, CommandError> {
    let filter = std::env::var(LOG_VARIABLE).unwrap_or_else(|_| "info".to_owned());
    log::start(&filter, log::Format::Text)
        .map_err(|error| CommandError::failed(format!("{LOG_VARIABLE}={filter}"), error))
}

/// Tells where the door is and how to try it.
fn announce(addr: SocketAddr) -> io::Result<()> {
    let host = if addr.ip().is_unspecified() { "localhost".into() } else { addr.ip().to_string() };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let url = format!("https://{host}:{}/", addr.port());
    let mut out = io::stdout().lock();
    writeln!(out, "webhook door: {addr} (TLS 1.3, HTTP/1.1 and HTTP/2)")?;
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
