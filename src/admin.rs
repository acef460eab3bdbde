//! The admin door: probes, metrics and a CPU profile, over plain HTTP.
//!
//! The paths are those of Linkerd's controllers (`pkg/admin/admin.go`).

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::Counter;
use tokio::{net::TcpStream, sync::Semaphore, time::interval};
use tokio_io_timeout::TimeoutStream;
use tracing::{debug, warn};

use crate::{
    metrics::Exporter,
    profiler,
    readiness::Readiness,
    server::{Answered, Bound, Socket, plain},
};

/// Connections that are served at a time: a kubelet, a few Prometheus servers, a person.
const MAX_CONNECTIONS: usize = 256;
/// Longest wait for a request, and for its answer to be taken: probes must not wait for others.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the metrics fold what histograms have seen: until then each review takes 24 bytes.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(500);

/// What the admin door tells.
#[derive(Clone)]
pub struct Admin {
    /// What `/ready` says.
    pub readiness: Readiness,
    /// What `/metrics` says.
    pub exporter: Exporter,
    /// Whether there is `/debug/pprof/profile`.
    pub has_profiles: bool,
}

impl Admin {
    /// Serves until `shutdown` is done.
    pub async fn serve(self, bound: Bound, shutdown: impl Future<Output = ()>) {
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
            let failures = Counter::noop();
            loop {
                let Socket::Tcp(stream, _) = bound.accept(&failures).await else { continue };
                let Ok(permit) = Arc::clone(&served).try_acquire_owned() else {
                    warn!("too many connections at the admin door");
                    continue;
                };
                let admin = self.clone();
                tokio::spawn(async move {
                    admin.connection(stream).await;
                    drop(permit);
                });
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
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(CLIENT_TIMEOUT));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(CLIENT_TIMEOUT)
            .keep_alive(false)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        if let Err(error) = connection.await {
            debug!(%error, "connection failed at the admin door");
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> Answered {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "ask with GET\n");
        }
        match (request.uri().path(), self.has_profiles) {
            ("/ping" | "/live", _) => plain(StatusCode::OK, "pong\n"),
            ("/ready", _) if self.readiness.is_ready() => plain(StatusCode::OK, "ok\n"),
            ("/ready", _) => plain(StatusCode::INTERNAL_SERVER_ERROR, "not ready\n"),
            ("/metrics", _) => {
                let mut response = plain(StatusCode::OK, self.exporter.render());
                let exposition =
                    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(CONTENT_TYPE, exposition);
                response
            }
            ("/debug/pprof/profile", true) => profile(request).await,
            _ => plain(StatusCode::NOT_FOUND, "not found\n"),
        }
    }
}

async fn profile(request: &Request<Incoming>) -> Answered {
    let seconds = request
        .uri()
        .query()
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("seconds="));
    let seconds = seconds.map_or(Ok(30), str::parse);
    let Ok(seconds @ 1..=300) = seconds else {
        return plain(StatusCode::BAD_REQUEST, "seconds: expected a number from 1 to 300\n");
    };
    match profiler::take(Duration::from_secs(seconds)).await {
        Ok(profile) => {
            let mut response = plain(StatusCode::OK, profile);
            let binary = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, binary);
            response
        }
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}
