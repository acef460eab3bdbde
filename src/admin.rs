//! The admin server: probes, metrics and a CPU profile, over plain HTTP.
//!
//! The paths are those of Linkerd's controllers (`pkg/admin/admin.go`).

use std::{convert::Infallible, io, sync::Arc, thread, time::Duration};

use arc_swap::ArcSwap;
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use injectd_telemetry::{metrics::Exporter, readiness::Readiness};
use metrics::Counter;
use tokio::{
    net::TcpStream,
    runtime,
    sync::{Semaphore, oneshot},
    time::interval,
};
use tokio_io_timeout::TimeoutStream;
use tracing::{debug, error, warn};

use crate::{
    profiler,
    server::{Addr, Bound, EvaluationTurns, HttpResponse, Socket, plain},
};

/// Timeout for a client to send its request, and to read the response: slow clients must not block
/// probes.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which histograms fold their samples; until then each review takes 24 bytes.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(500);

/// Why the process is not ready while evaluations stand still.
const STANDSTILL: &str =
    "reviews wait for their evaluation, and no evaluation began or ended for 10 s";

/// The admin server.
#[derive(Clone)]
pub struct Admin {
    /// Whether `/ready` answers 200.
    pub readiness: Readiness,
    /// The bodies of `/ready`.
    pub ready_texts: Arc<ReadyTexts>,
    /// The evaluations. The process is not ready while they stand still.
    pub turns: EvaluationTurns,
    /// The content of `/metrics`.
    pub exporter: Exporter,
    /// Whether `/debug/pprof/profile` is served.
    pub has_profiles: bool,
    /// Maximum concurrent connections.
    pub max_connections: usize,
}

/// The bodies of `/ready`.
#[derive(Debug)]
pub struct ReadyTexts {
    /// While the process is ready.
    pub ready: ArcSwap<String>,
    /// Until it is ready.
    pub not_ready: ArcSwap<String>,
}

impl Default for ReadyTexts {
    fn default() -> Self {
        let [ready, not_ready] =
            ["ok\n", "not ready\n"].map(|text| ArcSwap::from_pointee(text.to_owned()));
        Self { ready, not_ready }
    }
}

impl Admin {
    /// Binds an address and serves on a separate thread until `shutdown` completes. Probes must be
    /// answered while all other threads are busy: without an answer the kubelet kills the process.
    ///
    /// # Errors
    /// When the address cannot be bound, or no thread can be started.
    pub async fn start(
        self,
        addr: String,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Addr> {
        // Reviews that take all worker threads must not fail the probes: the kubelet would restart
        // the process.
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, receiver) = oneshot::channel();
        let serve = async move {
            match Bound::bind(&addr).await {
                Ok(bound) => {
                    // The caller waits for the address, so that a port in use is an error of the
                    // start.
                    drop(sender.send(Ok(bound.addr().clone())));
                    self.serve(bound, shutdown).await;
                }
                Err(error) => drop(sender.send(Err(error))),
            }
        };
        thread::Builder::new().name("admin".to_owned()).spawn(move || runtime.block_on(serve))?;
        receiver.await.map_err(io::Error::other)?
    }

    async fn serve(self, bound: Bound, shutdown: impl Future<Output = ()>) {
        let served = Arc::new(Semaphore::new(self.max_connections));
        let upkeep = self.clone().upkeep();
        let accept = async {
            // A metric that says so could not be read.
            let failures = Counter::noop();
            loop {
                let Socket::Tcp(stream, _) = bound.accept(&failures).await else { continue };
                let Ok(permit) = Arc::clone(&served).try_acquire_owned() else {
                    warn!("too many connections at the admin server");
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

    /// Folds the samples of histograms, and looks after the evaluations.
    async fn upkeep(self) {
        let mut ticks = interval(UPKEEP_INTERVAL);
        let mut standstill = None;
        loop {
            ticks.tick().await;
            self.exporter.run_upkeep();
            match self.turns.stand_still() {
                true if standstill.is_none() => {
                    error!("not ready: {STANDSTILL}");
                    standstill = Some(self.readiness.hold());
                }
                true => {}
                false => standstill = None,
            }
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
            // A probe comes every few seconds: an open connection between would hold one of few
            // places.
            .keep_alive(false)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        if let Err(error) = connection.await {
            debug!(%error, "connection failed at the admin server");
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> HttpResponse {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        }
        match (request.uri().path(), self.has_profiles) {
            // Alive while the thread answers. A standstill makes the process not ready, and no
            // restart loses its work.
            ("/ping" | "/live", _) => plain(StatusCode::OK, "pong\n"),
            ("/ready", _) if self.readiness.is_ready() => {
                plain(StatusCode::OK, self.ready_texts.ready.load().as_str().to_owned())
            }
            ("/ready", _) => {
                let mut text = self.ready_texts.not_ready.load().as_str().to_owned();
                if self.turns.stand_still() {
                    text.push_str(STANDSTILL);
                    text.push('\n');
                }
                plain(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
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

async fn profile(request: &Request<Incoming>) -> HttpResponse {
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

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        io::{Read as _, Write as _},
        net::TcpStream as StdTcpStream,
    };

    use injectd_telemetry::metrics::Registry;

    use super::*;
    use crate::server::{Limits, MAX_ADMIN_CONNECTIONS};

    #[tokio::test]
    async fn probes_are_answered_while_every_other_thread_is_busy() {
        let admin = Admin {
            readiness: Readiness::default(),
            turns: EvaluationTurns::of_runtime(&Limits::default()),
            exporter: Registry::new().exporter(),
            ready_texts: Arc::default(),
            has_profiles: false,
            max_connections: MAX_ADMIN_CONNECTIONS,
        };
        let addr = admin.start("127.0.0.1:0".to_owned(), pending()).await.expect("a free port");
        // This blocks the only thread of the runtime.
        let mut stream = StdTcpStream::connect(addr.to_string()).expect("must be open");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.write_all(b"GET /live HTTP/1.1\r\nhost: x\r\n\r\n").expect("must be sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("must be answered");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("pong\n"), "{answer}");
    }
}
