//! Connections: from a listener through TLS to HTTP/1.1 and HTTP/2, until shutdown.
//!
//! A failure stays on its connection: each connection is its own task, and their number is limited.
//! Not for requests: the service handles them.

use std::{
    convert::Infallible,
    future::pending,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use injectd_telemetry::metrics::{ConnectionMetrics, Counted};
use injectd_tls::remaining_validity;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::{self, Runtime},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::{debug, warn};

mod body_budget;
mod descriptors;
mod gate;
mod http;
mod limits;
mod listener;
mod long_work;
mod memory_limit;
mod one_port;
mod patience;
mod read_ahead;
mod share;
mod shutdown;
mod turns;

pub use body_budget::BodyBudget;
pub use descriptors::{Descriptors, MAX_ADMIN_CONNECTIONS};
pub use gate::{Caller, Gate, HttpResponse, HttpService, Overload, discard, overloaded, plain};
use http::Http;
pub use limits::Limits;
pub use listener::{Addr, Bound, Socket};
pub use long_work::{LONG_REVIEW_BYTES, Late, LongWork};
pub use one_port::{OnePort, is_grpc};
pub use patience::CallerPatience;
use read_ahead::{InTurns, ReadAhead};
pub use share::{BudgetExceeded, Permit, Pool, Share};
pub use shutdown::{Shutdown, Signalled};
pub use turns::{EvaluationTurns, Threads, TurnCaller};

/// Timeout of a request that names no timeout: the API server's for a webhook without
/// `timeoutSeconds`.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum timeout of a request: that of `timeoutSeconds`.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of worker threads by default. The allocator keeps freed memory for each thread,
/// and four threads answer more reviews than API servers send.
const MAX_DEFAULT_WORKERS: usize = 4;
/// Lifetime of a connection over the limit: long enough to answer 503.
const TURNED_AWAY_LIFE: Duration = Duration::from_secs(1);
/// Grace period for a request that is in flight when the server closes.
const LAST_REQUEST_GRACE: Duration = Duration::from_millis(500);
/// Becomes `true` when the server closes.
type Closing = watch::Receiver<bool>;

/// The TLS configuration of new connections.
pub type CurrentTls = Arc<ArcSwap<ServerConfig>>;

/// The state that all connections of a server share.
#[derive(Debug)]
pub struct Server {
    tls: CurrentTls,
    limits: Limits,
    metrics: ConnectionMetrics,
    http: Http,
    served: Arc<Semaphore>,
    over_limit: Arc<Semaphore>,
    requests: Pool,
    bodies: Pool,
    is_draining: Arc<AtomicBool>,
    max_age: Option<Duration>,
}

type Stream = TlsStream<ReadAhead<std::pin::Pin<Box<TimeoutStream<TcpStream>>>>>;

impl Bound {
    /// Serves until `shutdown` begins, then drains. After SIGTERM the server still accepts
    /// connections during the drain delay and answers with `connection: close`. Then it accepts no
    /// connection and waits for the requests in flight.
    pub async fn serve(self, server: Server, service: impl HttpService, mut shutdown: Shutdown) {
        let server = Arc::new(server);
        let (close, closing) = watch::channel(false);
        tokio::select! {
            never = accept(&self, &server, &service, &closing) => match never {},
            signalled = shutdown.begun() => {
                server.is_draining.store(true, Ordering::Release);
                if signalled == Signalled::ToTerminate {
                    let accept = accept(&self, &server, &service, &closing);
                    tokio::select! {
                        never = accept => match never {},
                        () = sleep(server.limits.drain_delay) => {}
                        () = shutdown.forced() => {}
                    }
                }
            }
        }
        // From here on the port refuses connections, so that clients go to another replica.
        drop(self);
        // Only connections hold receivers then: the last one that ends completes `closed`.
        drop(closing);
        close.send_replace(true);
        tokio::select! {
            // Completes when every connection has dropped its receiver.
            drained = timeout(server.limits.drain_timeout, close.closed()) => {
                if drained.is_err() {
                    warn!("drain timeout: closing connections with requests in flight");
                }
            }
            () = shutdown.forced() => {
                warn!("received a second signal: closing connections with requests in flight");
            }
        }
    }
}

/// A connection: its caller, its peer address, its protocol, and whether it is within the connection
/// limit.
struct Connected<'s> {
    caller: Caller,
    is_served: bool,
    peer: Option<SocketAddr>,
    http: &'s auto::Builder<TokioExecutor>,
}

