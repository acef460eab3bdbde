//! Where connections come from: addresses as Go writes them, and sockets of the file system.

use std::{
    fmt, fs,
    io::{self, ErrorKind},
    net::SocketAddr,
    os::unix::{fs::FileTypeExt as _, net::UnixStream as StdUnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use metrics::Counter;
use rustix::{fs::Mode, process::umask};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream, lookup_host},
    time::sleep,
};
use tracing::warn;

/// Pause after a failed accept, when file descriptors run out for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How the address of a socket of the file system begins.
pub const UNIX_SCHEME: &str = "unix:";

/// A listener that nobody is served on yet. What it leaves in the file system goes with it.
#[derive(Debug)]
pub struct Bound {
    listener: Listener,
    addr: Addr,
}

/// An address that was bound, its port never 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addr {
    /// Of a network.
    Tcp(SocketAddr),
    /// A path of the file system.
    Unix(PathBuf),
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection.
#[derive(Debug)]
pub enum Socket {
    /// Over a network.
    Tcp(TcpStream, SocketAddr),
    /// From a process of the same machine that may open the socket's file.
    Unix(UnixStream),
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
                Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(error),
                Err(_) => TcpListener::bind(first_addr(&format!("0.0.0.0:{port}")).await?).await?,
            },
            None => TcpListener::bind(first_addr(addr).await?).await?,
        };
        let addr = Addr::Tcp(listener.local_addr()?);
        Ok(Self { listener: Listener::Tcp(listener), addr })
    }

    /// Binds a socket of the file system, for this user alone; one that nobody listens on any more
    /// is removed before.
    ///
    /// # Errors
    /// When somebody listens on it, or it cannot be made.
    pub fn bind_unix(path: &Path) -> io::Result<Self> {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
        if is_socket {
            match StdUnixStream::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    fs::remove_file(path)?;
                }
                _ => return Err(ErrorKind::AddrInUse.into()),
            }
        }
        // Nobody else may connect, not even for a moment.
        let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
        let listener = UnixListener::bind(path);
        umask(before);
        Ok(Self { listener: Listener::Unix(listener?), addr: Addr::Unix(path.to_owned()) })
    }

    /// The address that was bound.
    #[must_use]
    pub fn addr(&self) -> &Addr {
        &self.addr
    }

    /// The next connection; what fails is told, counted and tried again.
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
    /// Whether only this machine can reach it.
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
        .ok_or_else(|| io::Error::new(ErrorKind::AddrNotAvailable, "the name has no address"))
}
