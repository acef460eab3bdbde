//! `injectd explain`, `injectd audit` and `injectd serve --audit` with a real API server.
//!
//! One process serves the webhook and audits. Pods are created before the webhook, with it, and while
//! it is gone. Every scenario runs for each of [`WAYS`], as a suite of its own.

use std::{
    fs,
    process::{Command, Output, Stdio},
    time::{Duration, SystemTime},
};

use injectd_harness::{
    api::{NAMESPACES, WEBHOOK_CONFIGURATIONS},
    certificates::Certificate,
    expect::{Outcome, eventually, expect, expect_contains, failed},
    injectd::{Injectd, linkerd_folder},
    lab::{Lab, NOT_LOCAL},
    objects,
    run::{Run, Suite},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

mod explain;
mod findings;
mod scale;
mod ways;
mod webhooks;

pub(crate) use ways::{SHORT_WAYS, WAYS, Way};

/// Of one way.
const LIMIT: Duration = Duration::from_mins(6);

/// Linkerd's values and trust roots, in its folder of this tree.
const VALUES: &str = "values/default.yaml";
const ROOTS: &str = "example-root.crt";

struct Audit {
    way: &'static Way,
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

pub(crate) async fn run(run: &mut Run, lab: &Lab, way: &'static Way) -> Outcome {
    let Some(mut suite) = run.suite(way.name, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let mut it = Audit::new(lab, way)?;
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
    suite.scenario("explain: the pods of a CronJob", explain::cron_job(it)).await;
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
    let (api, way) = (&it.lab.api, it.way);
    api.create(None, &way.namespace(way.name)).await?.created()?;
    it.wait_for_account(way.name).await?;
    for map in way.config_maps(&linkerd_file(VALUES)?, &linkerd_file(ROOTS)?) {
        it.create(&map).await?;
    }
    way.mesh.expect_proxy(false, &it.create(&objects::plain_pod("before")).await?)?;
    // The times of objects have no fractions of seconds.
    let created = SystemTime::now();
    eventually("another second begins", async || {
        expect("that it did", true, created.elapsed()? > Duration::from_secs(1))
    })
    .await?;
    it.injectd.start().await?;
    let port = it.injectd.webhook.port();
    it.create(&objects::service(way.service(), &way.ip().to_string(), port)).await?;
    for configuration in way.others(port, it.injectd.ca())? {
        it.lab.api.create(None, &configuration).await?.created()?;
    }
    it.lab.api.create(None, &it.configuration()?).await?.created()?;
    it.wait_until_called().await?;
    it.create(&objects::deployment("web", 2, &json!({}))).await?;
    way.mesh.expect_proxy(true, &it.create(&objects::plain_pod("with")).await?)
}

/// A file of Linkerd in this tree.
fn linkerd_file(name: &str) -> Outcome<String> {
    Ok(fs::read_to_string(linkerd_folder().join(name))?)
}

impl Audit {
    fn new(lab: &Lab, way: &'static Way) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let (name, service) = (way.name, way.service());
        let certificate = Certificate::new(&format!("{service}.{name}.svc"), way.ip())?;
        let configuration = way.configuration(0, "")?["metadata"]["name"].clone();
        let kubeconfig = lab.kubeconfig.display().to_string();
        let arguments = [
            "serve",
            "--kubeconfig",
            &kubeconfig,
            "--audit",
            "--audit-interval",
            "1s",
            "--lease-namespace",
            name,
            "--certificate-namespace",
            name,
            "--webhook-service",
            service,
            "--webhook-configurations",
            configuration.as_str().unwrap_or_default(),
        ];
        let arguments = arguments.map(str::to_owned).into_iter().chain(way.arguments());
        let arguments: Vec<_> = arguments.collect();
        let mut injectd =
            Injectd::serve(&lab.binary, folder.path(), way.ip(), certificate, &arguments)?;
        if way.has_linkerd() {
            injectd.set_variable("INJECTD_VALUES", linkerd_folder().join(VALUES));
            injectd.set_variable("INJECTD_TRUST_ROOTS", linkerd_folder().join(ROOTS));
        }
        Ok(Self { way, lab: lab.clone(), folder, injectd })
    }

    /// The webhook configuration that is called for the pods.
    fn configuration(&self) -> Outcome<Value> {
        self.way.configuration(self.injectd.webhook.port(), self.injectd.ca())
    }

    /// The name and path of that configuration.
    fn configured(&self) -> Outcome<(String, String)> {
        let name = self.configuration()?["metadata"]["name"].as_str().map(str::to_owned);
        let name = name.ok_or_else(|| failed("no name"))?;
        let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
        Ok((name, path))
    }

    async fn create(&self, object: &Value) -> Outcome<Value> {
        self.lab.api.create(Some(self.way.name), object).await?.created()
    }

    /// Waits until pods can be created in a namespace.
    async fn wait_for_account(&self, namespace: &str) -> Outcome {
        eventually("the service account is there", async || {
            let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
            self.lab.api.get(&account).await?.ok().map(drop)
        })
        .await
    }

    async fn wait_until_called(&self) -> Outcome {
        eventually("the configuration of the webhook takes effect", async || {
            let probe = objects::plain_pod("probe");
            let made = self.lab.api.dry_run(self.way.name, &probe).await?.created()?;
            self.way.mesh.expect_proxy(true, &made)
        })
        .await
    }

    /// The command, for the cluster and the configurations of its meshes.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.lab.binary);
        command.args(arguments).arg("--kubeconfig").arg(&self.lab.kubeconfig);
        command.args(["--linkerd-namespace", self.way.name]).stdin(Stdio::null());
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
        let others = self.way.others(0, "")?;
        for made in others.iter().chain([&self.configuration()?]) {
            let name = made["metadata"]["name"].as_str().unwrap_or_default();
            self.lab.api.delete(&format!("{WEBHOOK_CONFIGURATIONS}/{name}")).await?;
        }
        for namespace in [self.way.name, &self.way.scale()] {
            self.lab.api.delete(&format!("{NAMESPACES}/{namespace}")).await?;
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
