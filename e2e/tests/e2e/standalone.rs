//! `injectd inject` and `injectd serve --standalone`: the pods, Services and workloads that a real
//! API server creates with it.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::{IpAddr, Ipv4Addr},
    path::Path,
    time::Duration,
};

use injectd_harness::{
    api::{Answer, NAMESPACES, WEBHOOK_CONFIGURATIONS, collection},
    audit_log,
    expect::{Outcome, eventually, expect, expect_same, failed},
    injectd::Injectd,
    lab::{Lab, NOT_LOCAL},
    manifests, objects,
    run::{Run, Suite},
    sidecar::{expect_no_proxy, expect_proxy, names, without_sidecar},
};
use serde_json::{Value, json};
use tempfile::TempDir;

mod compare;
mod inject;
mod lifecycle;
mod reviews;

pub(crate) const NAME: &str = "standalone";
const LIMIT: Duration = Duration::from_secs(170);

/// An address of this machine, in the range of cluster IPs: a Service leads here without a proxy.
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 9));

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    let mut standalone = Standalone::new(lab)?;
    all(&mut suite, &mut standalone).await?;
    if suite.has_failed() {
        let log = standalone.injectd.log();
        let lines: Vec<_> = log.lines().filter(|line| !line.contains("level=debug")).collect();
        suite.print_end("the end of injectd's log", &lines);
    }
    standalone.clean_up().await
}

async fn all(suite: &mut Suite<'_>, it: &mut Standalone) -> Outcome {
    suite.setup("a new namespace gets a service account", it.make_namespace()).await;
    for file in manifests::files()? {
        let name = file.file_name().unwrap_or_default().display().to_string();
        let name = format!("inject: {name} gets its sidecar, once");
        suite.scenario(&name, inject::manifest(it, &file)).await;
    }
    for file in manifests::files()? {
        let name = file.file_name().unwrap_or_default().display().to_string();
        let name = format!("uninject: {name} comes back byte for byte");
        suite.scenario(&name, inject::back(it, &file)).await;
    }
    let name = "inject takes values and trust roots from the cluster";
    suite.scenario(name, inject::cluster_values(it)).await;
    if it.lab.local.is_none() {
        suite.block(NOT_LOCAL);
    }
    let name = "the API server calls the webhook by its Service, over HTTP/1.1";
    suite.setup(name, lifecycle::serve(it)).await;
    reviews::all(suite, it).await;
    lifecycle::all(suite, it).await;
    compare::all(suite, it).await;
    Ok(())
}

/// What all scenarios of the suite share.
struct Standalone {
    lab: Lab,
    namespace: String,
    injectd: Injectd,
    folder: TempDir,
}

impl Standalone {
    fn new(lab: &Lab) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        // Unlike those of other runs in the same cluster.
        let namespace = format!("injectd-e2e-{:08x}", RandomState::new().hash_one(0) >> 32);
        let host = format!("injectd.{namespace}.svc");
        let injectd = Injectd::standalone(&lab.binary, folder.path(), &host, IP)?;
        Ok(Self { lab: lab.clone(), namespace, folder, injectd })
    }

    fn audit_log(&self) -> Outcome<&Path> {
        let local = self.lab.local.as_ref().ok_or_else(|| failed("no audit log"))?;
        Ok(&local.audit_log)
    }

    async fn make_namespace(&self) -> Outcome {
        let labels = json!({"pod-security.kubernetes.io/enforce": "privileged"});
        let namespace = objects::namespace(&self.namespace, &json!({}), &labels);
        self.lab.api.create(None, &namespace).await?.created()?;
        let account = self.path("v1", "ServiceAccount", "default");
        eventually("the service account is there", async || {
            self.lab.api.get(&account).await?.ok().map(drop)
        })
        .await
    }

    fn path(&self, version: &str, kind: &str, name: &str) -> String {
        format!("{}/{name}", collection(version, kind, Some(&self.namespace)))
    }

    async fn create(&self, object: &Value) -> Outcome<Answer> {
        self.lab.api.create(Some(&self.namespace), object).await
    }

    async fn dry_run(&self, object: &Value) -> Outcome<Answer> {
        self.lab.api.dry_run(&self.namespace, object).await
    }

    /// The object as it is in a namespace that the webhook is not called for.
    async fn plain(&self, object: &Value) -> Outcome<Value> {
        self.lab.api.dry_run("default", object).await?.created()
    }

    async fn expect_audit(&self, answer: &Answer, verdict: &str, reasons: Option<&str>) -> Outcome {
        audit_log::expect_review(self.audit_log()?, &answer.audit_id, verdict, reasons).await
    }

    /// Creates a pod; fails unless it is left as it is in other namespaces, for this reason.
    async fn expect_left_alone(&self, pod: &Value, reason: &str) -> Outcome {
        let answer = self.create(pod).await?;
        self.expect_audit(&answer, "skipped", Some(reason)).await?;
        let (plain, found) = (self.plain(pod).await?, answer.created()?);
        for field in ["annotations", "labels"] {
            let [expected, found] = [&plain, &found].map(|it| &it["metadata"][field]);
            expect_same(field, expected, found)?;
        }
        for field in ["containers", "initContainers", "volumes"] {
            let [expected, found] = [&plain, &found].map(|it| names(it, field).len());
            expect(format!("the number of {field}"), expected, found)?;
        }
        expect_same("the pod", &without_sidecar(&plain), &without_sidecar(&found))
    }

    /// Waits until the webhook is called, or is not called any more.
    async fn wait_until_called(&self, is_called: bool) -> Outcome {
        let probe = objects::pod("probe", &objects::enabled());
        eventually("the configuration of the webhook takes effect", async || {
            let pod = self.dry_run(&probe).await?.created()?;
            if is_called { expect_proxy(&pod) } else { expect_no_proxy(&pod) }
        })
        .await
    }

    async fn expect_injected_pods(&self, app: &str, count: usize) -> Outcome {
        let pods = eventually("the controllers make pods", async || {
            let pods = self.lab.api.of_app(("v1", "Pod"), &self.namespace, app).await?;
            expect("the number of pods", count, pods.len())?;
            Ok(pods)
        })
        .await?;
        for pod in &pods {
            expect_proxy(pod)?;
            let label = pod["metadata"]["labels"]["linkerd.io/proxy-deployment"].as_str();
            expect("the label of the workload", Some(app), label)?;
        }
        Ok(())
    }

    async fn clean_up(mut self) -> Outcome {
        self.injectd.discard();
        for collection in [WEBHOOK_CONFIGURATIONS, NAMESPACES] {
            self.lab.api.delete(&format!("{collection}/{}", self.namespace)).await?;
        }
        Ok(())
    }
}
