//! `injectd audit`, `serve --audit`, `explain` and `restart` with sidecar templates: pods that lack one, have an
//! older revision, or have one that is not for them any more.

use std::process::Command;

use injectd_harness::{
    api::{WEBHOOK_CONFIGURATIONS, path_of},
    expect::{Outcome, eventually, expect, expect_contains, failed},
    injectd::Injectd,
    namespaced::{OF_SCENARIO, with_namespace},
    objects::deployment,
    process::{Ended, run, run_with_text},
    scenario::{step, with_lab_alone},
};
use serde_json::{Value, json};

use super::{
    define,
    served::{EXTRA, SIDE, Served, number_of},
};
use crate::{
    istio::explain_replicas,
    restart::{Kubelet, client_of},
};

/// The Deployment whose pods are compared, and how many there are.
const WEB: &str = "web";
const PODS: usize = 2;
const MARK: &str = "injectd.dev/templates";

#[tokio::test]
async fn pods_are_compared_with_the_templates_in_force() -> Outcome {
    with_lab_alone(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            step("the definitions are established", define(namespaced)).await?;
            let namespace = Served::control_plane_of(namespaced);
            let audit = ["--audit", "--audit-interval=1s", "--lease-namespace", &namespace];
            let mut served = Served::new(namespaced, &audit).await?;
            let _kubelet = Kubelet::start(&client_of(lab).await?, &namespaced.name);
            let outcome = scenario(&mut served).await;
            explain_replicas(&outcome, &served.replicas);
            outcome
        })
        .await
    })
    .await
}

async fn scenario(it: &mut Served<'_>) -> Outcome {
    step("two replicas serve a template, and audit", it.serve()).await?;
    step("pods have the template", created(it)).await?;
    step("a second template is missing", missing(it)).await?;
    let hashes = step("a changed template is outdated", outdated(it)).await?;
    step("explain names both revisions", explained(it, &hashes)).await?;
    step("a restart brings the new revision", restarted(it)).await?;
    step("a template that is for other pods now is unexpected", unexpected(it)).await?;
    step("no webhook is there", without_webhook(it)).await
}

async fn created(it: &Served<'_>) -> Outcome {
    let mut web = deployment(WEB, PODS, &json!({}));
    web["spec"]["template"]["metadata"]["labels"][OF_SCENARIO] = json!(it.it.name);
    it.it.create(&web).await?.created()?;
    are(it, "meshed").await?;
    expect("what else is found", Some(0), audit(it).await?.code)
}

async fn missing(it: &Served<'_>) -> Outcome {
    it.put(&it.template(EXTRA, 0)).await?;
    are(it, "missing").await?;
    let row = row(it).await?;
    let reason = row["reason"].as_str().unwrap_or_default();
    expect_contains("the reason", &format!("template {} ", it.it.name_of(EXTRA)), reason)?;
    expect_contains("the reason", "is for the pod and not in it", reason)?;
    let remedy = format!("kubectl rollout restart deployment/{WEB} -n {}", it.it.name);
    expect("what to do", json!(remedy), row["remedy"].clone())?;
    counted(it, "missing").await?;
    // The replica that audits logs what it would do.
    let logged = format!("{PODS} of {PODS} pods: {reason}");
    eventually("the finding is in a log", async || {
        let logs: String = it.replicas.iter().map(Injectd::log).collect();
        expect_contains("the logs", "dry run: it would be restarted now", &logs)?;
        expect_contains("the logs", &logged, &logs)
    })
    .await?;
    it.it.lab.api.delete(&path_of(&it.template(EXTRA, 0), None)).await?.ok()?;
    are(it, "meshed").await
}

/// Returns the hashes of the old revision and of the new one.
async fn outdated(it: &Served<'_>) -> Outcome<[String; 2]> {
    let before = hash_of(it, &pods(it).await?[0])?;
    it.put(&it.template(SIDE, 1)).await?;
    it.wait_for(1).await?;
    let now = hash_of(it, &it.pod().await?)?;
    are(it, "outdated").await?;
    let reason = format!("template {} {before}, now {now}", it.it.name_of(SIDE));
    expect("the reason", json!(reason), row(it).await?["reason"].clone())?;
    counted(it, "outdated").await?;
    Ok([before, now])
}

async fn explained(it: &Served<'_>, [before, now]: &[String; 2]) -> Outcome {
    let (template, pods) = (it.it.name_of(SIDE), pods(it).await?);
    let name = pods[0]["metadata"]["name"].as_str().unwrap_or_default();
    let text = injectd(it, &["explain", &format!("pod/{name}")]).await?.with_code(0)?;
    for words in [
        "the pod has templates; this is what a new one would get",
        &format!("Template {template} ({now}): applied"),
        &format!("in the pod: {before}, outdated"),
        &format!("To get template {template} as it is now, create the pod anew."),
    ] {
        expect_contains("what explain prints of a pod", words, &text)?;
    }
    let arguments = ["explain", &format!("deploy/{WEB}"), "-o", "json"];
    let text = injectd(it, &arguments).await?.with_code(0)?;
    let explained: Value = serde_json::from_str(&text)?;
    let running = &explained["items"][0]["runningPods"];
    expect("the running pods", &json!(PODS), &running["total"])?;
    expect_contains("the running pods", &format!("{before}, now {now}"), &running.to_string())
}

