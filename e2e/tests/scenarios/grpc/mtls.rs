//! Client certificates: which are accepted, on the gRPC server and on the webhook's port.

use std::{fs, path::PathBuf};

use injectd_api::client::Connect;
use injectd_harness::{
    certificates::{Ca, Certificate},
    client::{patch_of, probe, review_of},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    http2,
    lab::Bench,
    objects::{enabled, pod},
    scenario::with_binary,
};
use tempfile::TempDir;
use tonic::Code;

use super::server::{
    Called, Server, expect_injected, expect_no_connection, expect_status, request,
};

const DNS: &str = "controller.example.com";
const SPIFFE: &str = "spiffe://cluster.local/ns/workflows/sa/controller";
const STRANGER: &str = "stranger.example.com";
const ADDED: &str = "added.example.com";
const FAILED_HANDSHAKES: &str = "injectd_handshakes_failed_total";

fn with_certificate(certificate: &Certificate) -> Connect {
    let Certificate { certificate, key, .. } = certificate.clone();
    Connect { identity: Some((certificate.into_bytes(), key.into_bytes())), ..Connect::default() }
}

/// A server that requires certificates of a CA.
struct Guarded {
    server: Server,
    known: Ca,
    client_ca: PathBuf,
    allow_file: PathBuf,
    _files: TempDir,
}

impl Guarded {
    async fn start(bench: &Bench) -> Outcome<Self> {
        let files = tempfile::tempdir()?;
        let [client_ca, allow_file] =
            ["client-ca.crt", "allow"].map(|file| files.path().join(file));
        let known = Ca::new()?;
        fs::write(&client_ca, known.pem())?;
        fs::write(&allow_file, "# empty\n")?;
        let flags = [
            "--grpc-client-ca",
            &client_ca.to_string_lossy(),
            // Host names are not case-sensitive.
            "--grpc-allow",
            &format!("{DNS},{SPIFFE},Upper.Example.com"),
            "--grpc-allow-file",
            &allow_file.to_string_lossy(),
        ];
        let mut server = Server::new(bench, &flags)?;
        server.start().await?;
        Ok(Self { server, known, client_ca, allow_file, _files: files })
    }

    async fn call(&self, certificate: &Certificate) -> Called {
        self.server.call(&with_certificate(certificate), request()).await
    }

    async fn expect_served(&self, certificate: &Certificate) -> Outcome {
        expect_injected(&self.call(certificate).await?)
    }

    async fn expect_denied(&self, certificate: &Certificate) -> Outcome {
        let words = &certificate.host;
        expect_status(Code::PermissionDenied, words, self.call(certificate).await)
    }

    /// TLS refuses the caller, and the process counts it.
    async fn expect_no_connection(&self, connect: &Connect) -> Outcome {
        let labels = [("server", "grpc")];
        let before = self.server.metric(FAILED_HANDSHAKES, &labels).await?;
        expect_no_connection(self.server.call(connect, request()).await)?;
        eventually("the handshake is counted", async || {
            let found = self.server.metric(FAILED_HANDSHAKES, &labels).await?;
            expect("whether one more has failed", true, found > before)
        })
        .await
    }

    /// Replaces the file of the CA at once.
    fn replace_ca(&self, pem: &str) -> Outcome {
        let fresh = self.client_ca.with_extension("new");
        fs::write(&fresh, pem)?;
        Ok(fs::rename(fresh, &self.client_ca)?)
    }
}

#[tokio::test]
async fn a_certificate_is_judged_by_its_ca_its_dates_and_its_name() -> Outcome {
    with_binary(async |bench| {
        let mut it = Guarded::start(bench).await?;
        for name in [DNS, SPIFFE, "upper.example.com"] {
            it.expect_served(&it.known.issue_client(name)?).await?;
        }
        it.expect_denied(&it.known.issue_client(STRANGER)?).await?;
        it.expect_no_connection(&Connect::default()).await?;
        let of_other = Ca::new()?.issue_client(DNS)?;
        it.expect_no_connection(&with_certificate(&of_other)).await?;
        let expired = it.known.issue_expired_client(DNS)?;
        it.expect_no_connection(&with_certificate(&expired)).await?;
        expect_webhook_serves(&it.server).await?;
        it.server.injectd.terminate().await
    })
    .await
}

