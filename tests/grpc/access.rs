//! Who may call: certificates over real TLS, tokens reviewed by an API server in the same process.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Response, StatusCode};
use injectd::{
    client::{Connect, ConnectError},
    cluster::Tokens,
    grpc::{Access, Callers, Grpc},
    metrics::ConnectionMetrics,
    readiness::Readiness,
    server::{Addr, Bound, Door, Limits, Shutdown},
    tls::{self, ClientAuth, Identity},
};
use kube::{Client, client::Body};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd,
};
use rustls::{
    ClientConfig, HandshakeKind, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{Code, Status};

use crate::{PATIENCE, door, enabled, standalone};

/// The name of every server here.
const SERVER: &str = "localhost";
const SPIFFE: &str = "spiffe://mesh/ns/jobs/sa/runner";

/// A CA and what it signs.
struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec!["ca".to_owned()]).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a CA"))
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// Certificate and key for a name, as PEM; a URI for what looks like one.
    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (Vec<u8>, Vec<u8>) {
        let mut params = CertificateParams::default();
        let text = name.try_into().expect("ASCII");
        let is_uri = name.contains("://");
        let san = if is_uri { SanType::URI(text) } else { SanType::DnsName(text) };
        params.subject_alt_names = vec![san];
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate.pem().into_bytes(), key.serialize_pem().into_bytes())
    }
}

/// A door on a port, with a client CA.
struct Guarded {
    ca: Ca,
    clients: Ca,
    addr: SocketAddr,
    access: Arc<Access>,
}

impl Guarded {
    async fn open(tokens: Option<Arc<Tokens>>, allowed: Option<Vec<String>>) -> Self {
        let (ca, clients) = (Ca::new(), Ca::new());
        let (chain, key) = ca.sign(SERVER, |_| {});
        let identity = Identity::from_pem(&chain, &key).expect("PEM");
        let pem = clients.pem();
        let auth = match &tokens {
            Some(_) => ClientAuth::Offered(&pem),
            None => ClientAuth::Required(&pem),
        };
        let config = tls::server_config(identity, auth, &tls::HTTP2).expect("a pair");
        let access = Arc::new(Access::new(Callers::Known(tokens), allowed));
        let injector = Arc::new(standalone::injector());
        let limits = Limits { drain_timeout: Duration::from_secs(1), ..Limits::default() };
        let shutdown = || Shutdown::after(std::future::pending());
        let (observer, readiness) = (door::observer(), Readiness::default());
        let open = Arc::clone(&access);
        let grpc = Grpc::new(injector, &limits, observer, open, readiness, shutdown());
        let bound = Bound::bind("127.0.0.1:0").await.expect("a port");
        let Addr::Tcp(addr) = *bound.addr() else { panic!("expected a port") };
        let door = Door::new(Arc::new(ArcSwap::new(config)), limits, ConnectionMetrics::default());
        tokio::spawn(bound.serve(door, grpc, shutdown()));
        Self { ca, clients, addr, access }
    }

    fn connect(&self) -> Connect {
        Connect {
            ca: Some(self.ca.pem()),
            server_name: Some(SERVER.to_owned()),
            ..Connect::default()
        }
    }

    /// What becomes of a request; `None`: TLS came to nothing.
    async fn code(&self, connect: Connect) -> Option<Code> {
        let asked = async {
            let mut client = connect.to(&format!("https://{}", self.addr)).await?;
            Ok::<_, ConnectError>(client.inject(enabled()).await)
        };
        let asked = tokio::time::timeout(PATIENCE, asked).await.expect("must not hang");
        match asked {
            Ok(Ok(_)) => Some(Code::Ok),
            // With TLS 1.3 a client learns of it with its first request.
            Ok(Err(status)) if is_of_transport(&status) => None,
            Ok(Err(status)) => Some(status.code()),
            Err(_) => None,
        }
    }

    async fn code_of(&self, identity: (Vec<u8>, Vec<u8>)) -> Option<Code> {
        self.code(Connect { identity: Some(identity), ..self.connect() }).await
    }

    async fn code_with(&self, token: Option<&str>) -> Option<Code> {
        self.code(Connect { token: token.map(str::to_owned), ..self.connect() }).await
    }
}

impl Guarded {
    /// A client's TLS that proves a name until then and keeps sessions.
    fn tls_until(&self, end: SystemTime) -> TlsConnector {
        let (chain, key) = self.clients.sign("jobs.example", |it| it.not_after = end.into());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&self.ca.pem()).expect("PEM")).expect("a root");
        let chain = CertificateDer::from_pem_slice(&chain).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(&key).expect("PEM");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![chain], key);
        let mut config = config.expect("a pair");
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config).into()
    }

    /// A connection that has heard the server, with HTTP/2 begun.
    async fn begun(&self, tls: &TlsConnector) -> TlsStream<TcpStream> {
        let begin = async {
            let stream = TcpStream::connect(self.addr).await?;
            let name = SERVER.try_into().expect("a name");
            let mut stream = tls.connect(name, stream).await?;
            // The preface and empty settings.
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await?;
            stream.read_exact(&mut [0; 9]).await?;
            Ok::<_, io::Error>(stream)
        };
        tokio::time::timeout(PATIENCE, begin).await.expect("must not hang").expect("must be let in")
    }
}

