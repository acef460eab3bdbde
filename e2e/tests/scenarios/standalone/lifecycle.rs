//! The webhook is there, gone and back, by Service and by URL.

use injectd_harness::{
    expect::{Outcome, eventually, expect, expect_contains, failed},
    objects::{deployment, enabled, pod},
    sidecar::{expect_no_proxy, expect_proxy, expect_sidecar},
};
use serde_json::{Value, json};

use super::{HTTP2, Standalone, with_standalone};

#[tokio::test]
async fn pods_are_denied_while_injectd_is_gone_and_injected_when_it_is_back() -> Outcome {
    with_standalone(async |standalone| {
        let it = standalone.it;
        standalone.injectd.kill().await?;
        let answer = it.create(&pod("while-gone", &enabled())).await?;
        expect("the status", 500, answer.status)?;
        let message = answer.body["message"].as_str().unwrap_or_default();
        expect_contains("the message", "failed calling webhook", message)?;
        it.create(&deployment("while-gone", 2, &enabled())).await?.created()?;
        let no_replicas = async || expect_no_replicas(standalone).await;
        eventually("the controllers get no pods", no_replicas).await?;
        standalone.injectd.start().await?;
        it.wait_until_called(true).await?;
        expect_proxy(&it.create(&pod("after-kill", &enabled())).await?.created()?)?;
        it.expect_pods("while-gone", 2, &[("deployment", "while-gone")]).await
    })
    .await
}

/// It speaks HTTP/1.1 to the Service before, which the fixture expects, and HTTP/2 to the URL.
#[tokio::test]
async fn the_webhook_is_called_by_its_service_or_not_at_all_or_by_its_url() -> Outcome {
    with_standalone(async |standalone| {
        let it = standalone.it;
        it.stop_calling().await?;
        it.wait_until_called(false).await?;
        let url = format!("https://{}/", standalone.injectd.webhook);
        it.call(json!({"url": url}), standalone.injectd.ca()).await?;
        let manifest = pod("by-url", &enabled());
        let created = it.create(&manifest).await?.created()?;
        expect_sidecar(&created, &standalone.plain(&manifest).await?)?;
        standalone.injectd.logs(HTTP2).await
    })
    .await
}

#[tokio::test]
async fn a_webhook_that_may_fail_lets_pods_in_without_a_sidecar() -> Outcome {
    with_standalone(fail_open).await
}

/// injectd is gone: pods are denied until the API server knows the new policy.
pub(super) async fn fail_open(standalone: &mut Standalone<'_>) -> Outcome {
    standalone.injectd.terminate().await?;
    let it = standalone.it;
    let ignore = |configuration: &mut Value| {
        configuration["webhooks"][0]["failurePolicy"] = json!("Ignore");
    };
    it.lab.api.update(&it.webhook(), ignore).await?;
    let manifest = pod("failed-open", &enabled());
    let created = eventually("the API server creates the pod", async || {
        it.create(&manifest).await?.created()
    })
    .await?;
    expect_no_proxy(&created)
}

async fn expect_no_replicas(standalone: &Standalone<'_>) -> Outcome {
    let replica_sets = standalone.it.of_app("apps/v1", "ReplicaSet", "while-gone").await?;
    let mut conditions =
        replica_sets.iter().filter_map(|set| set["status"]["conditions"].as_array()).flatten();
    let condition = conditions.next().ok_or_else(|| failed("no ReplicaSet has a condition"))?;
    expect("the condition", Some("FailedCreate"), condition["reason"].as_str())
}