/// A connection's permit, and whether the connection is within the limit.
struct Place {
    _permit: OwnedSemaphorePermit,
    is_served: bool,
}

/// Accepts connections and spawns a task for each. Connections without a place are closed before the
/// next one is accepted: each holds a descriptor.
async fn accept(
    bound: &Bound,
    server: &Arc<Server>,
    service: &impl HttpService,
    closing: &Closing,
) -> Infallible {
    loop {
        let socket = bound.accept(&server.metrics.not_accepted).await;
        server.metrics.accepted.increment(1);
        let Some(place) = server.place() else { continue };
        let (server, service, closing) = (Arc::clone(server), service.clone(), closing.clone());
        tokio::spawn(async move { server.serve(socket, place, service, closing).await });
    }
}

impl Server {
    /// A server; each new connection uses the configuration that `tls` then holds.
    #[must_use]
    pub fn new(tls: CurrentTls, limits: Limits, metrics: ConnectionMetrics) -> Self {
        Self {
            served: Arc::new(Semaphore::new(limits.max_connections as usize)),
            // To the API server a refused connection is a failed webhook; a 503 it retries. So a
            // quarter more connections may still get one.
            over_limit: Arc::new(Semaphore::new(limits.max_connections.div_ceil(4) as usize)),
            // Requests are small: a connection may have its whole even share, and of bodies half of
            // it.
            requests: Pool::new(limits.max_requests as usize, 1),
            bodies: BodyBudget::pool(limits.body_memory()),
            is_draining: Arc::default(),
            // Of a caller of the webhook only the certificate is checked, and its end ends the
            // connection as well.
            max_age: None,
            http: Http::new(&limits),
            tls,
            limits,
            metrics,
        }
    }

    /// The same server, which shuts its connections down gracefully once they reach this age.
    #[must_use]
    pub fn with_max_age(self, age: Duration) -> Self {
        Self { max_age: Some(age), ..self }
    }

    /// The place of a new connection; `None` if the server and the places over its limit are full.
    fn place(&self) -> Option<Place> {
        let served = Arc::clone(&self.served).try_acquire_owned();
        if let Ok(permit) = served {
            return Some(Place { _permit: permit, is_served: true });
        }
        self.metrics.over_limit.increment(1);
        let permit = Arc::clone(&self.over_limit).try_acquire_owned().ok()?;
        Some(Place { _permit: permit, is_served: false })
    }

    async fn serve(
        &self,
        socket: Socket,
        place: Place,
        service: impl HttpService,
        mut closing: Closing,
    ) {
        let is_served = place.is_served;
        let _open = Counted::new(&self.metrics.open);
        let caller = Caller {
            certificate: None,
            budget: BodyBudget::of_connection(&self.bodies),
            requests: self.requests.share(),
        };
        match socket {
            Socket::Tcp(stream, peer) => {
                let stream = tokio::select! {
                    stream = self.handshake(stream, peer) => stream,
                    () = closed(&mut closing) => None,
                };
                if let Some(stream) = stream {
                    let (_, tls) = stream.get_ref();
                    let http = self.http.agreed_on(tls.alpn_protocol());
                    let chain = tls.peer_certificates().unwrap_or_default();
                    let certificate = chain.first().map(|leaf| leaf.clone().into_owned());
                    let caller = Caller { certificate, ..caller };
                    let peer = Some(peer);
                    let connected = Connected { caller, is_served, peer, http };
                    self.serve_http(stream, service, connected, closing).await;
                }
            }
            Socket::Unix(stream) => {
                let stream = Box::pin(self.bounded(stream));
                let http = self.http.agreed_on(None);
                let connected = Connected { caller, is_served, peer: None, http };
                self.serve_http(stream, service, connected, closing).await;
            }
        }
        // Its descriptor is free by now.
        drop(place);
    }