#[tokio::test]
async fn a_changed_list_of_callers_applies_to_open_connections() -> Outcome {
    with_binary(async |bench| {
        let it = Guarded::start(bench).await?;
        let added = it.known.issue_client(ADDED)?;
        it.expect_denied(&added).await?;
        let mut open = it.server.client(&with_certificate(&added)).await?;
        fs::write(&it.allow_file, format!("{ADDED} # since today\n"))?;
        eventually("the name is allowed", async || it.expect_served(&added).await).await?;
        expect_injected(&open.inject(request()).await?.into_inner())?;
        it.expect_served(&it.known.issue_client(DNS)?).await?;
        fs::write(&it.allow_file, "")?;
        eventually("the name is denied", async || it.expect_denied(&added).await).await?;
        let Err(status) = open.inject(request()).await else { return Err(failed("served")) };
        expect("the status on the open connection", Code::PermissionDenied, status.code())
    })
    .await
}

#[tokio::test]
async fn a_changed_client_ca_is_applied_and_an_invalid_one_is_not() -> Outcome {
    with_binary(async |bench| {
        let it = Guarded::start(bench).await?;
        let other = Ca::named("another")?;
        let (old, new) = (it.known.issue_client(DNS)?, other.issue_client(DNS)?);
        it.expect_served(&old).await?;
        it.replace_ca(&other.pem())?;
        eventually("the new CA is in use", async || it.expect_served(&new).await).await?;
        it.expect_no_connection(&with_certificate(&old)).await?;
        let before = it.server.injectd.log().len();
        it.replace_ca("not a certificate\n")?;
        eventually("the log names the flag", async || {
            let log = it.server.injectd.log().split_off(before);
            expect_contains("what was logged since", "--grpc-client-ca", &log)
        })
        .await?;
        it.expect_served(&new).await?;
        expect("the status of /ready", 200, probe(it.server.injectd.admin, "/ready").await?.0)
    })
    .await
}

#[tokio::test]
async fn on_the_webhooks_port_only_grpc_asks_for_certificates() -> Outcome {
    with_binary(async |bench| {
        let (folder, known) = (tempfile::tempdir()?, Ca::new()?);
        let client_ca = folder.path().join("client-ca.crt");
        fs::write(&client_ca, known.pem())?;
        let client_ca = client_ca.to_string_lossy();
        let grpc = ["--grpc-on-webhook", "--grpc-client-ca", &client_ca, "--grpc-allow", DNS];
        let mut server = Server::with(bench, "", &[&["--standalone"], &grpc[..]].concat())?;
        server.start().await?;
        expect("the address of a gRPC server", "", &*server.address)?;
        server.address = server.injectd.webhook.to_string();
        expect_webhook_serves(&server).await?;
        let call = async |certificate: Certificate| {
            server.call(&with_certificate(&certificate), request()).await
        };
        expect_injected(&call(known.issue_client(DNS)?).await?)?;
        let anyone = server.call(&Connect::default(), request()).await;
        expect_status(Code::Unauthenticated, "", anyone)?;
        let stranger = call(known.issue_client(STRANGER)?).await;
        expect_status(Code::PermissionDenied, STRANGER, stranger)?;
        expect_no_connection(call(Ca::new()?.issue_client(DNS)?).await)?;
        server.injectd.terminate().await
    })
    .await
}

/// The webhook of the process requires no certificate, in both versions of HTTP.
async fn expect_webhook_serves(server: &Server) -> Outcome {
    let pod = pod("web", &enabled());
    let webhook = server.injectd.client();
    patch_of(&webhook.review("default", &pod, 10).await?.response()?)?;
    let mut http2 = http2::client::Client::open(&webhook).await?;
    let answer = http2.post("/", "application/json", review_of("default", &pod)).await?;
    expect("the status over HTTP/2", 200, answer.status)?;
    expect_contains("the answer", "\"patch\":", &String::from_utf8_lossy(&answer.body))
}
