//! Connections: from a listener through TLS to HTTP/1.1 and HTTP/2, until shutdown.
//!
//! One connection's trouble never touches another: each is a task of its own, and how many there
//! may be is a limit. Not for requests: those are the service's.

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
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::{self, Runtime},
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tracing::{debug, warn};

use crate::{
    metrics::{ConnectionMetrics, Counted},
    tls::remaining_validity,
};

mod gate;
mod limits;
mod listener;
mod long_work;
mod read_ahead;
mod room;
mod share;
mod shutdown;

pub use gate::{Answered, Answers, Caller, Gate, TooMuch, discard, overloaded, plain};
pub use limits::{Limits, parse_duration};
pub use listener::{Addr, Bound, Socket, UNIX_SCHEME};
pub use long_work::{LONG_REVIEW_BYTES, Late, LongWork};
use read_ahead::ReadAhead;
pub use room::Room;
pub use share::{NoRoom, Pool, Share, Taken};
pub use shutdown::{Shutdown, Signalled};

/// Threads that answer: as many as there are cores, but each keeps freed memory of its own, and four
/// answer more than API servers ask.
const MOST_DEFAULT_WORKERS: usize = 4;
/// Largest header of a request. Over HTTP/1 it is the room for what is read of a body at a time,
/// too: a TLS record.
const MAX_HEADER_BYTES: u16 = 16 << 10;
/// What is read of a larger header over HTTP/2, so that a gRPC caller gets the status that it knows.
const MOST_HEADER_BYTES_READ: u32 = 4 * MAX_HEADER_BYTES as u32;
/// Life of a connection that is one too many: enough to be told 503.
const TURNED_AWAY_LIFE: Duration = Duration::from_secs(1);
/// What a request that is on its way when the door closes is waited for.
const LAST_REQUEST_GRACE: Duration = Duration::from_millis(500);
/// How often an idle HTTP/2 connection is asked whether anybody is there, and how long for.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Tells connections that the door is closing.
type Closing = watch::Receiver<bool>;

/// The TLS configuration that the next connection gets.
pub type CurrentTls = Arc<ArcSwap<ServerConfig>>;

/// How connections are served; shared by all of them.
#[derive(Debug)]
pub struct Door {
    tls: CurrentTls,
    limits: Limits,
    metrics: ConnectionMetrics,
    http: Http,
    served: Semaphore,
    turned_away: Semaphore,
    requests: Pool,
    bodies: Pool,
    is_draining: Arc<AtomicBool>,
    max_age: Option<Duration>,
}

/// Servers of HTTP, by the protocol that TLS has agreed on.
#[derive(Debug)]
struct Http {
    one: auto::Builder<TokioExecutor>,
    two: auto::Builder<TokioExecutor>,
    /// Where nothing was agreed on: the first bytes decide.
    either: auto::Builder<TokioExecutor>,
}

type Stream = TlsStream<ReadAhead<std::pin::Pin<Box<TimeoutStream<TcpStream>>>>>;

impl Bound {
    /// Serves until told to stop and requests under way are answered: first with `connection:
    /// close` for as long as others need to learn of it, then without new connections.
    pub async fn serve(self, door: Door, service: impl Answers, mut shutdown: Shutdown) {
        let door = Arc::new(door);
        let (close, closing) = watch::channel(false);
        tokio::select! {
            never = accept(&self, &door, &service, &closing) => match never {},
            signalled = shutdown.begun() => {
                door.is_draining.store(true, Ordering::Release);
                if signalled == Signalled::ToTerminate {
                    let accept = accept(&self, &door, &service, &closing);
                    tokio::select! {
                        never = accept => match never {},
                        () = sleep(door.limits.drain_delay) => {}
                        () = shutdown.hastened() => {}
                    }
                }
            }
        }
        drop(self);
        drop(closing);
        close.send_replace(true);
        tokio::select! {
            // Done when no connection listens any more.
            drained = timeout(door.limits.drain_timeout, close.closed()) => {
                if drained.is_err() {
                    warn!("requests were still under way");
                }
            }
            () = shutdown.hastened() => warn!("received a second signal: requests were still under way"),
        }
    }
}

/// A connection: who opened it from where, and whether it is within the limit of connections.
struct Conversation {
    caller: Caller,
    is_served: bool,
    peer: Option<SocketAddr>,
}

impl Http {
    fn new(limits: &Limits) -> Self {
        let server = || {
            let mut http = auto::Builder::new(TokioExecutor::new());
            http.http1()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header_timeout)
                .max_buf_size(MAX_HEADER_BYTES.into());
            http.http2()
                .timer(TokioTimer::new())
                .max_header_list_size(MOST_HEADER_BYTES_READ)
                .max_concurrent_streams(limits.http2_max_streams)
                .max_pending_accept_reset_streams(limits.http2_max_resets as usize)
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT);
            http
        };
        Self { one: server().http1_only(), two: server().http2_only(), either: server() }
    }

    fn agreed_on(&self, protocol: Option<&[u8]>) -> &auto::Builder<TokioExecutor> {
        match protocol {
            Some(b"h2") => &self.two,
            Some(b"http/1.1") => &self.one,
            _ => &self.either,
        }
    }
}

