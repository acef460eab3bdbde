//! `serve` watches its webhook configuration: it is deleted, and its selectors change.

use std::{fs, process::Stdio};

use injectd_harness::{
    client,
    expect::{Outcome, eventually, expect, failed},
    metrics::metric,
};
use serde_json::{Value, json};

use super::{Audit, finished};

/// The gauges: whether the configuration is there, and whether it selects something else.
async fn gauges(it: &Audit, expected: [u64; 2]) -> Outcome {
    let (configuration, _) = it.configured()?;
    eventually("the gauges follow", async || {
        let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
        let names = ["injectd_webhook_configurations", "injectd_webhook_selectors_changed"];
        let found = names.map(|name| metric(&page, name, &[("name", &configuration)]));
        expect("the gauges", expected, found)
    })
    .await
}

/// An event on the Service whose message has these words.
async fn recorded(it: &Audit, reason: &str, words: &str) -> Outcome {
    eventually("the event is written", async || {
        let events = format!("/api/v1/namespaces/{}/events", it.way.name);
        let events = it.lab.api.get(&events).await?.ok()?;
        let is_it = |event: &Value| {
            event["reason"] == reason
                && event["involvedObject"]["name"] == it.way.service()
                && event["message"].as_str().is_some_and(|text| text.contains(words))
        };
        let found = events["items"].as_array().into_iter().flatten().any(is_it);
        if found { Ok(()) } else { Err(failed(format!("no {reason} in {events}"))) }
    })
    .await
}

async fn generation(it: &Audit) -> Outcome<Value> {
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", it.way.name);
    Ok(it.lab.api.get(&path).await?.ok()?["metadata"]["generation"].clone())
}

/// Waits until the audit counts pods of the mesh without a webhook, which is what the alert
/// `InjectdMeshWithoutWebhook` reads, or counts none.
async fn without_webhook(it: &Audit, has_any: bool) -> Outcome {
    eventually("the audit sees the webhooks", async || {
        let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
        let mesh = [("mesh", it.way.mesh.name())];
        let pods = metric(&page, "injectd_audit_pods_without_webhook", &mesh);
        expect(format!("whether pods lack a webhook, of {pods}"), has_any, pods > 0)
    })
    .await
}

pub(super) async fn gone(it: &Audit) -> Outcome {
    gauges(it, [1, 0]).await?;
    let before = generation(it).await?;
    let (configuration, path) = it.configured()?;
    it.lab.api.delete(&path).await?.ok()?;
    gauges(it, [0, 0]).await?;
    without_webhook(it, true).await?;
    let text = format!("the MutatingWebhookConfiguration {configuration} does not exist");
    it.injectd.logs(&text).await?;
    recorded(it, "WebhookGone", "new pods get no sidecar").await?;
    // What an administrator would do about the findings, and what the replica itself did.
    let audit = it.injectd(&["audit", "-n", it.way.name, "-o", "json"]).await?;
    let file = it.folder.path().join("gone.json");
    fs::write(&file, audit.out)?;
    let mut restart = std::process::Command::new(&it.lab.binary);
    restart.args(["restart", "--yes", "--kubeconfig"]).arg(&it.lab.kubeconfig).arg("-f");
    restart.arg(&file).stdin(Stdio::null());
    let ran = finished(restart).await?;
    expect(format!("the generation, after {:?}", ran.out), before, generation(it).await?)?;
    let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
    expect("the restarts", 0, metric(&page, "injectd_restarts_total", &[]))?;
    it.lab.api.create(None, &it.configuration()?).await?.created()?;
    gauges(it, [1, 0]).await?;
    without_webhook(it, false).await?;
    it.wait_until_called().await
}

pub(super) async fn changed(it: &Audit) -> Outcome {
    let (_, path) = it.configured()?;
    let select = async |labels: Value| {
        let change =
            |it: &mut Value| it["webhooks"][0]["objectSelector"]["matchLabels"] = labels.clone();
        it.lab.api.update(&path, change).await
    };
    select(json!({"tier": "none"})).await?;
    gauges(it, [1, 1]).await?;
    recorded(it, "WebhookSelectorsChanged", "narrowed (added: tier In [none])").await?;
    select(json!({})).await?;
    gauges(it, [1, 0]).await
}
