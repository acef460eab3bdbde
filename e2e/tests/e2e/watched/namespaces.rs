//! Annotations of namespaces: they come, change and go.

use std::{cell::RefCell, time::Duration};

use injectd_harness::{
    api::NAMESPACES,
    expect::{DEADLINE, Outcome, eventually, expect, expect_contains, failed},
    objects::{INJECT, LOG_LEVEL, disabled, enabled, plain_pod, pod},
    run::Suite,
    sidecar::expect_log_level,
};
use serde_json::json;
use tokio::{sync::Notify, time::timeout};

use super::NAMESPACE;
use crate::linkerd::Linkerd;

const NEW_NAMESPACES: usize = 10;

pub(super) async fn all(suite: &mut Suite<'_>, it: &Linkerd) {
    suite.scenario("the pods of an annotated namespace are injected", annotated(it)).await;
    suite.scenario("a setting of the namespace is in its pods", setting(it)).await;
    let name = "pods are not injected once the annotation is gone";
    suite.scenario(name, no_longer_annotated(it)).await;
    let name = "pods created at once in new namespaces are injected";
    suite.scenario(name, new_namespaces(it)).await;
    let name = "pods of a namespace are denied until it exists, then injected";
    suite.scenario(name, appears(it)).await;
    let name = "a namespace that is deleted and created again has its new annotations";
    suite.scenario(name, created_again(it)).await;
}

/// Waits until the pods of the namespace get this log level.
pub(super) async fn wait_for_log_level(it: &Linkerd, level: &str) -> Outcome {
    eventually("the annotation takes effect", async || {
        expect_log_level(&it.expect_injected(NAMESPACE, &plain_pod("tried")).await?, level)
    })
    .await
}

async fn annotated(it: &Linkerd) -> Outcome {
    it.expect_injected(NAMESPACE, &plain_pod("tried")).await?;
    it.expect_left_alone(NAMESPACE, &pod("opted-out", &disabled())).await
}

async fn setting(it: &Linkerd) -> Outcome {
    it.annotate(NAMESPACE, &json!({INJECT: "enabled", LOG_LEVEL: "trace"})).await?;
    wait_for_log_level(it, "trace").await
}

async fn no_longer_annotated(it: &Linkerd) -> Outcome {
    it.annotate(NAMESPACE, &json!({})).await?;
    eventually("the annotation is gone", async || {
        it.expect_left_alone(NAMESPACE, &plain_pod("tried")).await
    })
    .await?;
    it.annotate(NAMESPACE, &enabled()).await?;
    eventually("the annotation is back", async || {
        it.expect_injected(NAMESPACE, &plain_pod("tried")).await.map(drop)
    })
    .await
}

async fn new_namespaces(it: &Linkerd) -> Outcome<String> {
    let before = it.misses("namespaces").await?;
    for index in 0..NEW_NAMESPACES {
        let name = format!("new-{index}");
        it.make_namespace(&name, &enabled()).await?;
        it.expect_injected(&name, &plain_pod("tried")).await?;
    }
    let misses = it.misses("namespaces").await? - before;
    Ok(format!("{misses} of {NEW_NAMESPACES} were unknown"))
}

/// Reviews are sent all the time while the namespace is made: denied, denied, injected.
async fn appears(it: &Linkerd) -> Outcome<String> {
    let (denials, first) = (RefCell::new(Vec::new()), Notify::new());
    let asking = async {
        loop {
            let response = it.response("appearing", &plain_pod("at-once")).await?;
            if response["allowed"] == true {
                return Ok(response["auditAnnotations"]["verdict"].clone());
            }
            denials.borrow_mut().push(response["status"]["message"].to_string());
            first.notify_one();
        }
    };
    let making = async {
        let denied = timeout(Duration::from_secs(5), first.notified()).await;
        denied.map_err(|_| failed("no review was denied"))?;
        it.make_namespace("appearing", &enabled()).await
    };
    let both = async { tokio::try_join!(asking, making) };
    let verdict = timeout(DEADLINE, both).await.map_err(|_| failed("denied for too long"))??.0;
    expect("the verdict", Some("injected"), verdict.as_str())?;
    let denials = denials.into_inner();
    let last = denials.last().map_or("", String::as_str);
    expect_contains("the last denial", r#"namespaces \"appearing\" not found"#, last)?;
    Ok(format!("denied {} times before", denials.len()))
}

async fn created_again(it: &Linkerd) -> Outcome {
    let path = format!("{NAMESPACES}/new-0");
    it.lab.api.delete(&path).await?.ok()?;
    eventually("the namespace is gone", async || {
        expect("the status", 404, it.lab.api.get(&path).await?.status)
    })
    .await?;
    eventually("its pods are denied", async || it.expect_not_found("new-0").await).await?;
    it.make_namespace("new-0", &json!({LOG_LEVEL: "trace"})).await?;
    it.expect_left_alone("new-0", &plain_pod("tried")).await?;
    let injected = it.expect_injected("new-0", &pod("asking", &enabled())).await?;
    expect_log_level(&injected, "trace")
}