/// Accepts connections, each a task of its own.
async fn accept(
    bound: &Bound,
    door: &Arc<Door>,
    service: &impl Answers,
    closing: &Closing,
) -> Infallible {
    loop {
        let socket = bound.accept(&door.metrics.not_accepted).await;
        door.metrics.accepted.increment(1);
        let (door, service, closing) = (Arc::clone(door), service.clone(), closing.clone());
        tokio::spawn(async move { door.serve(socket, service, closing).await });
    }
}

impl Door {
    /// A door that shows what `tls` holds when a connection comes.
    #[must_use]
    pub fn new(tls: CurrentTls, limits: Limits, metrics: ConnectionMetrics) -> Self {
        Self {
            served: Semaphore::new(limits.max_connections as usize),
            turned_away: Semaphore::new(limits.max_connections.div_ceil(4) as usize),
            requests: Pool::new(limits.max_requests as usize, 1),
            bodies: Room::pool(limits.max_body_memory),
            is_draining: Arc::default(),
            max_age: None,
            http: Http::new(&limits),
            tls,
            limits,
            metrics,
        }
    }

    /// A door whose connections are asked to end after that time.
    #[must_use]
    pub fn with_max_age(self, age: Duration) -> Self {
        Self { max_age: Some(age), ..self }
    }

    async fn serve(&self, socket: Socket, service: impl Answers, mut closing: Closing) {
        let served = self.served.try_acquire();
        if served.is_err() {
            self.metrics.over_limit.increment(1);
        }
        let is_served = served.is_ok();
        let Ok(permit) = served.or_else(|_| self.turned_away.try_acquire()) else {
            return;
        };
        let _open = Counted::new(&self.metrics.open);
        let caller = Caller {
            certificate: None,
            room: Room::of_connection(&self.bodies),
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
                    let conversation = Conversation { caller, is_served, peer: Some(peer) };
                    self.converse(stream, http, service, conversation, closing).await;
                }
            }
            Socket::Unix(stream) => {
                let stream = Box::pin(self.bounded(stream));
                let conversation = Conversation { caller, is_served, peer: None };
                self.converse(stream, &self.http.either, service, conversation, closing).await;
            }
        }
        drop(permit);
    }

    /// Speaks HTTP until the connection ends.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        http: &auto::Builder<TokioExecutor>,
        service: impl Answers,
        conversation: Conversation,
        mut closing: Closing,
    ) {
        let Conversation { caller, is_served, peer } = conversation;
        let requests = is_served.then(|| caller.requests.clone());
        let age = self.age_of(&caller);
        let service = service.of_caller(caller);
        let service = Gate::new(service, requests, Arc::clone(&self.is_draining));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection.into_owned());
        // A client that is answered 503 opens another connection, and there may be room for that.
        let turned_away =
            async { if is_served { pending().await } else { sleep(TURNED_AWAY_LIFE).await } };
        let aged = async {
            match age {
                Some(age) => sleep(age).await,
                None => pending().await,
            }
        };
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = turned_away => Ok(()),
            () = aged => {
                connection.as_mut().graceful_shutdown();
                // A client that takes no answers has had its time.
                let rest = timeout(self.limits.drain_timeout, connection);
                rest.await.unwrap_or(Ok(()))
            }
            () = closed(&mut closing) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            self.metrics.failed(&*error);
            debug!(?peer, %error, "connection failed");
        }
    }

    /// After which time a connection is asked to end: the server's limit, or when the caller's
    /// certificate expires.
    fn age_of(&self, caller: &Caller) -> Option<Duration> {
        let validity = caller.certificate.as_ref().and_then(remaining_validity);
        self.max_age.into_iter().chain(validity).min()
    }

    /// A stream whose reads and writes take only so long.
    fn bounded<S: AsyncRead + AsyncWrite>(&self, stream: S) -> TimeoutStream<S> {
        let mut stream = TimeoutStream::new(stream);
        stream.set_read_timeout(Some(self.limits.header_timeout));
        stream.set_write_timeout(Some(self.limits.write_timeout));
        stream
    }

    async fn handshake(&self, stream: TcpStream, peer: SocketAddr) -> Option<Stream> {
        // A handshake begins with its first byte; who says nothing gets no TLS. All may go on at
        // once: to the API server a connection that is closed is a webhook that failed, and the pod
        // goes without a sidecar or is refused.
        if timeout(self.limits.handshake_timeout, stream.readable()).await.is_err() {
            self.metrics.slow_handshakes.increment(1);
            return None;
        }
        // Answers are written whole; waiting for more to send only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        let stream = ReadAhead::new(Box::pin(self.bounded(stream)));
        let acceptor = TlsAcceptor::from(self.tls.load_full());
        match timeout(self.limits.handshake_timeout, acceptor.accept(stream)).await {
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

/// What doors run on: `workers` threads, one at least; by default one for each core, four at most.
///
/// # Errors
/// When the system gives no threads.
pub fn runtime(workers: Option<u16>) -> io::Result<Runtime> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let workers = workers.map_or_else(|| cores().min(MOST_DEFAULT_WORKERS), usize::from);
    runtime::Builder::new_multi_thread().worker_threads(workers.max(1)).enable_all().build()
}

/// Raises the number of descriptors that the process may open to the most it may ask for, as Go
/// does.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        debug!(%error, "cannot raise the limit of open descriptors");
    }
}

/// Done a moment after the door closes: a connection may just have sent its first request.
async fn closed(closing: &mut Closing) {
    // An error is the end of the door, too.
    drop(closing.wait_for(|is_closing| *is_closing).await);
    sleep(LAST_REQUEST_GRACE).await;
}
