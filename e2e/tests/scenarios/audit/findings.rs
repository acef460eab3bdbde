//! What `injectd audit` finds, and what `serve --audit` counts.

use std::fs::{self, File};

use injectd_harness::{
    audit_log::lines,
    client,
    expect::{Outcome, eventually, expect, expect_contains, failed},
    metrics::metric,
    objects,
    program::Program,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Audit, VALUES, linkerd_file, ways::Newer};

async fn audited(it: &Audit<'_>, code: i32) -> Outcome<Value> {
    it.json(code, &["audit", "-n", &it.pods]).await
}

fn row<'a>(audit: &'a Value, name: &str) -> Outcome<&'a Value> {
    let rows = audit["workloads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = rows.iter().find(|row| row["name"] == name);
    row.ok_or_else(|| failed(format!("{name} is not in {audit}")))
}

pub(super) async fn left_out(it: &Audit<'_>) -> Outcome {
    // The controllers have made the pods of the Deployment.
    eventually("pods are meshed", async || {
        let audit = audited(it, 3).await?;
        expect("the pods with their sidecar", json!(3), audit["pods"]["meshed"].clone())
    })
    .await?;
    let audit = audited(it, 3).await?;
    expect("the pods without", json!(1), audit["pods"]["missing"].clone())?;
    let row = row(&audit, "before")?;
    let reason = row["reason"].as_str().unwrap_or_default();
    expect_contains("the reason", "before the webhook, which was created", reason)?;
    let ran = it.injectd(&["audit", "-n", &it.pods, "--fail-on", "outdated"]).await?;
    expect("the exit code with --fail-on outdated", Some(0), ran.code)?;
    expect_contains("the table", "pod/before", &ran.stdout)?;
    let junit = it.injectd(&["audit", "-n", &it.pods, "-o", "junit"]).await?;
    expect_contains("JUnit", r#"name="pod/before""#, &junit.stdout)?;
    let gone = it.injectd(&["audit", "-n", "gone"]).await?;
    expect("the exit code of a namespace that does not exist", Some(1), gone.code)?;
    expect_contains("stderr", "namespace gone does not exist", &gone.stderr)
}

/// Until it is interrupted, and with the exit code of the last audit.
pub(super) async fn watched(it: &Audit<'_>) -> Outcome {
    let [out, err] = ["watch.out", "watch.err"].map(|name| it.folder.path().join(name));
    let arguments = ["audit", "-n", &it.pods, "--watch", "--interval", "1s"];
    let mut command = it.command(&arguments);
    let mut program = Program::start(&mut command, File::create(&out)?, File::create(&err)?)?;
    eventually("the finding is printed", async || {
        expect_contains("stdout", "pod/before", &fs::read_to_string(&out)?)
    })
    .await?;
    let status = program.stop(Signal::INT).await?;
    expect("the exit code", Some(3), status.code())?;
    let printed = fs::read_to_string(&out)?;
    expect("how often it is printed", 1, printed.matches("pod/before").count())
}

pub(super) async fn metrics(it: &Audit<'_>) -> Outcome {
    eventually("the metrics have the finding", async || {
        let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
        expect("the leader", 1, metric(&page, "injectd_audit_is_leader", &[]))?;
        let missing = [("judgement", "missing")];
        expect("the pods without", 1, metric(&page, "injectd_audit_pods", &missing).min(1))
    })
    .await
}

pub(super) async fn let_in(it: &mut Audit<'_>) -> Outcome {
    it.injectd.kill().await?;
    let pod = it.create(&objects::plain_pod("while-gone")).await?;
    it.way.mesh.expect_proxy(false, &pod)?;
    let log = it.folder.path().join("audit.log");
    let file = log.display().to_string();
    let found = eventually("the audit log has the pod", async || {
        // Other scenarios write a lot, too.
        fs::write(&log, lines(&it.it.lab.local()?.audit_log, &it.pods)?)?;
        let ran = it.json(3, &["audit", "-n", &it.pods, "--audit-log", &file]).await?;
        let failed_open = ran["failedOpen"].as_array().cloned().unwrap_or_default();
        let own = failed_open.into_iter().find(|found| found["pod"] == "while-gone");
        own.map(|found| (found, ran)).ok_or_else(|| failed("not yet"))
    })
    .await?;
    let (pod, audit) = found;
    expect_contains("the cause", "the call failed at once", &pod["cause"].to_string())?;
    let reason = row(&audit, "while-gone")?["reason"].to_string();
    expect_contains("the reason", "the webhook failed then", &reason)?;
    it.injectd.start().await?;
    it.wait_until_called().await
}

/// The configuration of the cluster changes; pods keep what they have.
pub(super) async fn outdated(it: &Audit<'_>) -> Outcome {
    let Newer { config_map, texts: [values, newer], reason: expected } =
        it.way.newer(&linkerd_file(VALUES)?);
    let path = it.it.path("v1", "ConfigMap", config_map);
    it.it.lab.api.update(&path, |map| map["data"]["values"] = newer.as_str().into()).await?;
    let audit = audited(it, 3).await?;
    expect("the outdated pods", json!(3), audit["pods"]["outdated"].clone())?;
    let row = row(&audit, "web")?;
    expect("the workload", json!("Deployment"), row["kind"].clone())?;
    expect("its pods", json!([2, 2]), json!([row["pods"], row["total"]]))?;
    let reason = row["reason"].as_str().unwrap_or_default();
    expect_contains("the reason", expected, reason)?;
    let remedy = format!("kubectl rollout restart deployment/web -n {}", &it.pods);
    expect("what to do", json!(remedy), row["remedy"].clone())?;
    it.it.lab.api.update(&path, |map| map["data"]["values"] = values.as_str().into()).await
}
