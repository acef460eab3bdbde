//! `injectd serve` with a gRPC server, and callers with a connection each.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_api::{
    client::{Client, Connect, ConnectError},
    v1::{InjectRequest, InjectResponse, InjectStreamRequest, Verdict},
};
use injectd_harness::{
    certificates::Certificate,
    client::Webhook,
    expect::{DEADLINE, NotPassed, Outcome, eventually, expect, expect_contains, failed},
    injectd::Injectd,
    lab::{Bench, root},
    scenario::{explain, with_binary},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{error::Elapsed, timeout};
use tonic::{
    Code, IntoStreamingRequest, Status, Streaming,
    transport::{self, Channel, ClientTlsConfig, Endpoint},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

pub(crate) const SERVICE: &str = "injectd.v1.Injector";
pub(crate) const INJECT: &str = "/injectd.v1.Injector/Inject";
pub(crate) const STREAM: &str = "/injectd.v1.Injector/InjectStream";
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The name in the server's certificate.
pub(crate) const HOST: &str = "localhost";
/// Begins the line with the address, and the line after all addresses.
const ADDRESS: &str = "gRPC server: ";
const LAST_LINE: &str = "try it: ";

/// A server on free ports, its files in a folder of its own.
pub(crate) struct Server {
    pub(crate) injectd: Injectd,
    pub(crate) folder: TempDir,
    /// Of the gRPC server: HOST:PORT or unix:PATH.
    pub(crate) address: String,
}

/// Why a call was not answered.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no connection, and the reason.
    NoConnection(String),
    Status(Status),
    /// There was no answer in time.
    None(NotPassed),
}

pub(crate) type Called = Result<InjectResponse, Refusal>;

/// Runs a scenario with a server on loopback that has these flags, beside others.
pub(crate) async fn with_server(
    flags: &[&str],
    scenario: impl AsyncFnOnce(&mut Server) -> Outcome,
) -> Outcome {
    with_binary(async |bench| {
        let mut server = Server::new(bench, flags)?;
        server.start().await?;
        let outcome = scenario(&mut server).await;
        explain(&outcome, "injectd's log", server.injectd.log().lines());
        outcome
    })
    .await
}

impl Server {
    /// `serve --standalone` with a gRPC server on loopback.
    pub(crate) fn new(bench: &Bench, flags: &[&str]) -> Outcome<Self> {
        Self::with(bench, "127.0.0.1:0", &[&["--standalone"], flags].concat())
    }

    /// `serve` with a gRPC server at this address; none if it is empty.
    pub(crate) fn with(bench: &Bench, address: &str, flags: &[&str]) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let certificate = Certificate::new(HOST, LOOPBACK)?;
        fs::write(folder.path().join("ca.crt"), &certificate.ca)?;
        let usual = ["serve", "--reload-interval", "200ms", "--drain-delay", "200ms"];
        let arguments: Vec<_> = usual.iter().chain(flags).map(|&flag| flag.to_owned()).collect();
        let path = folder.path();
        let mut injectd = Injectd::serve(&bench.binary, path, LOOPBACK, certificate, &arguments)?;
        injectd.set_flag("--grpc-addr", address);
        Ok(Self { injectd, folder, address: String::new() })
    }

    /// Starts the process and waits until it has printed the address of its gRPC server.
    pub(crate) async fn start(&mut self) -> Outcome {
        let before = self.injectd.log().len();
        self.injectd.start().await?;
        let printed = eventually("the servers are open", async || {
            let printed = self.injectd.log().split_off(before);
            expect_contains("its output", LAST_LINE, &printed).map(|()| printed)
        })
        .await?;
        let line = printed.lines().find_map(|line| line.strip_prefix(ADDRESS));
        let address = line.and_then(|line| line.split(' ').next());
        self.address = address.map(str::to_owned).unwrap_or_default();
        Ok(())
    }

    /// The port of the gRPC server on this machine.
    pub(crate) fn socket(&self) -> Outcome<SocketAddr> {
        let port = self.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.ok_or_else(|| failed(format!("no port in {:?}", self.address)))?;
        Ok(SocketAddr::new(LOOPBACK, port))
    }

    /// The gRPC server, for frames of HTTP/2.
    pub(crate) fn raw(&self) -> Outcome<Webhook<'_>> {
        Ok(Webhook { addr: self.socket()?, ..self.injectd.client() })
    }

    /// The file with the CA that clients verify the server by.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    // === calls ===

    /// A client with a connection of its own.
    pub(crate) async fn client(&self, connect: &Connect) -> Result<Client, Refusal> {
        let url = if self.address.starts_with("unix:") {
            self.address.clone()
        } else {
            format!("https://{}", self.socket().map_err(Refusal::None)?)
        };
        let ca = Some(self.injectd.ca().as_bytes().to_vec());
        let connect = Connect { ca, server_name: Some(HOST.to_owned()), ..connect.clone() };
        let client = timeout(DEADLINE, connect.to(&url)).await.map_err(too_late)?;
        Ok(client?.max_encoding_message_size(usize::MAX))
    }

    /// A client of anyone.
    pub(crate) async fn any_client(&self) -> Outcome<Client> {
        Ok(self.client(&Connect::default()).await?)
    }

    /// One call over a connection of its own.
    pub(crate) async fn call(&self, connect: &Connect, request: InjectRequest) -> Called {
        let mut client = self.client(connect).await?;
        let answer = timeout(DEADLINE, client.inject(request)).await.map_err(too_late)?;
        Ok(answer?.into_inner())
    }

    /// Fails unless a new caller gets a sidecar for this request.
    pub(crate) async fn expect_served(&self, connect: &Connect, request: InjectRequest) -> Outcome {
        expect_injected(&self.call(connect, request).await?)
    }

    /// Fails unless the process runs and anyone is served.
    pub(crate) async fn expect_well(&mut self) -> Outcome {
        self.injectd.expect_running()?;
        self.expect_served(&Connect::default(), request()).await
    }

    /// A channel to the server for services other than its own; it needs no credentials.
    pub(crate) async fn channel(&self) -> Outcome<Channel> {
        let ca = transport::Certificate::from_pem(self.injectd.ca());
        let tls = ClientTlsConfig::new().ca_certificate(ca).domain_name(HOST);
        let endpoint = Endpoint::from_shared(format!("https://{}", self.socket()?))?;
        Ok(timeout(DEADLINE, endpoint.tls_config(tls)?.connect()).await??)
    }

    // === what the process itself says ===

    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        self.injectd.metric(name, labels).await
    }

    /// The patch of the webhook server of the same process for the example pod.
    pub(crate) async fn patch_of_webhook(&self) -> Outcome<Vec<u8>> {
        let pod: Value = serde_json::from_slice(&pod()?)?;
        let response = self.injectd.client().review("default", &pod, 10).await?.response()?;
        let patch = response["patch"].as_str().ok_or_else(|| failed("the webhook has no patch"))?;
        Ok(BASE64_STANDARD.decode(patch)?)
    }
}