async fn restarted(it: &Served<'_>) -> Outcome {
    let findings = audit(it).await?.stdout;
    let dry = restart(it, &[], &findings).await?;
    expect("the exit code of a dry run", Some(0), dry.code)?;
    expect_contains("stdout", "would be restarted now: would get a new sidecar", &dry.stdout)?;
    expect("the pods after it", 0, number_of(&pods(it).await?[0])?)?;
    let done = restart(it, &["--yes"], &findings).await?;
    expect_contains("stdout", &format!("{}/{WEB}: restarted", it.it.name), &done.stdout)?;
    are(it, "meshed").await?;
    // Those of before are on their way out.
    eventually("each pod has the new revision", async || {
        let numbers: Vec<_> = pods(it).await?.iter().map(number_of).collect::<Result<_, _>>()?;
        expect("the edits", vec![1; PODS], numbers)
    })
    .await
}

async fn unexpected(it: &Served<'_>) -> Outcome {
    let mut elsewhere = it.template(SIDE, 1);
    elsewhere["spec"]["match"]["podSelector"] = json!({"matchLabels": {"tier": "none"}});
    it.put(&elsewhere).await?;
    are(it, "unexpected").await?;
    let reason = row(it).await?["reason"].to_string();
    expect_contains("the reason", "would not be in a new pod: not matched", &reason)?;
    counted(it, "unexpected").await?;
    let findings = audit(it).await?.stdout;
    let left = restart(it, &["--yes"], &findings).await?;
    let printed = [left.stdout, left.stderr].concat();
    expect_contains("what is printed", "it would lose its sidecar", &printed)?;
    it.put(&it.template(SIDE, 1)).await?;
    it.wait_for(1).await?;
    are(it, "meshed").await
}

/// No restart would help.
async fn without_webhook(it: &Served<'_>) -> Outcome {
    let path = format!("{WEBHOOK_CONFIGURATIONS}/{}", it.it.name);
    it.it.lab.api.delete(&path).await?.ok()?;
    let mesh = [("mesh", "templates")];
    eventually("the audit counts pods without a webhook", async || {
        expect("pods", PODS, most(it, "injectd_audit_pods_without_webhook", &mesh).await?)
    })
    .await?;
    let found: Value = serde_json::from_str(&audit(it).await?.stdout)?;
    let meshes = found["withoutWebhook"].to_string();
    expect_contains("what has no webhook", "templates", &meshes)
}

/// Waits until all pods have a judgement; the watches of the API server may be late.
async fn are(it: &Served<'_>, judgement: &str) -> Outcome {
    eventually(&format!("the pods are {judgement}"), async || {
        let found: Value = serde_json::from_str(&audit(it).await?.stdout)?;
        let all = ["meshed", "missing", "outdated", "unexpected", "unknown"];
        let counts = all.map(|name| (name, found["pods"][name].as_u64()));
        let expected = |name| if name == judgement { PODS as u64 } else { 0 };
        expect("the pods", all.map(|name| (name, Some(expected(name)))), counts)
    })
    .await
}

/// Waits until the replica that audits counts all pods with this judgement.
async fn counted(it: &Served<'_>, judgement: &str) -> Outcome {
    let labels = [("judgement", judgement)];
    eventually("a replica counts them", async || {
        expect("the pods", PODS, most(it, "injectd_audit_pods", &labels).await?)
    })
    .await
}

/// The highest value of a metric: the other replica does not audit.
async fn most(it: &Served<'_>, name: &str, labels: &[(&str, &str)]) -> Outcome<usize> {
    let mut most = 0;
    for replica in &it.replicas {
        most = most.max(replica.metric(name, labels).await?);
    }
    Ok(usize::try_from(most)?)
}

async fn row(it: &Served<'_>) -> Outcome<Value> {
    let found: Value = serde_json::from_str(&audit(it).await?.stdout)?;
    let rows = found["workloads"].as_array().into_iter().flatten();
    let row = rows.into_iter().find(|row| row["name"] == WEB).cloned();
    row.ok_or_else(|| failed(format!("{WEB} is not in {found}")))
}

async fn audit(it: &Served<'_>) -> Outcome<Ended> {
    injectd(it, &["audit", "-o", "json"]).await
}

async fn restart(it: &Served<'_>, arguments: &[&str], findings: &str) -> Outcome<Ended> {
    let mut command = Command::new(&it.it.lab.binary);
    command.args(["restart", "-f", "-"]).args(arguments);
    command.arg("--kubeconfig").arg(&it.it.lab.kubeconfig);
    run_with_text(command, findings).await
}

/// A command about the namespace of the pods.
async fn injectd(it: &Served<'_>, arguments: &[&str]) -> Outcome<Ended> {
    let mut command = Command::new(&it.it.lab.binary);
    command.args(arguments).args(["-n", &it.it.name]);
    command.arg("--kubeconfig").arg(&it.it.lab.kubeconfig);
    run(command).await
}

async fn pods(it: &Served<'_>) -> Outcome<Vec<Value>> {
    it.it.of_app("v1", "Pod", WEB).await
}

/// The hash of the first template in the mark of a pod.
fn hash_of(it: &Served<'_>, pod: &Value) -> Outcome<String> {
    let mark = pod["metadata"]["annotations"][MARK].as_str().unwrap_or("{}");
    let mark: Value = serde_json::from_str(mark)?;
    let hash = mark[it.it.name_of(SIDE)]["hash"].as_str();
    hash.map(str::to_owned).ok_or_else(|| failed(format!("no hash in {mark}")))
}
