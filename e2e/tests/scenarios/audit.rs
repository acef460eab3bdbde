//! `injectd explain`, `injectd audit` and `injectd serve --audit` with a real API server.
//!
//! One process serves the webhook and audits. Pods are created before the webhook, with it, and while
//! it is gone. Every scenario runs for each of [`WAYS`], in a namespace of its own.
//!
//! They are alone: `audit` and `serve --audit` read all webhook configurations and, for those of another
//! mesh, its `ConfigMap`s; the latter counts all pods.

use std::{
    fs,
    net::IpAddr,
    process::Command,
    time::{Duration, SystemTime},
};

use injectd_harness::{
    api::{WEBHOOK_CONFIGURATIONS, collection},
    certificates::Certificate,
    expect::{Outcome, about, eventually, expect, expect_contains, failed},
    injectd::{Injectd, linkerd_folder},
    lab::{Lab, service_ip},
    namespaced::{Namespaced, with_namespace},
    objects,
    process::{Ended, run},
    scenario::{explain, step, with_lab_alone},
};
use serde_json::{Value, json};
use tempfile::TempDir;

mod explain;
mod findings;
mod scale;
mod ways;
mod webhooks;

use ways::{Mesh, WAYS, Way};

/// Linkerd's values and trust roots, in its folder of this tree.
const VALUES: &str = "values/default.yaml";
const ROOTS: &str = "example-root.crt";

struct Audit<'a> {
    way: &'static Way,
    /// The namespace of the control plane, the Service and the Lease.
    it: &'a Namespaced<'a>,
    /// The namespace of the pods.
    pods: String,
    ip: IpAddr,
    folder: TempDir,
    injectd: Injectd,
}

#[tokio::test]
async fn explain_says_what_the_cluster_does_with_pods_and_workloads() -> Outcome {
    with_lab_alone(async |lab| {
        for_each_way(lab, async |audit| {
            step("the pod of a Deployment is injected", explain::injected(audit)).await?;
            step("a pod that was left out", explain::left_out(audit)).await?;
            step("the pods of a CronJob", explain::cron_job(audit)).await?;
            step("what may refuse the pod afterwards", explain::refused(audit)).await?;
            step("no cluster, forbidden, not found", explain::wrong(audit)).await
        })
        .await
    })
    .await
}

#[tokio::test]
async fn audit_finds_pods_that_the_webhook_missed_and_pods_that_are_outdated() -> Outcome {
    with_lab_alone(async |lab| {
        for_each_way(lab, async |audit| {
            step("a pod from before the webhook", findings::left_out(audit)).await?;
            step("--watch goes on until it is interrupted", findings::watched(audit)).await?;
            step("a pod let in while the webhook was gone", findings::let_in(audit)).await?;
            step("sidecars of another release are outdated", findings::outdated(audit)).await
        })
        .await
    })
    .await
}

#[tokio::test]
async fn serve_counts_findings_and_reports_a_webhook_configuration_that_is_gone_or_changed()
-> Outcome {
    with_lab_alone(async |lab| {
        for_each_way(lab, async |audit| {
            step("the metrics have the finding", findings::metrics(audit)).await?;
            step("the configuration is gone, nothing restarts", webhooks::gone(audit)).await?;
            step("its selectors change", webhooks::changed(audit)).await
        })
        .await
    })
    .await
}

#[tokio::test]
async fn the_memory_of_an_audit_does_not_grow_with_the_pods_of_linkerd() -> Outcome {
    with_lab_alone(async |lab| memory(lab, Mesh::Linkerd).await).await
}

#[tokio::test]
async fn the_memory_of_an_audit_does_not_grow_with_the_pods_of_istio() -> Outcome {
    with_lab_alone(async |lab| memory(lab, Mesh::Istio).await).await
}

async fn memory(lab: &Lab, mesh: Mesh) -> Outcome {
    for_ways(lab, |way| way.mesh == mesh, async |audit| scale::memory(audit).await).await
}