/// The status of health.v1 of a service.
pub(crate) async fn health(channel: &Channel, service: &str) -> Outcome<i32> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let asked = HealthClient::new(channel.clone()).check(request).await;
    Ok(asked?.into_inner().status)
}

/// The answers to a stream of requests, each with the namespace, kind and object it has.
pub(crate) async fn answers_of(
    client: &mut Client,
    requests: impl IntoStreamingRequest<Message = InjectStreamRequest>,
) -> Outcome<Streaming<injectd_api::v1::InjectStreamResponse>> {
    Ok(timeout(DEADLINE, client.inject_stream(requests)).await??.into_inner())
}

// === requests ===

/// The example pod, for which a sidecar is requested.
pub(crate) fn request() -> InjectRequest {
    let object = pod().unwrap_or_default().into();
    let (namespace, kind) = ("default".to_owned(), "Pod".to_owned());
    InjectRequest { namespace, kind, object, ..InjectRequest::default() }
}

pub(crate) fn with_object(object: impl Into<Vec<u8>>) -> InjectRequest {
    InjectRequest { object: object.into().into(), ..request() }
}

pub(crate) fn of_stream(uid: &str, request: InjectRequest) -> InjectStreamRequest {
    InjectStreamRequest { request: Some(InjectRequest { uid: uid.to_owned(), ..request }) }
}

pub(crate) fn pod_file() -> PathBuf {
    root().join("e2e/clients/pod.json")
}

fn pod() -> Outcome<Vec<u8>> {
    Ok(fs::read(pod_file())?)
}

// === outcomes ===

pub(crate) fn expect_injected(response: &InjectResponse) -> Outcome {
    expect("the verdict", Verdict::Injected, response.verdict())?;
    let patch = String::from_utf8_lossy(&response.patch);
    expect_contains("the patch", "linkerd-proxy", &patch)
}

/// Fails unless a call ends with this status, whose message has these words.
pub(crate) fn expect_status(code: Code, words: &str, called: Called) -> Outcome {
    match called {
        Err(Refusal::Status(status)) => {
            expect(format!("the status ({})", status.message()), code, status.code())?;
            expect_contains("the message", words, status.message())
        }
        other => Err(failed(format!("the status: expected {code:?}, found {other:?}"))),
    }
}

/// Fails unless TLS refuses the caller.
pub(crate) fn expect_no_connection(called: Called) -> Outcome {
    match called {
        Err(Refusal::NoConnection(_)) => Ok(()),
        other => Err(failed(format!("expected no connection, found {other:?}"))),
    }
}

fn no_connection(why: impl Into<NotPassed>) -> Refusal {
    Refusal::NoConnection(why.into().to_string())
}

fn too_late(why: Elapsed) -> Refusal {
    Refusal::None(why.into())
}

impl From<ConnectError> for Refusal {
    fn from(error: ConnectError) -> Self {
        no_connection(error)
    }
}

impl From<Status> for Refusal {
    /// With TLS 1.3 a refused client learns it with its first call: a status that no server sent.
    fn from(status: Status) -> Self {
        match std::error::Error::source(&status) {
            Some(_) => no_connection(status),
            None => Self::Status(status),
        }
    }
}

impl From<Refusal> for NotPassed {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoConnection(why) => failed(format!("no connection: {why}")),
            Refusal::Status(status) => status.into(),
            Refusal::None(why) => why,
        }
    }
}
