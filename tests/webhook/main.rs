//! The webhook server: a real server on port 0 with TLS, and a real client.

#![expect(clippy::disallowed_types, reason = "answers are looked into as trees")]

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::{
    Method, Request, Response, StatusCode, Version,
    body::{Body, Frame},
    client::conn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use injectd::{
    observer::Observer,
    server::{self, Addr, Bound, EvaluationTurns, Limits, Shutdown},
    webhook::Webhook,
};
use injectd_core::review::MAX_BODY_BYTES;
use injectd_profiles::Profile;
use injectd_telemetry::metrics::ConnectionMetrics;
use injectd_tls::{ClientAuth, Identity};
use rustls::{
    AlertDescription, ClientConfig, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

mod istio;
mod templates;

/// Longer than any step takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

struct Server {
    addr: SocketAddr,
    trusted: CertificateDer<'static>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Server {
    async fn open() -> Self {
        Self::of(Profile::Linkerd(Arc::new(injectd_testkit::injector()))).await
    }

    async fn of(profile: Profile) -> Self {
        Self::with(profile, Limits::default(), Observer::default()).await
    }

    async fn with(profile: Profile, limits: Limits, observer: Observer) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate must be made");
        let key = made.signing_key.serialize_pem();
        let identity = Identity::from_pem(made.cert.pem().as_bytes(), key.as_bytes());
        let tls = injectd_tls::server_config(
            identity.expect("must be PEM"),
            ClientAuth::None,
            &injectd_tls::HTTP,
        );
        let tls = Arc::new(ArcSwap::new(tls.expect("must be a pair")));
        let bound = Bound::bind("127.0.0.1:0").await.expect("a port must be free");
        let (stop, stopped) = oneshot::channel();
        let Addr::Tcp(addr) = *bound.addr() else { panic!("expected an address with a port") };
        let shutdown = Shutdown::after(async move { drop(stopped.await) });
        let turns = EvaluationTurns::of_runtime(&limits);
        let webhook = Webhook::new(profile, &limits, turns, observer);
        let server = server::Server::new(tls, limits, ConnectionMetrics::default());
        let serving = tokio::spawn(bound.serve(server, webhook, shutdown));
        Self { addr, trusted: made.cert.der().clone(), stop, serving }
    }

    async fn connect(&self, protocol: &str) -> TlsStream<TcpStream> {
        self.handshake(&rustls::version::TLS13, protocol)
            .await
            .expect("the TLS handshake must succeed")
    }

    async fn handshake(
        &self,
        version: &'static SupportedProtocolVersion,
        protocol: &str,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).expect("the certificate must be usable");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("the provider must support the version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = TcpStream::connect(self.addr).await.expect("the server must be open");
        let name = ServerName::try_from("localhost").expect("must be a name");
        let connected = TlsConnector::from(Arc::new(config)).connect(name, stream);
        timeout(PATIENCE, connected).await.expect("must not hang")
    }

    /// Sends a request on a new connection.
    async fn send<B>(&self, version: Version, request: Request<B>) -> (StatusCode, Bytes)
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
    {
        let response = self.exchange(version, request).await;
        (response.status(), response.into_body())
    }

    /// The same, with the header of the response.
    async fn exchange<B>(&self, version: Version, request: Request<B>) -> Response<Bytes>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
    {
        let exchange = async {
            let response = if version == Version::HTTP_2 {
                let io = TokioIo::new(self.connect("h2").await);
                let handshake = conn::http2::handshake(TokioExecutor::new(), io).await;
                let (mut sender, connection) =
                    handshake.expect("the HTTP/2 handshake must succeed");
                tokio::spawn(connection);
                sender.send_request(request).await
            } else {
                let io = TokioIo::new(self.connect("http/1.1").await);
                let handshake = conn::http1::handshake(io).await;
                let (mut sender, connection) =
                    handshake.expect("the HTTP/1.1 handshake must succeed");
                tokio::spawn(connection);
                sender.send_request(request).await
            };
            let response = response.expect("a request must be answered");
            assert_eq!(response.version(), version);
            let (head, body) = response.into_parts();
            let body = body.collect().await.expect("a body must end");
            Response::from_parts(head, body.to_bytes())
        };
        timeout(PATIENCE, exchange).await.expect("must not hang")
    }

    async fn post(&self, body: impl Into<Bytes>) -> (StatusCode, String) {
        let (status, body) = self.send(Version::HTTP_11, post(body)).await;
        (status, String::from_utf8(body.to_vec()).expect("an answer must be text"))
    }

    async fn must_still_serve(&self) {
        let (status, body) = self.post(example_review()).await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.contains(r#""verdict":"injected""#), "{body}");
    }

    async fn close(self) {
        drop(self.stop);
        timeout(PATIENCE, self.serving).await.expect("must stop").expect("must not panic");
    }
}

fn post(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post("https://localhost/").header("host", "localhost");
    request.body(Full::new(body.into())).expect("must be a request")
}

/// A request without `content-length`.
fn unannounced(body: &[u8]) -> Request<impl Body<Data = Bytes, Error = Infallible> + use<>> {
    let pieces: Vec<_> = body.chunks(50_000).map(Bytes::copy_from_slice).collect();
    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
    post("").map(|_| StreamBody::new(futures_util::stream::iter(frames)))
}

fn example_review() -> String {
    let metadata = json!({"name": "web", "annotations": {"linkerd.io/inject": "enabled"}});
    let object = json!({"kind": "Pod", "metadata": metadata,
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    let request = json!({"uid": "705ab4f5", "namespace": "shop", "object": object});
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
        .to_string()
}

#[tokio::test]
async fn both_http_versions_give_the_same_answer() {
    let server = Server::open().await;
    let (status, over_1) = server.send(Version::HTTP_11, post(example_review())).await;
    let (_, over_2) = server.send(Version::HTTP_2, post(example_review())).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(over_1, over_2);
    let answer: Value = serde_json::from_slice(&over_1).expect("must be JSON");
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], "705ab4f5");
    assert_eq!(answer["response"]["allowed"], true);
    server.close().await;
}

#[tokio::test]
async fn an_invalid_review_gets_one_line_of_text() {
    let server = Server::open().await;
    for body in ["", " ", "{}", "null", "[]", "{\"request\":", "not JSON", "{\"request\":{}}"] {
        let (status, text) = server.post(body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
        assert!(text.ends_with('\n') && text.trim_end().lines().count() == 1, "{text:?}");
    }
    let (status, _) = server.post(Bytes::from_static(b"{\"request\":{\"uid\":\"\xff\"}}")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let deep = "[".repeat(1 << 20);
    assert_eq!(server.post(deep).await.0, StatusCode::BAD_REQUEST);
    server.must_still_serve().await;
    server.close().await;
}

#[tokio::test]
async fn an_invalid_object_is_denied_with_its_uid() {
    let server = Server::open().await;
    let (status, text) = server
        .post(r#"{"request":{"uid":"u1","object":{"kind":"Pod","spec":{"containers":"many"}}}}"#)
        .await;
    let answer: Value = serde_json::from_str(&text).expect("must be JSON");
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer["response"]["uid"], "u1");
    assert_eq!(answer["response"]["allowed"], false);
    assert_ne!(answer["response"]["status"]["message"], Value::Null);
    server.close().await;
}

#[tokio::test]
async fn other_methods_are_not_allowed() {
    let server = Server::open().await;
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let mut request = post("");
        *request.method_mut() = method;
        let (status, _) = server.send(Version::HTTP_11, request).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    }
    server.close().await;
}

#[tokio::test]
async fn a_body_of_10_mib_is_read_and_a_larger_one_is_not() {
    let server = Server::open().await;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut body = example_review().into_bytes();
        body.resize(MAX_BODY_BYTES, b' ');
        assert_eq!(server.send(version, post(body.clone())).await.0, StatusCode::OK);
        assert_eq!(server.send(version, unannounced(&body)).await.0, StatusCode::OK);
        body.push(b' ');
        assert_eq!(server.send(version, unannounced(&body)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(server.send(version, post(body)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    }
    server.close().await;
}

#[tokio::test]
async fn tls_1_2_is_refused() {
    let server = Server::open().await;
    let refused = server.handshake(&rustls::version::TLS12, "http/1.1").await;
    let refused = refused.expect_err("TLS 1.2 must be refused");
    let reason = refused.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let expected = rustls::Error::AlertReceived(AlertDescription::ProtocolVersion);
    assert_eq!(reason, Some(&expected));
    server.must_still_serve().await;
    server.close().await;
}

#[tokio::test]
async fn a_broken_connection_does_not_affect_others() {
    let server = Server::open().await;
    let silent = TcpStream::connect(server.addr).await.expect("the server must be open");
    let mut plain = TcpStream::connect(server.addr).await.expect("the server must be open");
    plain.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("must be sent");
    let mut garbage = TcpStream::connect(server.addr).await.expect("the server must be open");
    garbage.write_all(&[0x16, 3, 1, 0xff, 0xff, 0, 0, 0]).await.expect("must be sent");
    let mut broken = server.connect("http/1.1").await;
    let head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{\"request\"";
    broken.write_all(head).await.expect("must be sent");
    drop(broken);
    let mut answer = Vec::new();
    let end = timeout(PATIENCE, plain.read_to_end(&mut answer)).await.expect("must be closed");
    assert!(end.is_err() || !answer.starts_with(b"HTTP/"), "plain HTTP must not be answered");
    server.must_still_serve().await;
    drop((silent, garbage));
    server.close().await;
}

#[tokio::test]
async fn shutdown_answers_accepted_requests() {
    let server = Server::open().await;
    let mut stream = server.connect("http/1.1").await;
    let review = example_review();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        review.len()
    );
    stream.write_all(head.as_bytes()).await.expect("must be sent");
    // The server requests the body, so it has accepted the request.
    let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    timeout(PATIENCE, stream.read_exact(&mut asked)).await.expect("must not hang").expect("read");
    let Server { stop, serving, .. } = server;
    drop(stop);
    stream.write_all(review.as_bytes()).await.expect("must be sent");
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("must end").expect("read");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains(r#""verdict":"injected""#), "{answer}");
    timeout(PATIENCE, serving).await.expect("must stop").expect("must not panic");
}