/// Runs a scenario for each way; without `--long` for one of each mesh, since the others differ from them
/// in the webhook alone.
async fn for_each_way(lab: &Lab, scenario: impl AsyncFn(&mut Audit<'_>) -> Outcome) -> Outcome {
    for_ways(lab, |_| true, scenario).await
}

/// As [`for_each_way`], for those of them that are meant.
async fn for_ways(
    lab: &Lab,
    is_meant: impl Fn(&Way) -> bool,
    scenario: impl AsyncFn(&mut Audit<'_>) -> Outcome,
) -> Outcome {
    lab.local()?;
    for way in WAYS.iter().filter(|way| (lab.is_long || way.is_short) && is_meant(way)) {
        let none = json!({});
        let outcome = with_namespace(lab, &none, async |namespaced| {
            let mut audit = Audit::new(namespaced, way)?;
            let mut outcome = step(way.name, audit.created()).await;
            if outcome.is_ok() {
                outcome = scenario(&mut audit).await;
            }
            explain(&outcome, "injectd's log", audit.injectd.log().lines());
            outcome
        });
        about(way.name, outcome.await)?;
    }
    Ok(())
}

/// A file of Linkerd in this tree.
fn linkerd_file(name: &str) -> Outcome<String> {
    Ok(fs::read_to_string(linkerd_folder().join(name))?)
}

impl<'a> Audit<'a> {
    fn new(it: &'a Namespaced<'a>, way: &'static Way) -> Outcome<Self> {
        let (folder, ip, service) = (tempfile::tempdir()?, service_ip()?, way.service());
        let certificate = Certificate::new(&format!("{service}.{}.svc", it.name), ip)?;
        let kubeconfig = it.lab.kubeconfig.display().to_string();
        let arguments = [
            "serve",
            "--kubeconfig",
            &kubeconfig,
            "--audit",
            "--audit-interval",
            "1s",
            "--lease-namespace",
            &it.name,
            "--certificate-namespace",
            &it.name,
            "--webhook-service",
            service,
            "--webhook-configurations",
            &way.name_of_configuration(it),
        ];
        let arguments = arguments.map(str::to_owned).into_iter().chain(way.arguments(&it.name));
        let arguments: Vec<_> = arguments.collect();
        let mut injectd =
            Injectd::serve(&it.lab.binary, folder.path(), ip, certificate, &arguments)?;
        if way.has_linkerd() {
            injectd.set_variable("INJECTD_VALUES", linkerd_folder().join(VALUES));
            injectd.set_variable("INJECTD_TRUST_ROOTS", linkerd_folder().join(ROOTS));
        }
        Ok(Self { way, it, pods: it.name_of("pods"), ip, folder, injectd })
    }

    /// Creates pods before the webhook, and with it.
    async fn created(&mut self) -> Outcome {
        let (it, way) = (self.it, self.way);
        it.make_object(&way.namespace(&self.pods, it)).await?;
        for map in way.config_maps(&linkerd_file(VALUES)?, &linkerd_file(ROOTS)?) {
            it.create(&map).await?.created()?;
        }
        way.mesh.expect_proxy(false, &self.create(&objects::plain_pod("before")).await?)?;
        // The times of objects have no fractions of seconds.
        let created = SystemTime::now();
        eventually("another second begins", async || {
            expect("that it did", true, created.elapsed()? > Duration::from_secs(1))
        })
        .await?;
        self.injectd.start().await?;
        let port = self.injectd.webhook.port();
        let service = objects::service(way.service(), &self.ip.to_string(), port);
        it.create(&service).await?.created()?;
        for configuration in way.configurations(it, port, self.injectd.ca())? {
            it.create_in_cluster(&configuration).await?;
        }
        self.wait_until_called().await?;
        self.create(&objects::deployment("web", 2, &json!({}))).await?;
        way.mesh.expect_proxy(true, &self.create(&objects::plain_pod("with")).await?)
    }

    /// The name and path of the configuration that is called for the pods.
    fn configured(&self) -> (String, String) {
        let name = self.way.name_of_configuration(self.it);
        let path = format!("{WEBHOOK_CONFIGURATIONS}/{name}");
        (name, path)
    }

    /// The path of an object in the namespace of the pods.
    fn path(&self, version: &str, kind: &str, name: &str) -> String {
        format!("{}/{name}", collection(version, kind, Some(&self.pods)))
    }

    async fn create(&self, object: &Value) -> Outcome<Value> {
        self.it.lab.api.create(Some(&self.pods), object).await?.created()
    }

    async fn wait_until_called(&self) -> Outcome {
        eventually("the configuration of the webhook takes effect", async || {
            let probe = objects::plain_pod("probe");
            let made = self.it.lab.api.dry_run(&self.pods, &probe).await?.created()?;
            self.way.mesh.expect_proxy(true, &made)
        })
        .await
    }

    /// The command, for the cluster and the configurations of its meshes.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.it.lab.binary);
        command.args(arguments).arg("--kubeconfig").arg(&self.it.lab.kubeconfig);
        command.args(["--linkerd-namespace", &self.it.name]);
        command
    }

    async fn injectd(&self, arguments: &[&str]) -> Outcome<Ended> {
        run(self.command(arguments)).await
    }

    /// What a command prints as JSON, if it ends with this code.
    async fn json(&self, code: i32, arguments: &[&str]) -> Outcome<Value> {
        let ran = self.injectd(&[arguments, &["-o", "json"]].concat()).await?;
        let printed = about(format_args!("{arguments:?}"), ran.with_code(code))?;
        Ok(serde_json::from_str(&printed)?)
    }
}

/// Fails unless stderr is one line with these words.
fn expect_line(what: &str, words: &str, ran: &Ended) -> Outcome {
    expect_contains(what, words, &ran.stderr)?;
    if ran.stderr.lines().count() == 1 {
        Ok(())
    } else {
        Err(failed(format!("{what}: {}", ran.stderr)))
    }
}
