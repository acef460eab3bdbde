//! `injectd probe`: a server that is ready, and webhooks that inject or do not.

use injectd_harness::process::{Addresses, Process};
use injectd_testkit::istio::{CONFIG, MESH, VALUES};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::{File, command, file, injectd, text};

/// A CA as PEM, and a certificate of it for `localhost` with its key.
struct Certificates {
    ca: File,
    leaf: File,
    key: File,
}

impl Certificates {
    fn new() -> Self {
        let key = || KeyPair::generate().expect("the system must provide randomness");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = key();
        let ca = params.self_signed(&ca_key).expect("a CA must be made");
        let issuer = Issuer::new(params, ca_key);
        let (params, key) = (CertificateParams::new(vec!["localhost".to_owned()]), key());
        let leaf = params.expect("must be a name").signed_by(&key, &issuer);
        Self {
            ca: file("ca", ca.pem()),
            leaf: file("leaf", leaf.expect("a certificate must be made").pem()),
            key: file("key", key.serialize_pem()),
        }
    }
}

/// A webhook server for both meshes, without a cluster.
struct Server {
    /// Killed with the server.
    _process: Process,
    addresses: Addresses,
}

impl Server {
    async fn start(certificates: &Certificates, args: &[&str]) -> Self {
        let istio = [("config", CONFIG), ("values", VALUES), ("mesh", MESH)];
        let [config, values, mesh] = istio.map(|(name, content)| file(name, content));
        let mut serve = command(&["serve", "--standalone", "--mesh", "linkerd,istio"]);
        serve.args(["--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--grpc-addr", ""]);
        serve.args(["--injector-config", config.path(), "--injector-values", values.path()]);
        serve.args(["--mesh-config", mesh.path(), "--tls-cert", certificates.leaf.path()]);
        serve.args(["--tls-key", certificates.key.path()]).args(args);
        let started = Process::serve(serve).await;
        let (process, addresses) = started.expect("the servers must open");
        Self { _process: process, addresses }
    }

    fn webhook(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.addresses.webhook.port())
    }

    fn admin(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.addresses.admin.port())
    }
}

/// Probes with these arguments. The exit code, and all that is printed.
fn probe(args: &[&str]) -> (Option<i32>, String) {
    let output = injectd(&[&["probe"], args].concat(), "");
    let printed = [&output.stdout, &output.stderr].map(|bytes| text(bytes).to_owned());
    (output.status.code(), printed.concat())
}

#[tokio::test]
async fn webhooks_of_both_meshes_inject_and_are_verified() {
    let certificates = Certificates::new();
    let server = Server::start(&certificates, &[]).await;
    let ca = ["--ca", certificates.ca.path()];
    let (linkerd, istio) = (server.webhook("/linkerd"), server.webhook("/inject"));

    let (code, printed) = probe(&[&["--review", "linkerd", &linkerd], &ca[..]].concat());
    assert_eq!((code, printed), (Some(0), format!("{linkerd}: injects linkerd-proxy\n")));
    let (code, printed) = probe(&[&["--review", "istio", &istio, &istio], &ca[..]].concat());
    let line = format!("{istio}: injects istio-proxy\n");
    assert_eq!((code, printed), (Some(0), line.repeat(2)));
    // Any certificate is accepted.
    assert_eq!(probe(&["--review", "istio", &istio]).0, Some(0));
    // Behind a port-forward the host is not the name of the certificate.
    let forwarded = linkerd.replace("localhost", "127.0.0.1");
    let named = |name| ["--review", "linkerd", &forwarded, "--server-name", name];
    let (code, printed) = probe(&[&named("localhost")[..], &ca].concat());
    assert_eq!((code, printed), (Some(0), format!("{forwarded}: injects linkerd-proxy\n")));
    for name in ["other.svc", "not a name"] {
        let (code, printed) = probe(&[&named(name)[..], &ca].concat());
        assert!(code != Some(0) && printed.contains(name), "{printed}");
    }

    let other = Certificates::new();
    let revision = server.webhook("/istio/next/inject");
    for (args, problem) in [
        (
            &["--review", "linkerd", &linkerd, "--ca", other.ca.path()][..],
            "cannot connect: client error (Connect): invalid peer certificate: ",
        ),
        (
            &["--review", "istio", &linkerd],
            "allows the pod without the container istio-proxy; reasons: none given",
        ),
        (&["--review", "istio", &revision], "HTTP status 404 Not Found; expected 200"),
        (&["--review", "istio", &istio, &revision], &revision),
        (&["--review", "linkerd", &linkerd.replace("https", "http")], "expected https://"),
    ] {
        let (code, printed) = probe(args);
        assert!(code != Some(0) && printed.contains(problem), "{args:?}: {printed}");
    }
}

#[tokio::test]
async fn a_webhook_that_denies_the_pod_is_a_failure_with_its_reason() {
    let certificates = Certificates::new();
    let objects = file("objects", "kind: Namespace\nmetadata: {name: other}\n");
    let server = Server::start(&certificates, &["--objects", objects.path()]).await;
    let (code, printed) = probe(&["--review", "linkerd", &server.webhook("/")]);
    assert_eq!(code, Some(1), "{printed}");
    let problem = "the webhook denies the pod: namespaces \"default\" not found";
    assert!(printed.contains(problem), "{printed}");
}

#[tokio::test]
async fn a_server_is_ready_or_not() {
    let server = Server::start(&Certificates::new(), &[]).await;
    let ready = server.admin("/ready");
    assert_eq!(probe(&[&ready]), (Some(0), format!("{ready}: ready\n")));
    let missing = server.admin("/missing");
    let (code, printed) = probe(&[&missing]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(&format!("{missing}: HTTP status 404 Not Found")), "{printed}");
    drop(server);
    let (code, printed) = probe(&[&ready]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains(&format!("error: {ready}: cannot connect")), "{printed}");
}

#[test]
fn wrong_flags_exit_with_64() {
    let empty = file("empty", "");
    let webhook = "https://localhost:1/";
    for (args, problem) in [
        (&[][..], "<URL>"),
        (&[webhook], "--review"),
        (&["--ca", empty.path(), "http://localhost:1/"], "--review"),
        (&["--review", "consul", webhook], "consul"),
        (&["--review", "linkerd", "--server-name", "x", webhook], "--ca"),
        (&["--review", "linkerd", webhook, "--ca", empty.path()], "--ca contains no valid CA"),
    ] {
        let (code, printed) = probe(args);
        assert_eq!(code, Some(64), "{args:?}: {printed}");
        assert!(printed.contains(problem), "{args:?}: {printed}");
    }
    let (code, printed) = probe(&["--review", "linkerd", webhook, "--ca", "/missing"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("cannot read --ca /missing"), "{printed}");
}
