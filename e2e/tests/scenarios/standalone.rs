//! `injectd serve --standalone`: the pods, Services and workloads that a real API server creates with
//! it in the namespace of one scenario.

use std::{net::IpAddr, path::Path};

use injectd_harness::{
    api::Answer,
    audit_log,
    expect::{Outcome, expect, expect_same},
    injectd::Injectd,
    lab::service_ip,
    namespaced::{Namespaced, with_namespace},
    objects::service,
    scenario::{explain, with_lab},
    sidecar::{names, without_sidecar},
};
use serde_json::{Value, json};
use tempfile::TempDir;

mod compare;
mod lifecycle;
mod reviews;

/// The Service.
const SERVICE: &str = "injectd";
/// A line of the HTTP/2 library.
const HTTP2: &str = r#"msg=received frame="Headers"#;

/// A cluster with the webhook, and a namespace that it is called for.
struct Standalone<'a> {
    it: &'a Namespaced<'a>,
    injectd: Injectd,
    ip: IpAddr,
    folder: TempDir,
}

/// Runs a scenario in a namespace whose pods and Services the webhook is called for.
async fn with_standalone(scenario: impl AsyncFnOnce(&mut Standalone<'_>) -> Outcome) -> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            let mut standalone = Standalone::new(namespaced)?;
            let mut outcome = standalone.serve().await;
            if outcome.is_ok() {
                outcome = scenario(&mut standalone).await;
            }
            let log = standalone.injectd.log();
            let lines = log.lines().filter(|line| !line.contains("level=debug"));
            explain(&outcome, "injectd's log", lines);
            outcome
        })
        .await
    })
    .await
}

impl<'a> Standalone<'a> {
    fn new(it: &'a Namespaced<'a>) -> Outcome<Self> {
        let (folder, ip) = (tempfile::tempdir()?, service_ip()?);
        let host = format!("{SERVICE}.{}.svc", it.name);
        let injectd = Injectd::standalone(&it.lab.binary, folder.path(), &host, ip)?;
        Ok(Self { it, injectd, ip, folder })
    }

    /// Starts injectd, and makes the API server call it by its Service.
    async fn serve(&mut self) -> Outcome {
        self.injectd.start().await?;
        let port = self.injectd.webhook.port();
        self.it.create(&service(SERVICE, &self.ip.to_string(), port)).await?.created()?;
        let reference = json!({"name": SERVICE, "namespace": self.it.name, "port": port});
        self.it.call(json!({"service": reference}), self.injectd.ca()).await?;
        expect("whether the API server spoke HTTP/2", false, self.injectd.log().contains(HTTP2))
    }

    fn audit_log(&self) -> Outcome<&Path> {
        Ok(&self.it.lab.local()?.audit_log)
    }

    /// The object as it is in a namespace that the webhook is not called for.
    async fn plain(&self, object: &Value) -> Outcome<Value> {
        self.it.lab.api.dry_run("default", object).await?.created()
    }

    async fn expect_audit(&self, answer: &Answer, verdict: &str, reasons: Option<&str>) -> Outcome {
        audit_log::expect_review(self.audit_log()?, &answer.audit_id, verdict, reasons).await
    }

    /// Creates a pod; fails unless it is left as it is in other namespaces, for this reason.
    async fn expect_left_alone(&self, pod: &Value, reason: &str) -> Outcome {
        let answer = self.it.create(pod).await?;
        self.expect_audit(&answer, "skipped", Some(reason)).await?;
        let (plain, found) = (self.plain(pod).await?, answer.created()?);
        for field in ["annotations", "labels"] {
            let [expected, found] = [&plain, &found].map(|pod| &pod["metadata"][field]);
            expect_same(field, expected, found)?;
        }
        for field in ["containers", "initContainers", "volumes"] {
            let [expected, found] = [&plain, &found].map(|pod| names(pod, field).len());
            expect(format!("the number of {field}"), expected, found)?;
        }
        expect_same("the pod", &without_sidecar(&plain), &without_sidecar(&found))
    }
}
