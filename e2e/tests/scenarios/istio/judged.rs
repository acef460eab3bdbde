//! `injectd explain` and `injectd audit` of Istio's pods: they say what the API server does, whoever
//! serves the webhooks.

use std::{fs, process::Command};

use injectd_harness::{
    api::{WEBHOOK_CONFIGURATIONS, collection},
    expect::{Outcome, about, eventually, expect, expect_contains},
    objects::plain_pod,
    process::run,
    scenario::note,
};
use serde_json::{Value, json};

use super::{
    deployed::Istio,
    pods::{image, labelled},
    revisions::{CALLED, make_rows, row},
    with_istio_alone,
};

/// The name of a pod that is created to be audited.
const AUDITED: &str = "audited";

/// It is alone: without a webhook of Istio in the whole cluster, advice is another.
#[tokio::test]
async fn explain_and_audit_agree_with_the_api_server_with_webhooks_and_without() -> Outcome {
    with_istio_alone(async |istio| {
        make_rows(istio).await?;
        agree(istio).await?;
        without_webhooks(istio).await?;
        istio.call().await?;
        agree(istio).await
    })
    .await
}

/// What a command prints as JSON, if it ends with this code.
async fn injectd(it: &Istio<'_>, code: i32, arguments: &[&str]) -> Outcome<Value> {
    let mut command = Command::new(&it.lab.binary);
    command.args(arguments).args(["-o", "json", "--kubeconfig"]).arg(&it.lab.kubeconfig);
    let printed = about(format!("{arguments:?}"), run(command).await?.with_code(code))?;
    let found: Value = serde_json::from_str(&printed)?;
    let not_read = found["notRead"].as_array().map_or(&[][..], Vec::as_slice);
    expect("what was not read", &[] as &[Value], not_read)?;
    Ok(found)
}

/// A pod of a row, with its namespace.
fn pod(it: &Istio<'_>, index: usize, labels: &str) -> Outcome<Value> {
    let mut pod = labelled(&serde_json::from_str(labels)?);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(AUDITED);
    pod["metadata"]["namespace"] = json!(it.it.name_of(&row(index)));
    Ok(pod)
}

/// For every row of [`CALLED`], `explain` says what the API server does, and `audit` finds nothing
/// wrong with the pods that it creates.
pub(super) async fn agree(it: &Istio<'_>) -> Outcome {
    let mut pods = Vec::new();
    for (index, (_, labels, _)) in CALLED.iter().enumerate() {
        pods.push(pod(it, index, labels)?);
    }
    let mut injected = Vec::new();
    for (index, pod) in pods.iter().enumerate() {
        let namespace = it.it.name_of(&row(index));
        let path = format!("{}/{AUDITED}", collection("v1", "Pod", Some(&namespace)));
        it.lab.api.delete(&path).await?;
        eventually("the pod is gone", async || {
            expect("the status", 404, it.lab.api.get(&path).await?.status)
        })
        .await?;
        injected.push(image(&it.lab.api.create(Some(&namespace), pod).await?.created()?).is_some());
    }
    explained(it, &pods, &injected).await?;
    audited(it).await?;
    let count = injected.iter().filter(|is_injected| **is_injected).count();
    note(&format!("{} pods, {count} injected", pods.len()));
    Ok(())
}

async fn explained(it: &Istio<'_>, pods: &[Value], injected: &[bool]) -> Outcome {
    let file = it.folder.path().join("judged.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
    fs::write(&file, list.to_string())?;
    let found = injectd(it, 0, &["explain", &file.display().to_string()]).await?;
    let items = found["items"].as_array().cloned().unwrap_or_default();
    expect("the explanations", pods.len(), items.len())?;
    for ((row, item), injected) in items.iter().enumerate().zip(injected) {
        let why = [&item["notAsked"], &item["advice"], &item["notes"]];
        let what = format!("row {row}: {why:?}");
        // Where nothing is said about a mesh, and both are there, it may be either.
        if CALLED[row].0 != "{}" || CALLED[row].1 != "{}" {
            expect(format!("the mesh of {what}"), json!("istio"), item["mesh"].clone())?;
        }
        let is_injected = item["verdict"] == "injected" && item["notAsked"].is_null();
        expect(format!("whether it is injected, {what}"), *injected, is_injected)?;
        if !injected {
            expect(format!("whether there is advice, {what}"), false, item["advice"] == "")?;
        }
    }
    Ok(())
}

async fn audited(it: &Istio<'_>) -> Outcome {
    let found = audit(it, 0).await?;
    expect("the findings", json!([]), found["workloads"].clone())
}

/// An audit of the namespaces of [`CALLED`].
async fn audit(it: &Istio<'_>, code: i32) -> Outcome<Value> {
    let namespaces: Vec<_> = (0..CALLED.len()).map(|index| it.it.name_of(&row(index))).collect();
    let mut arguments = vec!["audit"];
    for namespace in &namespaces {
        arguments.extend(["-n", namespace]);
    }
    injectd(it, code, &arguments).await
}

/// A pod from before the tag of its namespace, whose name is whole, lacks its sidecar.
pub(super) async fn missing(it: &Istio<'_>, namespace: &str, pod: &str) -> Outcome {
    let found = injectd(it, 3, &["audit", "-n", namespace]).await?;
    let row = found["workloads"].get(0).cloned().unwrap_or_default();
    expect("the finding", json!("missing"), row["finding"].clone())?;
    expect("the pod", json!(pod), row["name"].clone())?;
    expect("the findings", 1, found["workloads"].as_array().map_or(0, Vec::len))?;
    let found = injectd(it, 0, &["explain", &format!("pod/{pod}"), "-n", namespace]).await?;
    let item = &found["items"][0];
    expect("the mesh", json!("istio"), item["mesh"].clone())?;
    expect_contains("the advice", "has no sidecar, although", &item["advice"].to_string())
}

/// Without the webhooks the advice is never to remove sidecars, and what asks for them is still known.
async fn without_webhooks(it: &Istio<'_>) -> Outcome {
    for revision in ["default", "canary"] {
        let name = it.it.name_of(revision);
        it.lab.api.delete(&format!("{WEBHOOK_CONFIGURATIONS}/{name}")).await?.ok()?;
    }
    eventually("the webhooks are gone", async || {
        expect("the proxy", None, image(&it.pod("row-0", &plain_pod("bare")).await?))
    })
    .await?;
    let namespace = it.it.name_of("row-0");
    it.lab.api.create(Some(&namespace), &plain_pod("bare")).await?.created()?;
    let found = audit(it, 3).await?;
    let counts = &found["pods"];
    expect("pods that lack their sidecar", json!(1), counts["missing"].clone())?;
    expect("pods that should have none", json!(0), counts["unexpected"].clone())?;
    let mesh = found["withoutWebhook"][0]["mesh"].clone();
    expect("the mesh without a webhook", json!("istio"), mesh)?;
    expect("what a restart cures", json!(false), found["workloads"][0]["restartCures"].clone())?;
    let path = format!("{}/bare", collection("v1", "Pod", Some(&namespace)));
    it.lab.api.delete(&path).await?.ok().map(drop)
}
