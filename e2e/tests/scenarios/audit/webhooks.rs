//! `serve` watches its webhook configuration: it is deleted, and its selectors change.

use std::{fs, process::Command};

use injectd_harness::{
    api::collection,
    client,
    expect::{Outcome, eventually, expect, failed},
    metrics::metric,
    process::run,
};
use serde_json::{Value, json};

use super::Audit;

/// The gauges: whether the configuration is there, and whether it selects something else.
async fn gauges(it: &Audit<'_>, expected: [u64; 2]) -> Outcome {
    let (configuration, _) = it.configured();
    eventually("the gauges follow", async || {
        let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
        let names = ["injectd_webhook_configurations", "injectd_webhook_selectors_changed"];
        let found = names.map(|name| metric(&page, name, &[("name", &configuration)]));
        expect("the gauges", expected, found)
    })
    .await
}

/// An event on the Service whose message has these words.
async fn recorded(it: &Audit<'_>, reason: &str, words: &str) -> Outcome {
    eventually("the event is written", async || {
        let events = collection("v1", "Event", Some(&it.it.name));
        let events = it.it.lab.api.get(&events).await?.ok()?;
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

async fn generation(it: &Audit<'_>) -> Outcome<Value> {
    let path = it.path("apps/v1", "Deployment", "web");
    Ok(it.it.lab.api.get(&path).await?.ok()?["metadata"]["generation"].clone())
}

/// Waits until the audit counts pods of the mesh without a webhook, which is what the alert
/// `InjectdMeshWithoutWebhook` reads, or counts none.
async fn without_webhook(it: &Audit<'_>, has_any: bool) -> Outcome {
    eventually("the audit sees the webhooks", async || {
        let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
        let mesh = [("mesh", it.way.mesh.name())];
        let pods = metric(&page, "injectd_audit_pods_without_webhook", &mesh);
        expect(format!("whether pods lack a webhook, of {pods}"), has_any, pods > 0)
    })
    .await
}

pub(super) async fn gone(it: &Audit<'_>) -> Outcome {
    gauges(it, [1, 0]).await?;
    let before = generation(it).await?;
    let (configuration, path) = it.configured();
    it.it.lab.api.delete(&path).await?.ok()?;
    gauges(it, [0, 0]).await?;
    without_webhook(it, true).await?;
    let text = format!("the MutatingWebhookConfiguration {configuration} does not exist");
    it.injectd.logs(&text).await?;
    recorded(it, "WebhookGone", "new pods get no sidecar").await?;
    // What an administrator would do about the findings, and what the replica itself did.
    let audit = it.injectd(&["audit", "-n", &it.pods, "-o", "json"]).await?;
    let file = it.folder.path().join("gone.json");
    fs::write(&file, audit.stdout)?;
    let mut restart = Command::new(&it.it.lab.binary);
    restart.args(["restart", "--yes", "--kubeconfig"]).arg(&it.it.lab.kubeconfig);
    restart.arg("-f").arg(&file);
    let ran = run(restart).await?;
    expect(format!("the generation, after {:?}", ran.stdout), before, generation(it).await?)?;
    let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
    expect("the restarts", 0, metric(&page, "injectd_restarts_total", &[]))?;
    let configurations =
        it.way.configurations(it.it, it.injectd.webhook.port(), it.injectd.ca())?;
    it.it.lab.api.create(None, &configurations[0]).await?.created()?;
    gauges(it, [1, 0]).await?;
    without_webhook(it, false).await?;
    it.wait_until_called().await
}

pub(super) async fn changed(it: &Audit<'_>) -> Outcome {
    let (_, path) = it.configured();
    let select = async |labels: Value| {
        let change = |configuration: &mut Value| {
            configuration["webhooks"][0]["objectSelector"]["matchLabels"] = labels.clone();
        };
        it.it.lab.api.update(&path, change).await
    };
    select(json!({"tier": "none"})).await?;
    gauges(it, [1, 1]).await?;
    recorded(it, "WebhookSelectorsChanged", "narrowed (added: tier In [none])").await?;
    select(json!({})).await?;
    gauges(it, [1, 0]).await
}
