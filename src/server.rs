//! Connections: from a listener through TLS to HTTP/1.1 and HTTP/2, until shutdown.
//!
//! One connection's trouble never touches another: each is a task of its own. Not for requests:
//! those are the service's.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use rustls::ServerConfig;
use tokio::{
    io::BufReader,
    net::{TcpListener, TcpStream, lookup_host},
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, info, warn};

/// Longest TLS handshake: the API server gives a whole review at most 30 seconds.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a request's header, which includes idling: Go keeps connections for 90 seconds.
const HEADER_TIMEOUT: Duration = Duration::from_mins(2);
/// How long shutdown waits for requests under way.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);
/// Pause after a failed accept, when file descriptors run out for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Room for encrypted bytes: rustls alone reads 4 KB at a time.
const READ_BUFFER_BYTES: usize = 32 << 10;

/// A listener that nobody is served on yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    local_addr: SocketAddr,
}

/// How connections are served; shared by all of them.
struct Connections<S> {
    tls: TlsAcceptor,
    http: auto::Builder<TokioExecutor>,
    service: S,
}

impl Bound {
    /// Binds an address as Go writes it: `:8443` is dual stack, or IPv4 where that is all there is.
    ///
    /// # Errors
    /// When the address is none, or taken.
    pub async fn bind(addr: &str) -> io::Result<Self> {
        let listener = match addr.strip_prefix(':') {
            Some(port) => match TcpListener::bind(first_addr(&format!("[::]:{port}")).await?).await
            {
                Ok(listener) => listener,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
                Err(_) => TcpListener::bind(first_addr(&format!("0.0.0.0:{port}")).await?).await?,
            },
            None => TcpListener::bind(first_addr(addr).await?).await?,
        };
        Ok(Self { local_addr: listener.local_addr()?, listener })
    }

    /// The address that was bound, its port never 0.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown` is done and requests under way are answered.
    pub async fn serve<S>(
        self,
        tls: Arc<ServerConfig>,
        service: S,
        shutdown: impl Future<Output = ()>,
    ) where
        S: Service<Request<Incoming>, Response = Response<Full<Bytes>>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        S::Error: std::error::Error + Send + Sync,
    {
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
        http.http2().timer(TokioTimer::new()).max_header_list_size(16 << 10);
        let connections = Arc::new(Connections { tls: TlsAcceptor::from(tls), http, service });
        let graceful = GracefulShutdown::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let (connections, watcher) = (Arc::clone(&connections), graceful.watcher());
                    tokio::spawn(async move { connections.serve(stream, peer, watcher).await });
                }
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        info!("shutting down");
        if timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
            warn!("requests were still under way");
        }
    }
}

impl<S> Connections<S>
where
    S: Service<Request<Incoming>, Response = Response<Full<Bytes>>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: std::error::Error + Send + Sync,
{
    async fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        // Answers are written whole; waiting for more to send only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        let stream = BufReader::with_capacity(READ_BUFFER_BYTES, stream);
        let stream = match timeout(HANDSHAKE_TIMEOUT, self.tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => return debug!(%peer, "TLS handshake took too long"),
        };
        let connection = self.http.serve_connection(TokioIo::new(stream), self.service.clone());
        if let Err(error) = watcher.watch(connection.into_owned()).await {
            debug!(%peer, %error, "connection failed");
        }
    }
}

async fn first_addr(addr: &str) -> io::Result<SocketAddr> {
    lookup_host(addr)
        .await?
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address"))
}

/// Done at the first SIGTERM or SIGINT.
pub async fn shutdown_signal() {
    let (mut terminate, mut interrupt) =
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
            (Err(error), _) | (_, Err(error)) => {
                warn!(%error, "cannot listen for signals: only SIGKILL stops this process");
                return std::future::pending().await;
            }
        };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
