//! `injectd explain` of objects of the cluster.

use std::{fs, process::Command};

use injectd_harness::{
    expect::{Outcome, eventually, expect, expect_contains, failed},
    objects,
    process::run,
};
use serde_json::{Value, json};

use super::{Audit, expect_line};

async fn explained(it: &Audit<'_>, target: &str) -> Outcome<Value> {
    let list = it.json(0, &["explain", target, "-n", &it.pods]).await?;
    list["items"].get(0).cloned().ok_or_else(|| failed("no explanation"))
}

pub(super) async fn injected(it: &Audit<'_>) -> Outcome {
    let found = explained(it, "deploy/web").await?;
    expect("the verdict", json!("injected"), found["verdict"].clone())?;
    let webhooks = found["webhooks"].as_array().cloned().unwrap_or_default();
    let (name, _) = it.configured();
    let own = webhooks
        .iter()
        .find(|webhook| webhook["configuration"] == *name && webhook["verdict"] == "called");
    let own = own.ok_or_else(|| failed(format!("the webhook is not called: {found}")))?;
    expect("the mesh", json!(it.way.mesh.name()), found["mesh"].clone())?;
    expect("the failure policy", json!("Ignore"), own["failurePolicy"].clone())?;
    let notes = found["notes"].to_string();
    expect_contains("the notes", "made from the template", &notes)
}

pub(super) async fn left_out(it: &Audit<'_>) -> Outcome {
    let found = explained(it, "pod/before").await?;
    expect("the verdict now", json!("injected"), found["verdict"].clone())?;
    expect_contains("the advice", "has no sidecar, although", &found["advice"].to_string())?;
    let text = it.injectd(&["explain", "pod/with", "-n", &it.pods]).await?;
    expect("the exit code", Some(0), text.code)?;
    expect_contains("the text", "the pod has its sidecar", &text.stdout)?;
    expect_contains("the text", "Verdict:     injected", &text.stdout)
}

/// The pods of a `CronJob` are those of its Jobs.
pub(super) async fn cron_job(it: &Audit<'_>) -> Outcome {
    let cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report"},
        "spec": {"schedule": "0 0 * * *", "suspend": true,
            "jobTemplate": {"spec": objects::job("report", "report")["spec"]}}});
    let cron_job = it.create(&cron_job).await?;
    let mut job = objects::job("report-1", "report");
    job["metadata"]["ownerReferences"] = json!([objects::owner(&cron_job)]);
    it.create(&job).await?;
    it.create(&objects::job("other", "report")).await?;
    eventually("the pod of the Job is explained", async || {
        let found = explained(it, "cronjob/report").await?;
        expect("the pods", json!(1), found["runningPods"]["total"].clone())?;
        expect_contains(
            "the notes",
            "its running pod is as it should be",
            &found["notes"].to_string(),
        )
    })
    .await?;
    for (kind, name) in [("Job", "report-1"), ("Job", "other"), ("CronJob", "report")] {
        let path = it.path("batch/v1", kind, name);
        it.it.lab.api.delete(&format!("{path}?propagationPolicy=Background")).await?.ok()?;
    }
    eventually("the pods are gone", async || {
        let pods = it.it.lab.api.of_app("v1", "Pod", &it.pods, "report").await?;
        expect("the number of pods", 0, pods.len())
    })
    .await
}

/// Of a manifest, with the namespace of the cluster.
pub(super) async fn refused(it: &Audit<'_>) -> Outcome {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "memory"},
        "spec": {"hard": {"limits.memory": "1Gi"}}});
    it.create(&quota).await?;
    let mut pod = objects::plain_pod("limited");
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "64Mi"}});
    let file = it.folder.path().join("limited.json");
    fs::write(&file, pod.to_string())?;
    let found = explained(it, &file.display().to_string()).await?;
    let objection = found["later"].get(0).cloned().unwrap_or_default();
    expect("who objects", json!("ResourceQuota memory"), objection["by"].clone())?;
    expect("whether the sidecar is the cause", json!(true), objection["dueToSidecar"].clone())?;
    // The API server does the same.
    let answer = it.it.lab.api.dry_run(&it.pods, &pod).await?;
    expect("the status", 403, answer.status)?;
    let message = answer.body["message"].as_str().unwrap_or_default();
    let words = format!("must specify limits.memory for: {}", it.way.mesh.unlimited());
    expect_contains("the message", &words, message)?;
    let path = it.path("v1", "ResourceQuota", "memory");
    it.it.lab.api.delete(&path).await?.ok().map(drop)
}

pub(super) async fn wrong(it: &Audit<'_>) -> Outcome {
    let missing = it.injectd(&["explain", "pod/gone", "-n", &it.pods]).await?;
    expect("the exit code without the pod", Some(1), missing.code)?;
    expect_line("stderr", "pods \"gone\" not found", &missing)?;
    let arguments = ["explain", "pod/before", "-n", &it.pods, "--as", "nobody"];
    let explain = it.injectd(&arguments).await?;
    expect("the exit code of a user without permission", Some(1), explain.code)?;
    expect_line("stderr", "User \"nobody\" cannot get resource \"pods\"", &explain)?;
    let audit = it.injectd(&["audit", "--as", "nobody"]).await?;
    expect("the exit code of a user without permission", Some(1), audit.code)?;
    expect_line("stderr", "cannot list resource \"mutatingwebhookconfigurations\"", &audit)?;
    let audit = it.injectd(&["audit", "-n", &it.pods, "--selector", "(("]).await?;
    expect("the exit code of a wrong selector", Some(1), audit.code)?;
    expect_line("stderr", "--selector \"((\": ", &audit)?;
    // No server listens there.
    let config = fs::read_to_string(&it.it.lab.kubeconfig)?;
    let closed = it.folder.path().join("closed.config");
    fs::write(&closed, config.replace(&it.it.lab.api.server, "https://127.0.0.1:1"))?;
    for arguments in [&["explain", "pod/before"][..], &["audit"]] {
        let mut command = Command::new(&it.it.lab.binary);
        command.args(arguments).arg("--kubeconfig").arg(&closed);
        let ran = run(command).await?;
        expect("the exit code without an API server", Some(1), ran.code)?;
        expect_line("stderr", "cannot connect to the API server", &ran)?;
    }
    Ok(())
}
