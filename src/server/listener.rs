//! Listeners: TCP addresses as Go writes them, and Unix domain sockets.

use std::{
    fmt, fs,
    io::{self, ErrorKind},
    net::SocketAddr,
    os::unix::{fs::FileTypeExt as _, net::UnixStream as StdUnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use injectd_api::UNIX_SCHEME;
use metrics::Counter;
use rustix::{fs::Mode, process::umask};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream, lookup_host},
    time::sleep,
};
use tracing::warn;

/// Pause after a failed accept, for example when file descriptors run out.
// Without it, a process without descriptors would try again and again, with a whole core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener that does not serve yet. Dropping it removes the file of its Unix domain socket.
#[derive(Debug)]
pub struct Bound {
    listener: Listener,
    addr: Addr,
}

/// A bound address; its port is never 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addr {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix domain socket.
    Unix(PathBuf),
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// An accepted connection.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP, with the address of the peer.
    Tcp(TcpStream, SocketAddr),
    /// From a process on this machine that may open the socket's file.
    Unix(UnixStream),
}

impl Bound {
    /// Binds an address as Go writes it: `:8443` is dual stack, or IPv4 on a machine without IPv6.
    ///
    /// # Errors
    /// When the address is not valid, or is in use.
    pub async fn bind(addr: &str) -> io::Result<Self> {
        let listener = match addr.strip_prefix(':') {
            Some(port) => match TcpListener::bind(first_addr(&format!("[::]:{port}")).await?).await
            {
                Ok(listener) => listener,
                // Another process has the port: IPv4 alone might be free, and half of the callers
                // would reach the other one.
                Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(error),
                Err(_) => TcpListener::bind(first_addr(&format!("0.0.0.0:{port}")).await?).await?,
            },
            None => TcpListener::bind(first_addr(addr).await?).await?,
        };
        let addr = Addr::Tcp(listener.local_addr()?);
        Ok(Self { listener: Listener::Tcp(listener), addr })
    }

    /// Binds a Unix domain socket that only this user can open; removes a stale socket file first.
    ///
    /// # Errors
    /// When another process listens on the socket, or it cannot be created.
    pub fn bind_unix(path: &Path) -> io::Result<Self> {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
        if is_socket {
            match StdUnixStream::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    fs::remove_file(path)?;
                }
                // A process that answers, or refuses for another reason, is alive: its file must stay.
                _ => return Err(ErrorKind::AddrInUse.into()),
            }
        }
        // Other users must not be able to connect, not even for a moment.
        let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
        let listener = UnixListener::bind(path);
        umask(before);
        Ok(Self { listener: Listener::Unix(listener?), addr: Addr::Unix(path.to_owned()) })
    }

    /// The bound address.
    #[must_use]
    pub fn addr(&self) -> &Addr {
        &self.addr
    }

    /// Accepts the next connection. A failure is logged, counted in `failures` and retried.
    pub async fn accept(&self, failures: &Counter) -> Socket {
        loop {
            let accepted = match &self.listener {
                Listener::Tcp(listener) => {
                    listener.accept().await.map(|(stream, peer)| Socket::Tcp(stream, peer))
                }
                Listener::Unix(listener) => {
                    listener.accept().await.map(|(stream, _)| Socket::Unix(stream))
                }
            };
            match accepted {
                Ok(socket) => return socket,
                Err(error) => {
                    failures.increment(1);
                    warn!(addr = %self.addr, %error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Addr::Unix(path) = &self.addr
            && let Err(error) = fs::remove_file(path)
        {
            warn!(path = %path.display(), %error, "cannot remove the socket");
        }
    }
}

impl Addr {
    /// Whether only this machine can reach the address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(addr) => addr.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX_SCHEME}{}", path.display()),
        }
    }
}

async fn first_addr(addr: &str) -> io::Result<SocketAddr> {
    lookup_host(addr)
        .await?
        .next()
        .ok_or_else(|| io::Error::new(ErrorKind::AddrNotAvailable, "the host name has no address"))
}
