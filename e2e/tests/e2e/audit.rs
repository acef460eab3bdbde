//! `injectd explain`, `injectd audit` and `injectd serve --audit` with a real API server.
//!
//! One process serves the webhook and audits. Pods are created before the webhook, with it, and while
//! it is gone.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, SystemTime},
};

use injectd_e2e::{
    api::{NAMESPACES, WEBHOOK_CONFIGURATIONS},
    certificates::Certificate,
    expect::{Outcome, eventually, expect, expect_contains, failed},
    injectd::Injectd,
    lab::{Lab, NOT_LOCAL},
    objects,
    run::{Run, Suite},
    sidecar::{expect_no_proxy, expect_proxy},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

mod explain;
mod findings;
mod scale;
mod webhooks;

pub(crate) const NAME: &str = "audit";
const LIMIT: Duration = Duration::from_mins(6);

const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 17));
/// The namespace of the pods, the webhook, the configuration and the Lease.
const NAMESPACE: &str = "audit-shop";

/// The Service of the webhook.
const SERVICE: &str = "injectd";

/// The labels of the namespaces that the webhook selects.
fn labels() -> Value {
    json!({"audited": "yes"})
}

struct Audit {
    lab: Lab,
    folder: TempDir,
    injectd: Injectd,
}

/// A run of a command.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let mut it = Audit::new(lab)?;
    all(&mut suite, &mut it).await;
    if suite.has_failed() {
        let log = it.injectd.log();
        suite.print_end("the end of injectd's log", &log.lines().collect::<Vec<_>>());
    }
    it.clean_up().await
}

async fn all(suite: &mut Suite<'_>, it: &mut Audit) {
    suite.setup("pods are created before the webhook, and with it", created(it)).await;
    suite.scenario("explain: the pod of a Deployment is injected", explain::injected(it)).await;
    suite.scenario("explain: a pod that was left out", explain::left_out(it)).await;
    suite.scenario("explain: what may refuse the pod afterwards", explain::refused(it)).await;
    suite.scenario("explain and audit: no cluster, forbidden, not found", explain::wrong(it)).await;
    suite.scenario("audit: a pod from before the webhook", findings::left_out(it)).await;
    suite.scenario("audit --watch goes on until it is interrupted", findings::watched(it)).await;
    suite.scenario("serve --audit has the same in its metrics", findings::metrics(it)).await;
    suite.scenario("audit: a pod let in while the webhook was gone", findings::let_in(it)).await;
    suite.scenario("audit: sidecars of another release are outdated", findings::outdated(it)).await;
    let name = "serve reports that its webhook configuration is gone, and restarts nothing";
    suite.scenario(name, webhooks::gone(it)).await;
    suite.scenario("serve reports selectors that change", webhooks::changed(it)).await;
    suite.scenario("audit: memory does not grow with pods", scale::memory(it)).await;
}

async fn created(it: &mut Audit) -> Outcome {
    let api = &it.lab.api;
    let enabled = objects::enabled();
    api.create(None, &objects::namespace(NAMESPACE, &enabled, &labels())).await?.created()?;
    eventually("the service account is there", async || {
        let account = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default");
        it.lab.api.get(&account).await?.ok().map(drop)
    })
    .await?;
    for (name, key, value) in [
        ("linkerd-config", "values", it.file("values.yaml")?),
        ("linkerd-identity-trust-roots", "ca-bundle.crt", it.file("roots.crt")?),
    ] {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name},
            "data": {key: value}});
        api.create(Some(NAMESPACE), &map).await?.created()?;
    }
    expect_no_proxy(&it.create(&objects::plain_pod("before")).await?)?;
    // The times of objects have no fractions of seconds.
    let created = SystemTime::now();
    eventually("another second begins", async || {
        expect("that it did", true, created.elapsed()? > Duration::from_secs(1))
    })
    .await?;
    it.injectd.start().await?;
    it.create(&objects::service(SERVICE, &IP.to_string(), it.injectd.webhook.port())).await?;
    it.lab.api.create(None, &it.configuration()).await?.created()?;
    it.wait_until_called().await?;
    it.create(&objects::deployment("web", 2, &json!({}))).await?;
    expect_proxy(&it.create(&objects::plain_pod("with")).await?)
}

