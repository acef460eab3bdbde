//! Clients of the servers, and raw streams for malicious clients.

use std::{net::SocketAddr, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use injectd_tls::AnyCertificate;
use rustls::{
    ClientConfig, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName},
    version::TLS13,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{files::Pair, process::soon};

/// A review of a pod that is injected.
pub(super) const REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","#,
    r#""kind":{"version":"v1","kind":"Pod"},"namespace":"shop","object":{"kind":"Pod","metadata":"#,
    r#"{"name":"web","annotations":{"linkerd.io/inject":"enabled"}},"spec":{"containers":"#,
    r#"[{"name":"web","image":"web"}]}}}}"#,
);

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// A kept-alive connection to the webhook server.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// The server's certificate.
    pub(super) certificate: CertificateDer<'static>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn is_injection(&self) -> bool {
        self.status == 200 && self.body.contains(r#""verdict":"injected""#)
    }

    /// The patch as text; empty without one.
    pub(super) fn patch(&self) -> String {
        let encoded =
            self.body.split_once(r#""patch":""#).and_then(|(_, rest)| rest.split_once('"'));
        let patch =
            encoded.map(|(patch, _)| BASE64_STANDARD.decode(patch).expect("must be base64"));
        String::from_utf8(patch.unwrap_or_default()).expect("a patch must be text")
    }

    /// Checks the answer to a client that must retry, on another connection.
    pub(super) fn must_ask_for_a_retry(&self) {
        assert_eq!(self.status, 503, "{self:?}");
        assert_eq!(self.header("retry-after"), Some("1"), "{self:?}");
    }
}

impl Connection {
    pub(super) async fn open(addr: SocketAddr) -> Self {
        Self::over(connect(addr).await).await
    }

    pub(super) async fn over(stream: TlsStream<TcpStream>) -> Self {
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let certificate = shown.expect("a server must present a certificate").clone().into_owned();
        Self { sender: handshake(stream).await, certificate }
    }

    /// Sends a review and returns the answer.
    pub(super) async fn try_review(&mut self, review: &str) -> Result<Answer, hyper::Error> {
        self.try_post("/", review).await
    }

    async fn try_post(&mut self, path: &str, review: &str) -> Result<Answer, hyper::Error> {
        let request = Request::post(path).header("host", "localhost");
        let request = request.body(Full::new(Bytes::from(review.to_owned())));
        send(&mut self.sender, request.expect("must be a request")).await
    }

    /// Sends a review to a path and returns the answer.
    pub(super) async fn post(&mut self, path: &str, review: &str) -> Answer {
        self.try_post(path, review).await.expect("a review must be answered")
    }

    pub(super) async fn review(&mut self, review: &str) -> Answer {
        self.try_review(review).await.expect("a review must be answered")
    }

    pub(super) async fn must_inject(&mut self) {
        let answer = self.review(REVIEW).await;
        assert!(answer.is_injection(), "{answer:?}");
    }
}

/// A page of the admin server.
pub(super) async fn get(addr: SocketAddr, path: &str) -> Answer {
    ask(addr, "GET", path).await
}

/// A page of the admin server, requested with any method.
pub(super) async fn ask(addr: SocketAddr, method: &str, path: &str) -> Answer {
    let mut sender = handshake(tcp(addr).await).await;
    let request = Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.body(Full::default()).expect("must be a request");
    send(&mut sender, request).await.expect("a page must be answered")
}

async fn handshake<S>(stream: S) -> http1::SendRequest<Full<Bytes>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = soon("HTTP", http1::handshake(TokioIo::new(stream))).await;
    let (sender, connection) = handshake.expect("the HTTP/1.1 handshake must succeed");
    tokio::spawn(connection);
    sender
}

async fn send(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Answer, hyper::Error> {
    let exchange = async {
        sender.ready().await?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    };
    soon("answer", exchange).await
}

// === streams ===

pub(super) async fn tcp(addr: SocketAddr) -> TcpStream {
    soon("connection", TcpStream::connect(addr)).await.expect("the server must be open")
}

/// TLS, for HTTP/1.1.
pub(super) async fn connect(addr: SocketAddr) -> TlsStream<TcpStream> {
    try_connect(addr, &http1_config()).await.expect("the TLS handshake must succeed")
}

pub(super) async fn try_connect(
    addr: SocketAddr,
    config: &ClientConfig,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").expect("must be a name");
    let stream = soon("connection", TcpStream::connect(addr)).await?;
    let connector = TlsConnector::from(Arc::new(config.clone()));
    soon("TLS handshake", connector.connect(name, stream)).await
}

/// Reads until the other side closes the connection, with or without a TLS close message.
pub(super) async fn read_to_close(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A close without `close_notify` is an error of rustls, but not of these tests.
    drop(soon("close", stream.read_to_end(&mut bytes)).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The head of a review, without the body.
pub(super) fn head(path: &str, body_bytes: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {body_bytes}\r\n\r\n")
}

// === configurations of TLS ===

pub(super) fn http1_config() -> ClientConfig {
    config(&TLS13, None, "http/1.1")
}

/// The TLS configuration of a client that accepts any certificate, to inspect it.
pub(super) fn config(
    version: &'static SupportedProtocolVersion,
    identity: Option<&Pair>,
    protocol: &str,
) -> ClientConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("the provider must support the version")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate::default()));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(pair) => builder
            .with_client_auth_cert(vec![pair.der.clone()], pair.private_key())
            .expect("a pair must be usable"),
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    config
}
