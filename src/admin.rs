//! The admin door: probes, metrics and a CPU profile, over plain HTTP.
//!
//! The paths are those of Linkerd's controllers (`pkg/admin/admin.go`).

use std::{convert::Infallible, future::Future, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{interval, timeout},
};
use tracing::{debug, warn};

use crate::{metrics::Exporter, readiness::Readiness};

/// Connections that are served at a time: a kubelet, a few Prometheus servers, a person.
const MAX_CONNECTIONS: usize = 64;
/// Longest wait for a request, and for its answer to be read.
const HEADER_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest life of a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_mins(10);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the metrics fold what histograms have seen.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Takes a CPU profile of so many seconds, as pprof reads it.
pub type Profiler = Arc<dyn Fn(Duration) -> BoxFuture<'static, io::Result<Vec<u8>>> + Send + Sync>;

/// What the admin door tells.
#[derive(Clone)]
pub struct Admin {
    /// What `/ready` says.
    pub readiness: Readiness,
    /// What `/metrics` says.
    pub exporter: Exporter,
    /// What `/debug/pprof/profile` does; `None`: there is no such path.
    pub profiler: Option<Profiler>,
}

type Answer = Response<Full<Bytes>>;

impl Admin {
    /// Serves until `shutdown` is done.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        let served = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let exporter = self.exporter.clone();
        let upkeep = async move {
            let mut ticks = interval(UPKEEP_INTERVAL);
            loop {
                ticks.tick().await;
                exporter.run_upkeep();
            }
        };
        let accept = async {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let Ok(permit) = Arc::clone(&served).try_acquire_owned() else { continue };
                        let admin = self.clone();
                        tokio::spawn(async move {
                            admin.connection(stream).await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        warn!(%error, "cannot accept a connection at the admin door");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        };
        tokio::select! {
            () = accept => {}
            () = upkeep => {}
            () = shutdown => {}
        }
    }

    async fn connection(self, stream: TcpStream) {
        let service = service_fn(move |request| {
            let admin = self.clone();
            async move { Ok::<_, Infallible>(admin.answer(&request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        match timeout(CONNECTION_TIMEOUT, connection).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => debug!(%error, "connection failed at the admin door"),
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "ask with GET\n");
        }
        match (request.uri().path(), &self.profiler) {
            ("/ping" | "/live", _) => text(StatusCode::OK, "pong\n"),
            ("/ready", _) if self.readiness.is_ready() => text(StatusCode::OK, "ok\n"),
            ("/ready", _) => text(StatusCode::INTERNAL_SERVER_ERROR, "not ready\n"),
            ("/metrics", _) => {
                let mut response = text(StatusCode::OK, self.exporter.render());
                let exposition =
                    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(CONTENT_TYPE, exposition);
                response
            }
            ("/debug/pprof/profile", Some(profiler)) => profile(profiler, request).await,
            _ => text(StatusCode::NOT_FOUND, "not found\n"),
        }
    }
}

async fn profile(profiler: &Profiler, request: &Request<Incoming>) -> Answer {
    let seconds = request
        .uri()
        .query()
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("seconds="));
    let seconds = seconds.map_or(Ok(30), str::parse);
    let Ok(seconds @ 1..=300) = seconds else {
        return text(StatusCode::BAD_REQUEST, "seconds: expected a number from 1 to 300\n");
    };
    match profiler(Duration::from_secs(seconds)).await {
        Ok(profile) => {
            let mut response = text(StatusCode::OK, profile);
            let binary = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, binary);
            response
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}
