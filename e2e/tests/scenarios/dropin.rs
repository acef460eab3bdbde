//! The binary in the container of Linkerd's proxy-injector, by the Deployment of each release.
//!
//! The container's arguments, environment, mounts, probes, ports and user are those of the manifest;
//! only `INJECTD_STANDALONE` is added, because there is no API server.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use injectd_harness::{
    certificates::{Ca, Certificate, KeyForm},
    client::{Webhook, patch_of, probe, review_of},
    connection::{Asked, Endpoint, der_of},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    isolated::isolated,
    lab::binary,
    metrics::metric,
    objects::{enabled, pod},
    scenario::{note, step},
    tls::tls_config,
    volume::files,
};
use rustls::version::{TLS12, TLS13};
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    container::Container,
    manifest::{Manifest, container, paths},
};

/// A user as a platform assigns it that chooses users itself.
const ARBITRARY_UID: u64 = 1_000_730_000;
/// The mount paths of Linkerd's manifests.
pub(crate) const TLS: &str = "/var/run/linkerd/tls";
pub(crate) const TRUST_ROOTS: &str = "/var/run/linkerd/identity/trust-roots";
pub(crate) const CONFIG: &str = "/var/run/linkerd/config";
pub(crate) const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[tokio::test]
async fn injectd_runs_as_the_deployment_of_each_release_describes() -> Outcome {
    isolated("dropin::injectd_runs_as_the_deployment_of_each_release_describes", async || {
        for (index, path) in paths()?.iter().enumerate() {
            let folder = tempfile::tempdir()?;
            let form = KeyForm::ALL[index % KeyForm::ALL.len()];
            let mut dropin = Dropin::new(Manifest::read(path)?, folder.path(), form)?;
            let name = dropin.manifest.name.clone();
            let outcome = dropin.steps().await;
            step(name, async { dropin.container.explained(outcome) }).await?;
        }
        Ok(())
    })
    .await
}

/// One manifest's container.
pub(crate) struct Dropin {
    pub(crate) manifest: Manifest,
    pub(crate) container: Container,
    pub(crate) ca: Ca,
    pub(crate) host: String,
    pub(crate) admin: SocketAddr,
    form: KeyForm,
    pub(crate) certificate: Certificate,
    port: u16,
}

impl Dropin {
    pub(crate) fn new(manifest: Manifest, folder: &Path, form: KeyForm) -> Outcome<Self> {
        let (ca, host) = (Ca::new()?, manifest.service_name()?);
        let certificate = ca.issue_with(&host, LOCAL, form)?;
        let mounts = manifest.mounts(&certificate)?;
        let mut container = Container::new(&binary()?, folder, container(&manifest.pod)?, &mounts)?;
        container.set_variable("INJECTD_STANDALONE", "true");
        if manifest.name.ends_with("-ha") {
            container.uid = ARBITRARY_UID;
        }
        let (port, admin) = (container.port(0)?, container.port(1)?);
        let admin = SocketAddr::new(LOCAL, admin);
        Ok(Self { manifest, container, ca, host, admin, form, certificate, port })
    }

    async fn steps(&mut self) -> Outcome {
        let start = format!("starts with a {:?} key as user {}", self.form, self.container.uid);
        step(start, self.container.start()).await?;
        step("readiness probe", self.ready()).await?;
        step("liveness probe", self.probe("livenessProbe", 200, "pong\n")).await?;
        step("no privileges", async { self.privileges() }).await?;
        step("no path is writable", async { self.read_only() }).await?;
        step("injects a pod over TLS 1.3", self.inject()).await?;
        step("TLS 1.2 is refused, HTTP/2 is offered", self.protocols()).await?;
        step("metrics", self.metrics()).await?;
        step("a renewed certificate is served", self.renew()).await?;
        step("rotated trust roots reach the next pod", self.rotate()).await?;
        step("SIGTERM: not ready, still answering, exit code 0", self.terminate()).await
    }

    /// Sends a probe as a kubelet does, with the same timeout.
    async fn probe(&self, which: &str, status: u16, text: &str) -> Outcome {
        let get = &self.container.spec[which]["httpGet"];
        let path = get["path"].as_str().unwrap_or_default();
        let port = get["port"].as_u64().unwrap_or_default().try_into()?;
        let seconds = self.container.spec[which]["timeoutSeconds"].as_u64().unwrap_or(1);
        let found =
            timeout(Duration::from_secs(seconds), probe(SocketAddr::new(LOCAL, port), path));
        let found =
            found.await.map_err(|_| failed(format!("{path}: not within {seconds} s")))??;
        expect(format!("the answer of {path}"), (status, text.to_owned()), found)
    }

    pub(crate) async fn ready(&self) -> Outcome {
        eventually("/ready", async || self.probe("readinessProbe", 200, "ok\n").await).await
    }

