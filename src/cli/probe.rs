//! `injectd probe`: asks a URL whether a server is ready. The image has no other HTTP client.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{StatusCode, Uri};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::time::timeout;

use super::CommandError;
use crate::server;

/// The most bytes of an answer that are printed.
const MAX_BODY_BYTES: usize = 4096;

/// Ask a server whether it is ready, with exit code 0 for HTTP status 200
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The URL, without TLS, such as <http://injectd-metrics.linkerd.svc:9995/ready>
    #[arg(value_name = "URL")]
    url: Uri,
    /// Time for the answer
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = server::parse_duration)]
    timeout: Duration,
}

/// Why a server is not ready.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error("cannot connect")]
    Connect(#[source] hyper_util::client::legacy::Error),
    #[error("HTTP status {0}: {1}")]
    Status(StatusCode, String),
    #[error("no answer in time")]
    Timeout,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    if args.url.scheme_str() != Some("http") {
        let text = format!("{}: expected http://HOST:PORT/PATH", args.url);
        return Err(CommandError::Usage(text));
    }
    let runtime = server::runtime(Some(1))
        .map_err(|error| CommandError::failed("cannot start the async runtime", error))?;
    let asked = runtime.block_on(async { timeout(args.timeout, ask(&args.url)).await });
    let asked = asked.unwrap_or(Err(ProbeError::Timeout));
    asked.map_err(|error| CommandError::failed(args.url.to_string(), error))
}

async fn ask(url: &Uri) -> Result<(), ProbeError> {
    let client = Client::builder(TokioExecutor::new());
    let client: Client<_, Empty<Bytes>> = client.build(HttpConnector::new());
    let response = client.get(url.clone()).await.map_err(ProbeError::Connect)?;
    let status = response.status();
    if status == StatusCode::OK {
        return Ok(());
    }
    let body = Limited::new(response.into_body(), MAX_BODY_BYTES).collect().await;
    let text = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Err(ProbeError::Status(status, String::from_utf8_lossy(&text).trim().to_owned()))
}
