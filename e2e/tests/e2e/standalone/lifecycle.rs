//! The webhook is there, gone and back, by Service and by URL.

use injectd_harness::{
    api::WEBHOOK_CONFIGURATIONS,
    expect::{Outcome, eventually, expect, expect_contains, failed},
    objects::{deployment, enabled, pod, service, webhook_configuration},
    run::Suite,
    sidecar::{expect_no_proxy, expect_proxy, expect_sidecar},
};
use serde_json::{Value, json};

use super::{IP, Standalone};

/// A line of the HTTP/2 library.
const HTTP2: &str = r#"msg=received frame="Headers"#;

pub(super) async fn all(suite: &mut Suite<'_>, it: &mut Standalone) {
    let name = "pods are denied while injectd is gone, and injected when it is back";
    suite.scenario(name, killed(it)).await;
    suite.scenario("without the webhook pods get no sidecar", not_called(it)).await;
    let name = "the API server calls the webhook by its URL, over HTTP/2";
    suite.scenario(name, called_by_url(it)).await;
    suite.scenario("SIGTERM ends injectd with exit code 0", it.injectd.terminate()).await;
    let name = "a webhook that may fail lets a pod in without a sidecar";
    suite.scenario(name, failed_open(it)).await;
}

pub(super) async fn serve(it: &mut Standalone) -> Outcome {
    it.injectd.start().await?;
    let port = it.injectd.webhook.port();
    it.create(&service("injectd", &IP.to_string(), port)).await?.created()?;
    let reference = json!({"name": "injectd", "namespace": it.namespace, "port": port});
    call_by(it, json!({"service": reference})).await?;
    expect("whether the API server spoke HTTP/2", false, it.injectd.log().contains(HTTP2))
}

/// Makes the API server call the webhook, and waits until it does.
async fn call_by(it: &Standalone, client: Value) -> Outcome {
    let labels = json!({"kubernetes.io/metadata.name": it.namespace});
    let configuration = webhook_configuration(&it.namespace, client, it.injectd.ca(), &labels);
    it.lab.api.create(None, &configuration).await?.created()?;
    it.wait_until_called(true).await
}

async fn killed(it: &mut Standalone) -> Outcome {
    it.injectd.kill().await?;
    let answer = it.create(&pod("while-gone", &enabled())).await?;
    expect("the status", 500, answer.status)?;
    let message = answer.body["message"].as_str().unwrap_or_default();
    expect_contains("the message", "failed calling webhook", message)?;
    it.create(&deployment("while-gone", 2, &enabled())).await?.created()?;
    eventually("the controllers get no pods", async || expect_no_replicas(it).await).await?;
    it.injectd.start().await?;
    it.wait_until_called(true).await?;
    expect_proxy(&it.create(&pod("after-kill", &enabled())).await?.created()?)?;
    it.expect_injected_pods("while-gone", 2).await
}

async fn expect_no_replicas(it: &Standalone) -> Outcome {
    let kind = ("apps/v1", "ReplicaSet");
    let replica_sets = it.lab.api.of_app(kind, &it.namespace, "while-gone").await?;
    let mut conditions =
        replica_sets.iter().filter_map(|set| set["status"]["conditions"].as_array()).flatten();
    let condition = conditions.next().ok_or_else(|| failed("no ReplicaSet has a condition"))?;
    expect("the condition", Some("FailedCreate"), condition["reason"].as_str())
}

async fn not_called(it: &Standalone) -> Outcome {
    it.lab.api.delete(&format!("{WEBHOOK_CONFIGURATIONS}/{}", it.namespace)).await?.ok()?;
    it.wait_until_called(false).await
}

async fn called_by_url(it: &Standalone) -> Outcome {
    let url = format!("https://{}/", it.injectd.webhook);
    call_by(it, json!({"url": url})).await?;
    let manifest = pod("by-url", &enabled());
    let created = it.create(&manifest).await?.created()?;
    expect_sidecar(&created, &it.plain(&manifest).await?)?;
    it.injectd.logs(HTTP2).await
}

/// injectd is gone: pods are denied until the API server knows the new policy.
async fn failed_open(it: &Standalone) -> Outcome {
    let path = format!("{WEBHOOK_CONFIGURATIONS}/{}", it.namespace);
    let ignore = |configuration: &mut Value| {
        configuration["webhooks"][0]["failurePolicy"] = json!("Ignore");
    };
    it.lab.api.update(&path, ignore).await?;
    let manifest = pod("failed-open", &enabled());
    let created = eventually("the API server creates the pod", async || {
        it.create(&manifest).await?.created()
    })
    .await?;
    expect_no_proxy(&created)
}