    fn privileges(&self) -> Outcome {
        let status = |field: &str| self.container.status(field);
        let all = |id: u64| [id; 4].map(|id| id.to_string()).join("\t");
        expect("the user", all(self.container.uid), status("Uid")?)?;
        expect("the group", all(self.container.gid), status("Gid")?)?;
        for field in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            expect(field, 0, u64::from_str_radix(&status(field)?, 16)?)?;
        }
        expect("NoNewPrivs", "1", status("NoNewPrivs")?)?;
        let pids = status("NSpid")?;
        expect("its process id in its namespace", Some("1"), pids.split_whitespace().last())
    }

    fn read_only(&self) -> Outcome {
        // As root, only the mounts prevent writing, not the permissions.
        let tried = self.container.expect_read_only(self.container.uid)?;
        self.container.expect_read_only(0)?;
        note(&format!("{tried} paths tried, as its user and as root"));
        Ok(())
    }

    // === requests ===

    pub(crate) fn webhook<'a>(&'a self, ca: &'a str) -> Webhook<'a> {
        Webhook { addr: SocketAddr::new(LOCAL, self.port), server_name: &self.host, ca }
    }

    async fn ask(&self, ip: IpAddr) -> Outcome<Asked> {
        let ca = self.ca.pem();
        let webhook = Webhook { addr: SocketAddr::new(ip, self.port), ..self.webhook(&ca) };
        Endpoint::new(webhook)?.ask(&review_of("default", &pod("web", &enabled()))).await
    }

    async fn inject(&self) -> Outcome {
        let mut operations = Vec::new();
        for ip in [LOCAL, Ipv6Addr::LOCALHOST.into()] {
            let asked = self.ask(ip).await?;
            let expected = der_of(&self.certificate.certificate)?;
            expect("whether it serves its certificate", true, expected == asked.certificate)?;
            operations = patch_of(&asked.response)?;
        }
        let text = serde_json::to_string(&operations)?;
        for part in [
            r#""linkerd-proxy""#,
            r#""cr.l5d.io/linkerd/proxy:linkerdVersionValue""#,
            "linkerd/proxy-injector linkerdVersionValue",
        ] {
            expect_contains("the patch", part, &text)?;
        }
        expect_anchors(&operations, &self.bundle()?)
    }

    /// The trust roots of the manifest.
    pub(crate) fn bundle(&self) -> Outcome<String> {
        let mut files = self.manifest.config("linkerd-identity-trust-roots")?;
        files.remove("ca-bundle.crt").ok_or_else(|| failed("no trust roots"))
    }

    async fn protocols(&self) -> Outcome {
        let ca = self.ca.pem();
        let old = Endpoint::with_tls(self.webhook(&ca), tls_config(&ca, &[&TLS12])?)?;
        match old.connect().await {
            Ok(_) => return Err(failed("TLS 1.2 is accepted")),
            Err(why) => expect_contains("the error", "ProtocolVersion", &why.to_string())?,
        }
        let mut config = tls_config(&ca, &[&TLS13])?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let connection = Endpoint::with_tls(self.webhook(&ca), config)?.connect().await?;
        expect("the protocol", Some(b"h2".as_slice()), connection.protocol())
    }

    pub(crate) async fn exposition(&self) -> Outcome<String> {
        let (status, text) = probe(self.admin, "/metrics").await?;
        expect("the status of /metrics", 200, status)?;
        Ok(text)
    }

    async fn metrics(&self) -> Outcome {
        let text = self.exposition().await?;
        let counts: [(&str, &[_]); 3] = [
            ("proxy_inject_admission_requests_total", &[]),
            ("proxy_inject_admission_responses_total", &[("skip", "false")]),
            ("injectd_reviews_total", &[("verdict", "injected")]),
        ];
        for (name, labels) in counts {
            expect(name, 2, metric(&text, name, labels))?;
        }
        let is_info = |line: &&str| {
            line.starts_with("injectd_config_info{linkerd_release=\"") && line.ends_with("} 1")
        };
        expect("releases in the metrics", 1, text.lines().filter(is_info).count())
    }

    async fn renew(&mut self) -> Outcome {
        self.certificate = self.ca.issue_with(&self.host, LOCAL, self.form)?;
        self.container.volume(TLS)?.write(&self.certificate.files())?;
        let expected = der_of(&self.certificate.certificate)?;
        eventually("the new certificate", async || {
            let is_new = self.ask(LOCAL).await?.certificate == expected;
            expect("whether it is served", true, is_new)
        })
        .await
    }

    async fn rotate(&mut self) -> Outcome {
        let bundle = self.ca.pem();
        self.container.volume(TRUST_ROOTS)?.write(&files([("ca-bundle.crt", &bundle)]))?;
        eventually("the new trust roots", async || {
            expect_anchors(&patch_of(&self.ask(LOCAL).await?.response)?, &bundle)
        })
        .await
    }

    async fn terminate(&mut self) -> Outcome {
        self.container.terminate()?;
        eventually("/ready after SIGTERM", async || {
            self.probe("readinessProbe", 500, "not ready\n").await
        })
        .await?;
        self.probe("livenessProbe", 200, "pong\n").await?;
        patch_of(&self.ask(LOCAL).await?.response)?;
        let peak = self.container.memory_kib("VmHWM")? >> 10;
        self.container.expect_end().await?;
        let refused = TcpStream::connect((LOCAL, self.port)).await.err().map(|error| error.kind());
        let expected = Some(std::io::ErrorKind::ConnectionRefused);
        expect("the error of a connection after its end", expected, refused)?;
        let limit = &self.container.spec["resources"]["limits"]["memory"];
        note(&format!("at most {peak} MiB used, limit {limit}"));
        Ok(())
    }
}

/// Fails unless the sidecar of a patch has these trust roots.
fn expect_anchors(operations: &[Value], bundle: &str) -> Outcome {
    let text = serde_json::to_string(operations)?;
    let bundle = serde_json::to_string(bundle.trim())?;
    expect_contains("the patch", bundle.trim_matches('"'), &text)
}
