//! `serve` watches its webhook configuration: it is deleted, and its selectors change.

use std::{fs, process::Stdio};

use injectd_e2e::{
    api::WEBHOOK_CONFIGURATIONS,
    client,
    expect::{Outcome, eventually, expect, failed},
    metrics::metric,
};
use serde_json::{Value, json};

use super::{Audit, NAMESPACE, SERVICE, finished};

/// The gauges: whether the configuration is there, and whether it selects something else.
async fn gauges(it: &Audit, expected: [u64; 2]) -> Outcome {
    eventually("the gauges follow", async || {
        let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
        let names = ["injectd_webhook_configurations", "injectd_webhook_selectors_changed"];
        let found = names.map(|name| metric(&page, name, &[("name", NAMESPACE)]));
        expect("the gauges", expected, found)
    })
    .await
}

/// An event on the Service whose message has these words.
async fn recorded(it: &Audit, reason: &str, words: &str) -> Outcome {
    eventually("the event is written", async || {
        let events = format!("/api/v1/namespaces/{NAMESPACE}/events");
        let events = it.lab.api.get(&events).await?.ok()?;
        let is_it = |event: &Value| {
            event["reason"] == reason
                && event["involvedObject"]["name"] == SERVICE
                && event["message"].as_str().is_some_and(|text| text.contains(words))
        };
        let found = events["items"].as_array().into_iter().flatten().any(is_it);
        if found { Ok(()) } else { Err(failed(format!("no {reason} in {events}"))) }
    })
    .await
}

async fn generation(it: &Audit) -> Outcome<Value> {
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/web");
    Ok(it.lab.api.get(&path).await?.ok()?["metadata"]["generation"].clone())
}

pub(super) async fn gone(it: &Audit) -> Outcome {
    gauges(it, [1, 0]).await?;
    let before = generation(it).await?;
    it.lab.api.delete(&format!("{WEBHOOK_CONFIGURATIONS}/{NAMESPACE}")).await?.ok()?;
    gauges(it, [0, 0]).await?;
    let text = format!("the MutatingWebhookConfiguration {NAMESPACE} does not exist");
    it.injectd.logs(&text).await?;
    recorded(it, "WebhookGone", "new pods get no sidecar").await?;
    // What an administrator would do about the findings, and what the replica itself did.
    let audit = it.injectd(&["audit", "-n", NAMESPACE, "-o", "json"]).await?;
    let file = it.folder.path().join("gone.json");
    fs::write(&file, audit.out)?;
    let mut restart = std::process::Command::new(&it.lab.binary);
    restart.args(["restart", "--yes", "--kubeconfig"]).arg(&it.lab.kubeconfig).arg("-f");
    restart.arg(&file).stdin(Stdio::null());
    let ran = finished(restart).await?;
    expect(format!("the generation, after {:?}", ran.out), before, generation(it).await?)?;
    let (_, page) = client::probe(it.injectd.admin, "/metrics").await?;
    expect("the restarts", 0, metric(&page, "injectd_restarts_total", &[]))?;
    it.lab.api.create(None, &it.configuration()).await?.created()?;
    gauges(it, [1, 0]).await?;
    it.wait_until_called().await
}

pub(super) async fn changed(it: &Audit) -> Outcome {
    let path = format!("{WEBHOOK_CONFIGURATIONS}/{NAMESPACE}");
    let select = async |selector: Value| {
        let change = |it: &mut Value| it["webhooks"][0]["objectSelector"] = selector.clone();
        it.lab.api.update(&path, change).await
    };
    select(json!({"matchLabels": {"tier": "none"}})).await?;
    gauges(it, [1, 1]).await?;
    recorded(it, "WebhookSelectorsChanged", "narrowed (added: tier In [none])").await?;
    select(json!({})).await?;
    gauges(it, [1, 0]).await
}