impl Audit {
    fn new(lab: &Lab) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/src/linkerd");
        let [values, roots] = ["values.yaml", "roots.crt"].map(|name| folder.path().join(name));
        fs::copy(core.join("values/default.yaml"), &values)?;
        fs::copy(core.join("example-root.crt"), &roots)?;
        let certificate = Certificate::new(&format!("injectd.{NAMESPACE}.svc"), IP)?;
        let arguments = [
            "serve",
            "--kubeconfig",
            &lab.kubeconfig.display().to_string(),
            "--values",
            &values.display().to_string(),
            "--trust-roots",
            &roots.display().to_string(),
            "--linkerd-namespace",
            NAMESPACE,
            "--audit",
            "--audit-interval",
            "1s",
            "--lease-namespace",
            NAMESPACE,
            "--certificate-namespace",
            NAMESPACE,
            "--webhook-service",
            SERVICE,
            "--webhook-configurations",
            NAMESPACE,
        ]
        .map(str::to_owned);
        let injectd = Injectd::serve(&lab.binary, folder.path(), IP, certificate, &arguments)?;
        Ok(Self { lab: lab.clone(), folder, injectd })
    }

    /// The webhook configuration.
    fn configuration(&self) -> Value {
        let port = self.injectd.webhook.port();
        let service = json!({"service": {"name": SERVICE, "namespace": NAMESPACE, "port": port}});
        let mut configuration =
            objects::webhook_configuration(NAMESPACE, service, self.injectd.ca(), &labels());
        configuration["webhooks"][0]["failurePolicy"] = "Ignore".into();
        configuration
    }

    fn file(&self, name: &str) -> Outcome<String> {
        Ok(fs::read_to_string(self.folder.path().join(name))?)
    }

    async fn create(&self, object: &Value) -> Outcome<Value> {
        self.lab.api.create(Some(NAMESPACE), object).await?.created()
    }

    async fn wait_until_called(&self) -> Outcome {
        eventually("the configuration of the webhook takes effect", async || {
            let probe = objects::plain_pod("probe");
            expect_proxy(&self.lab.api.dry_run(NAMESPACE, &probe).await?.created()?)
        })
        .await
    }

    /// The command, for the cluster and its configuration of Linkerd.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.lab.binary);
        command.args(arguments).arg("--kubeconfig").arg(&self.lab.kubeconfig);
        command.args(["--linkerd-namespace", NAMESPACE]).stdin(Stdio::null());
        command
    }

    async fn injectd(&self, arguments: &[&str]) -> Outcome<Ran> {
        finished(self.command(arguments)).await
    }

    /// What a command prints as JSON, if it ends with this code.
    async fn json(&self, code: i32, arguments: &[&str]) -> Outcome<Value> {
        let ran = self.injectd(&[arguments, &["-o", "json"]].concat()).await?;
        expect(format!("the exit code of {arguments:?}: {:?}", ran.err), Some(code), ran.code)?;
        Ok(serde_json::from_str(&ran.out)?)
    }

    async fn clean_up(mut self) -> Outcome {
        self.injectd.discard();
        for path in [
            format!("{WEBHOOK_CONFIGURATIONS}/{NAMESPACE}"),
            format!("{NAMESPACES}/{NAMESPACE}"),
            format!("{NAMESPACES}/{}", scale::NAMESPACE),
        ] {
            self.lab.api.delete(&path).await?;
        }
        Ok(())
    }
}

async fn finished(mut command: Command) -> Outcome<Ran> {
    let Output { status, stdout, stderr } = spawn_blocking(move || command.output()).await??;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran { code: status.code(), out: text(&stdout), err: text(&stderr) })
}

/// Fails unless stderr is one line with these words.
fn expect_line(what: &str, words: &str, ran: &Ran) -> Outcome {
    expect_contains(what, words, &ran.err)?;
    if ran.err.lines().count() == 1 { Ok(()) } else { Err(failed(format!("{what}: {}", ran.err))) }
}