fn in_seconds(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_session_of_a_client_certificate_is_not_resumed() {
    let door = Guarded::open(None, None).await;
    let tls = door.tls_until(in_seconds(3600));
    for _ in 0..3 {
        let stream = door.begun(&tls).await;
        let (_, session) = stream.get_ref();
        assert_eq!(session.handshake_kind(), Some(HandshakeKind::Full));
    }
}

#[tokio::test]
async fn a_connection_ends_when_its_client_certificate_expires() {
    let door = Guarded::open(None, None).await;
    let mut stream = door.begun(&door.tls_until(in_seconds(3))).await;
    let ended = async {
        // The server may leave without a word of TLS.
        drop(stream.read_to_end(&mut Vec::new()).await);
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("must be closed");
}

#[tokio::test]
async fn metadata_that_is_too_large_is_refused_with_a_status_of_grpc() {
    let door = Guarded::open(None, None).await;
    let (chain, key) = door.clients.sign("jobs.example", |_| {});
    let connect = Connect { identity: Some((chain, key)), ..door.connect() };
    let mut client = connect.to(&format!("https://{}", door.addr)).await.expect("a connection");
    let mut request = tonic::Request::new(enabled());
    let large = "x".repeat(20 << 10).parse().expect("a value");
    request.metadata_mut().insert("x-padding", large);
    let status = client.inject(request).await.expect_err("too large");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
}

fn is_of_transport(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
}

#[tokio::test]
async fn callers_prove_their_names_by_certificates() {
    let allowed = vec!["JOBS.example".to_owned(), SPIFFE.to_owned()];
    let door = Guarded::open(None, Some(allowed)).await;
    for (name, code) in [
        ("jobs.example", Code::Ok),
        ("Jobs.Example", Code::Ok),
        (SPIFFE, Code::Ok),
        ("other.example", Code::PermissionDenied),
        ("spiffe://mesh/ns/jobs/sa/other", Code::PermissionDenied),
    ] {
        assert_eq!(door.code_of(door.clients.sign(name, |_| {})).await, Some(code), "{name}");
    }
    door.access.replace_allowed(Some(vec!["other.example".to_owned()]));
    let other = door.clients.sign("other.example", |_| {});
    assert_eq!(door.code_of(other.clone()).await, Some(Code::Ok), "names were replaced");
    door.access.replace_allowed(Some(Vec::new()));
    assert_eq!(door.code_of(other).await, Some(Code::PermissionDenied), "nobody is let in");
}

#[tokio::test]
async fn what_proves_nothing_ends_with_the_handshake() {
    let door = Guarded::open(None, None).await;
    let name = "jobs.example";
    assert_eq!(door.code_of(door.clients.sign(name, |_| {})).await, Some(Code::Ok));
    assert_eq!(door.code(door.connect()).await, None, "no certificate");
    assert_eq!(door.code_of(Ca::new().sign(name, |_| {})).await, None, "of another CA");
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    };
    assert_eq!(door.code_of(door.clients.sign(name, expired)).await, None, "expired");
}

/// An API server that knows one token; counts what it is asked.
fn tokens(asked: &Arc<AtomicUsize>, is_down: bool) -> Arc<Tokens> {
    let asked = Arc::clone(asked);
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        let asked = Arc::clone(&asked);
        async move {
            asked.fetch_add(1, Ordering::Relaxed);
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let review: Value = serde_json::from_slice(&body).expect("a TokenReview");
            let status = match review["spec"]["token"].as_str() {
                Some("good") => json!({"authenticated": true, "audiences": ["injectd"],
                    "user": {"username": "system:serviceaccount:jobs:runner"}}),
                Some("meant-for-others") => json!({"authenticated": true, "audiences": ["other"],
                    "user": {"username": "system:serviceaccount:jobs:runner"}}),
                _ => json!({"authenticated": false, "error": "no"}),
            };
            assert_eq!(review["spec"]["audiences"], json!(["injectd"]));
            let answer = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                "metadata": {}, "spec": review["spec"], "status": status});
            let code = if is_down { StatusCode::BAD_GATEWAY } else { StatusCode::CREATED };
            let response = Response::builder().status(code);
            Ok::<_, Infallible>(
                response.body(Full::<Bytes>::from(answer.to_string())).expect("a response"),
            )
        }
    });
    Arc::new(Tokens::new(Client::new(service, "default"), "injectd".to_owned(), PATIENCE))
}

#[tokio::test]
async fn callers_prove_their_names_by_tokens() {
    let asked = Arc::default();
    let door = Guarded::open(Some(tokens(&asked, false)), None).await;
    for (token, code) in [
        (Some("good"), Code::Ok),
        (Some("meant-for-others"), Code::Unauthenticated),
        (Some("bad"), Code::Unauthenticated),
        (None, Code::Unauthenticated),
    ] {
        assert_eq!(door.code_with(token).await, Some(code), "{token:?}");
    }
    assert_eq!(door.code_with(Some("good")).await, Some(Code::Ok));
    assert_eq!(asked.load(Ordering::Relaxed), 3, "a token is known for a moment");
    let certificate = door.clients.sign("jobs.example", |_| {});
    assert_eq!(door.code_of(certificate).await, Some(Code::Ok), "either will do");
    door.access.replace_allowed(Some(vec!["system:serviceaccount:jobs:other".to_owned()]));
    assert_eq!(door.code_with(Some("good")).await, Some(Code::PermissionDenied));
}

#[tokio::test]
async fn a_token_that_nobody_reviews_is_worth_another_try() {
    let door = Guarded::open(Some(tokens(&Arc::default(), true)), None).await;
    assert_eq!(door.code_with(Some("good")).await, Some(Code::Unavailable));
}