    /// Serves HTTP until the connection ends.
    async fn serve_http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        service: impl HttpService,
        connected: Connected<'_>,
        mut closing: Closing,
    ) {
        let Connected { caller, is_served, peer, http } = connected;
        let requests = is_served.then(|| caller.requests.clone());
        let age = self.age_of(&caller);
        let service = service.of_caller(caller);
        let service = Gate::new(service, requests, Arc::clone(&self.is_draining));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let connection = std::pin::pin!(connection.into_owned());
        // A connection that always has something to read leaves the thread to others after each
        // turn.
        let mut connection = InTurns(connection);
        // After a 503 the client opens another connection, which may be within the limit.
        let over_limit =
            async { if is_served { pending().await } else { sleep(TURNED_AWAY_LIFE).await } };
        let aged = async {
            match age {
                Some(age) => sleep(age).await,
                None => pending().await,
            }
        };
        let result = tokio::select! {
            result = &mut connection => result,
            () = over_limit => Ok(()),
            () = aged => {
                connection.0.as_mut().graceful_shutdown();
                // A client that does not read its responses cannot keep the connection open.
                let rest = timeout(self.limits.drain_timeout, connection);
                rest.await.unwrap_or(Ok(()))
            }
            () = closed(&mut closing) => {
                connection.0.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            self.metrics.failed(&*error);
            debug!(?peer, %error, "connection failed");
        }
    }

    /// The maximum age of a connection: the server's limit, or the remaining validity of the
    /// caller's certificate if that is shorter.
    fn age_of(&self, caller: &Caller) -> Option<Duration> {
        let validity = caller.certificate.as_ref().and_then(remaining_validity);
        self.max_age.into_iter().chain(validity).min()
    }

    /// Applies the timeouts for reads and writes to a stream.
    fn bounded<S: AsyncRead + AsyncWrite>(&self, stream: S) -> TimeoutStream<S> {
        let mut stream = TimeoutStream::new(stream);
        stream.set_read_timeout(Some(self.limits.header_timeout));
        stream.set_write_timeout(Some(self.limits.write_timeout));
        stream
    }

    async fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> Option<Stream> {
        // A client that sends nothing gets no TLS state. Concurrent handshakes are not limited: to
        // the API server a closed connection is a failed webhook, and the pod then starts without a
        // sidecar or is rejected.
        if timeout(self.limits.handshake_timeout, stream.readable()).await.is_err() {
            self.metrics.slow_handshakes.increment(1);
            return None;
        }
        // Responses are written in one piece; Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        let stream = ReadAhead::new(Box::pin(self.bounded(stream)));
        let acceptor = TlsAcceptor::from(self.tls.load_full());
        let accepted = InTurns(acceptor.accept(stream));
        match timeout(self.limits.handshake_timeout, accepted).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => {
                self.metrics.failed_handshakes.increment(1);
                debug!(%peer, %error, "TLS handshake failed");
            }
            Err(_) => {
                self.metrics.slow_handshakes.increment(1);
                debug!(%peer, "TLS handshake took too long");
            }
        }
        None
    }
}

/// Tasks that a thread polls before it looks for new I/O events. With tokio's default of 61, a few
/// connections that always have something to read delay all others for seconds.
const EVENT_INTERVAL: u32 = 8;

/// The runtime of the servers, with `workers` threads and at least one; by default one thread per
/// core, at most four.
///
/// # Errors
/// When no thread can be started.
pub fn runtime(workers: Option<u16>) -> io::Result<Runtime> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let workers = workers.map_or_else(|| cores().min(MAX_DEFAULT_WORKERS), usize::from);
    runtime::Builder::new_multi_thread()
        .worker_threads(workers.max(1))
        .event_interval(EVENT_INTERVAL)
        .enable_all()
        .build()
}

/// Completes a grace period after the server closes: a request may be in flight.
async fn closed(closing: &mut Closing) {
    // An error also means that the server has ended.
    drop(closing.wait_for(|is_closing| *is_closing).await);
    // A client that has just sent a request cannot know that the server closes.
    sleep(LAST_REQUEST_GRACE).await;
}
