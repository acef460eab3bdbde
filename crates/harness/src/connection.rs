//! Kept-alive connections to a webhook, over TLS 1.3 and HTTP/1.1 as the API server has them.
//!
//! Not for single reviews: [`crate::client`] has them. Here a request that was sent completely can be
//! distinguished from one that was not.

use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::Arc,
};

use hyper::body::Bytes;
use rustls::{
    ClientConfig, HandshakeKind,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::TLS13,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    client::{Answer, Webhook},
    expect::{DEADLINE, Outcome, expect, failed},
    tls::tls_config,
};

/// A webhook that connections are opened to.
#[derive(Clone)]
pub struct Endpoint {
    /// The address.
    pub addr: SocketAddr,
    server_name: ServerName<'static>,
    host: String,
    tls: TlsConnector,
}

impl Endpoint {
    /// The endpoint of a webhook, for TLS 1.3.
    ///
    /// # Errors
    ///
    /// Fails if the CA or the name is not valid.
    pub fn new(webhook: Webhook<'_>) -> Outcome<Self> {
        Self::with_tls(webhook, tls_config(webhook.ca, &[&TLS13])?)
    }

    /// As [`Endpoint::new`], with another configuration of TLS.
    ///
    /// # Errors
    ///
    /// Fails if the name is not valid.
    pub fn with_tls(webhook: Webhook<'_>, config: ClientConfig) -> Outcome<Self> {
        Ok(Self {
            addr: webhook.addr,
            server_name: ServerName::try_from(webhook.server_name.to_owned())?,
            host: webhook.server_name.to_owned(),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// The bytes of a request as the API server sends it with this timeout for the webhook.
    #[must_use]
    pub fn post(&self, body: &[u8], seconds: u64) -> Bytes {
        self.post_to("/", body, seconds)
    }

    /// As [`Endpoint::post`], to this path.
    #[must_use]
    pub fn post_to(&self, path: &str, body: &[u8], seconds: u64) -> Bytes {
        let (host, length) = (&self.host, body.len());
        let head = format!(
            "POST {path}?timeout={seconds}s HTTP/1.1\r\nHost: {host}:443\r\n\
             User-Agent: kube-apiserver-admission\r\nAccept: application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat().into()
    }

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// Those of the socket and of the handshake, and the end of [`DEADLINE`].
    pub async fn connect(&self) -> io::Result<Connection> {
        let open = async {
            let stream = TcpStream::connect(self.addr).await?;
            stream.set_nodelay(true)?;
            self.tls.connect(self.server_name.clone(), stream).await
        };
        // A handshake of TLS is large.
        let stream = timeout(DEADLINE, Box::pin(open)).await.map_err(|_| late())??;
        Ok(Connection { stream, rest: Vec::new(), received: 0 })
    }

    /// Sends one review over a new connection.
    ///
    /// # Errors
    ///
    /// Fails unless it is answered with status 200 and JSON.
    pub async fn ask(&self, body: &[u8]) -> Outcome<Asked> {
        let mut connection = self.connect().await?;
        connection.send(&self.post(body, 10)).await?;
        let answer = connection.receive().await?;
        expect("the status of a review", 200, answer.status)?;
        let certificate = connection.certificate();
        let mut review: Value = serde_json::from_slice(&answer.body)?;
        let response = review["response"].take();
        Ok(Asked { response, body: answer.body, certificate })
    }
}

/// An answer with status 200.
#[derive(Debug)]
pub struct Asked {
    /// The admission response.
    pub response: Value,
    /// The body as it came.
    pub body: Bytes,
    /// The certificate of the server, as DER.
    pub certificate: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    stream: TlsStream<TcpStream>,
    /// What has come after the last answer.
    rest: Vec<u8>,
    /// The number of answers so far.
    pub received: usize,
}

impl Connection {
    /// The certificate of the server, as DER; empty if it has shown none.
    #[must_use]
    pub fn certificate(&self) -> Vec<u8> {
        let (_, session) = self.stream.get_ref();
        session
            .peer_certificates()
            .and_then(<[_]>::first)
            .map(|certificate| certificate.to_vec())
            .unwrap_or_default()
    }

    /// The protocol that ALPN has chosen.
    #[must_use]
    pub fn protocol(&self) -> Option<&[u8]> {
        self.stream.get_ref().1.alpn_protocol()
    }

    /// Whether the handshake has resumed the session of an earlier connection.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Sends bytes of a request.
    ///
    /// # Errors
    ///
    /// Fails if they are not all sent.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let send = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        timeout(DEADLINE, send).await.map_err(|_| late())?
    }

    /// The next answer.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends before, or after [`DEADLINE`].
    pub async fn receive(&mut self) -> io::Result<Answer> {
        let answer = timeout(DEADLINE, self.read_answer()).await.map_err(|_| late())??;
        self.received += 1;
        Ok(answer)
    }

    async fn read_answer(&mut self) -> io::Result<Answer> {
        let end = loop {
            match self.rest.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.read_more().await?,
            }
        };
        let head = String::from_utf8_lossy(&self.rest[..end]).to_lowercase();
        let field =
            |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let length = field("content-length:").and_then(|length| length.parse::<usize>().ok());
        let (Some(status), Some(length)) = (status, length) else {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("the head {head:?}")));
        };
        while self.rest.len() < end + length {
            self.read_more().await?;
        }
        let later = self.rest.split_off(end + length);
        let body = Bytes::from(std::mem::replace(&mut self.rest, later)).slice(end..);
        Ok(Answer {
            status,
            retry_after: field("retry-after:").map(str::to_owned),
            is_last: field("connection:") == Some("close"),
            body,
        })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.rest).await? {
            0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "it ended before the answer")),
            _ => Ok(()),
        }
    }
}

fn late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("not within {} s", DEADLINE.as_secs()))
}

/// The certificate of a PEM text, as DER.
///
/// # Errors
///
/// Fails if there is none.
pub fn der_of(pem: &str) -> Outcome<Vec<u8>> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes());
    der.map(|certificate| certificate.to_vec())
        .map_err(|why| failed(format!("no certificate: {why}")))
}
