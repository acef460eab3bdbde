//! Access control: certificates over real TLS, and tokens that an API server in the same process
//! reviews.

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
    grpc::{Access, Allowed, Callers, Grpc, Life},
    server::{Addr, Bound, EvaluationTurns, Limits, Server, Shutdown},
};
use injectd_cluster::Tokens;
use injectd_profiles::Profile;
use injectd_telemetry::{metrics::ConnectionMetrics, readiness::Readiness};
use injectd_tls::{ClientAuth, Identity};
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

use crate::{PATIENCE, enabled, server};

/// The DNS name of all servers in these tests.
const SERVER: &str = "localhost";
const SPIFFE: &str = "spiffe://mesh/ns/jobs/sa/runner";

/// A CA that signs certificates.
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

    /// Certificate and key for a DNS name or a URI, as PEM.
    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (Vec<u8>, Vec<u8>) {
        let mut params = CertificateParams::default();
        let text = name.try_into().expect("ASCII");
        let is_uri = name.contains(':');
        let san = if is_uri { SanType::URI(text) } else { SanType::DnsName(text) };
        params.subject_alt_names = vec![san];
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate.pem().into_bytes(), key.serialize_pem().into_bytes())
    }
}

/// A server on a port, with a client CA.
struct Guarded {
    ca: Ca,
    clients: Ca,
    addr: SocketAddr,
    access: Arc<Access>,
}

impl Guarded {
    async fn open(tokens: Option<Arc<Tokens>>, allowed: Option<Allowed>) -> Self {
        let (ca, clients) = (Ca::new(), Ca::new());
        let (chain, key) = ca.sign(SERVER, |_| {});
        let identity = Identity::from_pem(&chain, &key).expect("PEM");
        let pem = clients.pem();
        let auth = match &tokens {
            Some(_) => ClientAuth::Offered(&pem),
            None => ClientAuth::Required(&pem),
        };
        let config =
            injectd_tls::server_config(identity, auth, &injectd_tls::HTTP2).expect("a pair");
        let access = Arc::new(Access::new(Callers::Authenticated(tokens), allowed));
        let profile = Profile::Linkerd(Arc::new(injectd_testkit::injector()));
        let limits = Limits { drain_timeout: Duration::from_secs(1), ..Limits::default() };
        let shutdown = || Shutdown::after(std::future::pending());
        let (observer, readiness) = (server::observer(), Readiness::default());
        let open = Arc::clone(&access);
        let turns = EvaluationTurns::of_runtime(&limits);
        let life = Life { readiness, shutdown: shutdown(), turns };
        let grpc = Grpc::new(profile, &limits, observer, open, life);
        let bound = Bound::bind("127.0.0.1:0").await.expect("a port");
        let Addr::Tcp(addr) = *bound.addr() else { panic!("expected a port") };
        let server =
            Server::new(Arc::new(ArcSwap::new(config)), limits, ConnectionMetrics::default());
        tokio::spawn(bound.serve(server, grpc, shutdown()));
        Self { ca, clients, addr, access }
    }

    fn connect(&self) -> Connect {
        Connect {
            ca: Some(self.ca.pem()),
            server_name: Some(SERVER.to_owned()),
            ..Connect::default()
        }
    }

