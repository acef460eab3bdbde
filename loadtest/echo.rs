//! The echo of the load test: a server with the connections and the TLS of `injectd serve` that
//! reads the whole body and sends back as many bytes as injectd would answer.
//!
//! What it costs is the price of the network; what injectd costs beyond it is the review.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use clap::Parser;
use futures_util::{FutureExt as _, future::BoxFuture};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
};
use injectd::server::{
    self, Bound, HttpResponse, HttpService, Limits, Overload, Permit, Server, Shutdown,
};
use injectd_telemetry::{metrics::ConnectionMetrics, readiness::Readiness};
use injectd_testkit::Injector;
use injectd_tls::{ClientAuth, Identity};

/// Answer every request with as many bytes as injectd answers a review with
#[derive(Debug, Parser)]
struct Args {
    /// File of one `AdmissionReview`
    #[arg(value_name = "FILE")]
    review: PathBuf,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    addr: String,
    /// Length of the answers [default: that of injectd for Linkerd]
    #[arg(long, value_name = "BYTES")]
    answer_bytes: Option<usize>,
}

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let args = Args::parse();
    server::runtime(None)?.block_on(serve(&args))
}

async fn serve(args: &Args) -> Result<()> {
    let bytes = match args.answer_bytes {
        Some(bytes) => bytes,
        None => answer_len(&fs::read(&args.review)?)?,
    };
    let answer = Bytes::from(vec![b' '; bytes]);
    let tls = Arc::new(ArcSwap::new(injectd_tls::server_config(
        Identity::self_signed()?,
        ClientAuth::None,
        &injectd_tls::HTTP,
    )?));
    let server = Server::new(tls, Limits::default(), ConnectionMetrics::default());
    let bound = Bound::bind(&args.addr).await?;
    writeln!(
        io::stdout().lock(),
        "echo server: {} (answers of {} bytes)",
        bound.addr(),
        answer.len()
    )?;
    bound.serve(server, Echo(answer), Shutdown::at_signals(Readiness::default())?).await;
    Ok(())
}

/// Answers with the same bytes every time.
#[derive(Debug, Clone)]
struct Echo(Bytes);

impl HttpService for Echo {
    type Body = Full<Bytes>;
    type Future = BoxFuture<'static, HttpResponse>;

    fn answer(&self, request: Request<Incoming>, slot: Permit) -> Self::Future {
        echo(request, self.0.clone(), slot).boxed()
    }

    fn reject(&self, why: Overload, _: &Request<Incoming>) -> HttpResponse {
        server::overloaded(&format!("too much: {why:?}\n"))
    }
}

/// Length of injectd's answer for Linkerd, in bytes.
fn answer_len(review: &[u8]) -> Result<usize> {
    let injector: Injector = injectd_testkit::injector();
    let answer = injector.review(review).now_or_never();
    let answer = answer.expect("a review without a cluster must not wait")?;
    Ok(answer.body.len())
}

async fn echo(request: Request<Incoming>, answer: Bytes, _slot: Permit) -> HttpResponse {
    let mut body = request.into_body();
    // A body that breaks off is the end of the connection.
    while let Some(Ok(_)) = body.frame().await {}
    let mut response = Response::new(Full::new(answer));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