    /// The status code of a request; `None` if the TLS handshake failed.
    async fn code(&self, connect: Connect) -> Option<Code> {
        let asked = async {
            let mut client = connect.to(&format!("https://{}", self.addr)).await?;
            Ok::<_, ConnectError>(client.inject(enabled()).await)
        };
        let asked = tokio::time::timeout(PATIENCE, asked).await.expect("must not hang");
        match asked {
            Ok(Ok(_)) => Some(Code::Ok),
            // With TLS 1.3, a rejected client gets the error with its first request.
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
    /// The TLS configuration of a client with a certificate that expires then, and stored sessions.
    fn tls_until(&self, end: SystemTime) -> TlsConnector {
        let (chain, key) =
            self.clients.sign("jobs.example", |params| params.not_after = end.into());
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

    /// An HTTP/2 connection that has received data from the server.
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
        tokio::time::timeout(PATIENCE, begin)
            .await
            .expect("must not hang")
            .expect("must be accepted")
    }
}

fn in_seconds(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_session_of_a_client_certificate_is_not_resumed() {
    let server = Guarded::open(None, None).await;
    let tls = server.tls_until(in_seconds(3600));
    for _ in 0..3 {
        let stream = server.begun(&tls).await;
        let (_, session) = stream.get_ref();
        assert_eq!(session.handshake_kind(), Some(HandshakeKind::Full));
    }
}

#[tokio::test]
async fn a_connection_ends_when_its_client_certificate_expires() {
    let server = Guarded::open(None, None).await;
    let mut stream = server.begun(&server.tls_until(in_seconds(3))).await;
    let ended = async {
        // The server may close the connection without `close_notify`.
        drop(stream.read_to_end(&mut Vec::new()).await);
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("must be closed");
}

#[tokio::test]
async fn metadata_over_the_limit_gets_a_grpc_status() {
    let server = Guarded::open(None, None).await;
    let (chain, key) = server.clients.sign("jobs.example", |_| {});
    let connect = Connect { identity: Some((chain, key)), ..server.connect() };
    let mut client = connect.to(&format!("https://{}", server.addr)).await.expect("a connection");
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
async fn callers_authenticate_with_certificates() {
    let allowed = ["JOBS.example", SPIFFE].iter().collect();
    let server = Guarded::open(None, Some(allowed)).await;
    for (name, code) in [
        ("jobs.example", Code::Ok),
        ("Jobs.Example", Code::Ok),
        (SPIFFE, Code::Ok),
        ("other.example", Code::PermissionDenied),
        ("spiffe://mesh/ns/jobs/sa/other", Code::PermissionDenied),
    ] {
        assert_eq!(server.code_of(server.clients.sign(name, |_| {})).await, Some(code), "{name}");
    }
    server.access.replace_allowed(Some(["other.example"].iter().collect()));
    let other = server.clients.sign("other.example", |_| {});
    assert_eq!(
        server.code_of(other.clone()).await,
        Some(Code::Ok),
        "the new names must be allowed"
    );
    server.access.replace_allowed(Some(Allowed::default()));
    assert_eq!(
        server.code_of(other).await,
        Some(Code::PermissionDenied),
        "no caller must be allowed"
    );
}

#[tokio::test]
async fn a_client_without_a_valid_certificate_fails_the_handshake() {
    let server = Guarded::open(None, None).await;
    let name = "jobs.example";
    assert_eq!(server.code_of(server.clients.sign(name, |_| {})).await, Some(Code::Ok));
    assert_eq!(server.code(server.connect()).await, None, "no certificate");
    assert_eq!(
        server.code_of(Ca::new().sign(name, |_| {})).await,
        None,
        "a certificate of another CA"
    );
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    };
    assert_eq!(
        server.code_of(server.clients.sign(name, expired)).await,
        None,
        "an expired certificate"
    );
}

/// An API server with valid tokens of three users. Counts its requests.
fn tokens(asked: &Arc<AtomicUsize>, is_down: bool) -> Arc<Tokens> {
    let asked = Arc::clone(asked);
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        let asked = Arc::clone(&asked);
        async move {
            asked.fetch_add(1, Ordering::Relaxed);
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let review: Value = serde_json::from_slice(&body).expect("a TokenReview");
            let user = |name| json!({"authenticated": true, "audiences": ["injectd"], "user": {"username": name}});
            let status = match review["spec"]["token"].as_str() {
                Some("good") => user("system:serviceaccount:jobs:runner"),
                Some("dns") => user("jobs.example"),
                Some("uri") => user(SPIFFE),
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
async fn callers_authenticate_with_tokens() {
    let asked = Arc::default();
    let server = Guarded::open(Some(tokens(&asked, false)), None).await;
    for (token, code) in [
        (Some("good"), Code::Ok),
        (Some("meant-for-others"), Code::Unauthenticated),
        (Some("bad"), Code::Unauthenticated),
        (None, Code::Unauthenticated),
    ] {
        assert_eq!(server.code_with(token).await, Some(code), "{token:?}");
    }
    assert_eq!(server.code_with(Some("good")).await, Some(Code::Ok));
    assert_eq!(asked.load(Ordering::Relaxed), 3, "the result of a token review must be cached");
    let certificate = server.clients.sign("jobs.example", |_| {});
    assert_eq!(
        server.code_of(certificate).await,
        Some(Code::Ok),
        "a certificate or a token must be enough"
    );
    server.access.replace_allowed(Some(["system:serviceaccount:jobs:other"].iter().collect()));
    assert_eq!(server.code_with(Some("good")).await, Some(Code::PermissionDenied));
}

#[tokio::test]
async fn an_empty_name_is_not_a_name() {
    for list in [vec![""], vec!["", "jobs.example", " "]] {
        let allowed: Allowed = list.iter().collect();
        assert_eq!(allowed.is_empty(), list.len() == 1, "{list:?}");
        let server = Guarded::open(None, Some(allowed)).await;
        let nameless = server.clients.sign("", |_| {});
        assert_eq!(server.code_of(nameless).await, Some(Code::PermissionDenied), "{list:?}");
    }
}

#[tokio::test]
async fn names_of_certificates_and_users_of_tokens_are_kinds_of_their_own() {
    const USER: &str = "system:serviceaccount:jobs:runner";
    let allowed = [USER, "jobs.example", SPIFFE].iter().collect();
    let server = Guarded::open(Some(tokens(&Arc::default(), false)), Some(allowed)).await;
    assert_eq!(server.code_with(Some("good")).await, Some(Code::Ok));
    let posing = server.clients.sign(USER, |_| {});
    assert_eq!(server.code_of(posing).await, Some(Code::PermissionDenied), "a URI is not a user");
    for (token, name) in [("dns", "jobs.example"), ("uri", SPIFFE)] {
        let certificate = server.clients.sign(name, |_| {});
        assert_eq!(server.code_of(certificate).await, Some(Code::Ok), "{name}");
        let code = server.code_with(Some(token)).await;
        assert_eq!(code, Some(Code::PermissionDenied), "a user {name} is not a certificate's name");
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_reviewed_may_be_retried() {
    let server = Guarded::open(Some(tokens(&Arc::default(), true)), None).await;
    assert_eq!(server.code_with(Some("good")).await, Some(Code::Unavailable));
}
