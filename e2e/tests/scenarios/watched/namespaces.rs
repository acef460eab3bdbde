//! Annotations of namespaces: they come, change and go.

use std::{cell::RefCell, time::Duration};

use injectd_harness::{
    api::NAMESPACES,
    expect::{DEADLINE, Outcome, eventually, expect, expect_contains, failed},
    objects::{INJECT, LOG_LEVEL, disabled, enabled, plain_pod, pod},
    scenario::note,
    sidecar::expect_log_level,
};
use serde_json::json;
use tokio::{sync::Notify, time::timeout};

use crate::linkerd::{Linkerd, with_linkerd};

const NEW_NAMESPACES: usize = 10;

#[tokio::test]
async fn pods_follow_the_annotations_of_their_namespace() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let (it, pod_of_it) = (linkerd.it, plain_pod("tried"));
        it.expect_injected(&it.name, &pod_of_it).await?;
        it.expect_left_alone(&it.name, &pod("opted-out", &disabled())).await?;
        it.annotate(&it.name, &json!({INJECT: "enabled", LOG_LEVEL: "trace"})).await?;
        wait_for_log_level(linkerd, "trace").await?;
        it.annotate(&it.name, &json!({})).await?;
        eventually("the annotation is gone", async || {
            it.expect_left_alone(&it.name, &pod_of_it).await
        })
        .await?;
        it.annotate(&it.name, &enabled()).await?;
        eventually("the annotation is back", async || {
            it.expect_injected(&it.name, &pod_of_it).await.map(drop)
        })
        .await
    })
    .await
}

#[tokio::test]
async fn pods_created_at_once_in_new_namespaces_are_injected() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let (it, before) = (linkerd.it, linkerd.misses("namespaces").await?);
        for index in 0..NEW_NAMESPACES {
            let name = format!("{}-{index}", it.name);
            it.make(&name, &enabled()).await?;
            it.expect_injected(&name, &plain_pod("tried")).await?;
        }
        let misses = linkerd.misses("namespaces").await? - before;
        note(&format!("{misses} of {NEW_NAMESPACES} were unknown"));
        Ok(())
    })
    .await
}

/// Reviews are sent all the time while the namespace is made: denied, denied, injected.
#[tokio::test]
async fn pods_of_a_namespace_are_denied_in_the_api_servers_words_until_it_exists() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let appearing = format!("{}-appearing", linkerd.it.name);
        linkerd.expect_not_found(&appearing).await?;
        let (denials, first) = (RefCell::new(Vec::new()), Notify::new());
        let asking = async {
            loop {
                let response = linkerd.response(&appearing, &plain_pod("at-once")).await?;
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
            linkerd.it.make(&appearing, &enabled()).await
        };
        let both = async { tokio::try_join!(asking, making) };
        let verdict = timeout(DEADLINE, both).await.map_err(|_| failed("denied for too long"))??.0;
        expect("the verdict", Some("injected"), verdict.as_str())?;
        let message = format!(r#"namespaces \"{appearing}\" not found"#);
        let denials = denials.into_inner();
        denials.iter().try_for_each(|denial| expect_contains("a denial", &message, denial))?;
        note(&format!("denied {} times before", denials.len()));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_namespace_that_is_deleted_and_created_again_has_its_new_annotations() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let it = linkerd.it;
        let name = format!("{}-again", it.name);
        it.make(&name, &enabled()).await?;
        it.expect_injected(&name, &plain_pod("tried")).await?;
        let path = format!("{NAMESPACES}/{name}");
        it.lab.api.delete(&path).await?.ok()?;
        eventually("the namespace is gone", async || {
            expect("the status", 404, it.lab.api.get(&path).await?.status)
        })
        .await?;
        eventually("its pods are denied", async || linkerd.expect_not_found(&name).await).await?;
        it.make(&name, &json!({LOG_LEVEL: "trace"})).await?;
        it.expect_left_alone(&name, &plain_pod("tried")).await?;
        let injected = it.expect_injected(&name, &pod("asking", &enabled())).await?;
        expect_log_level(&injected, "trace")
    })
    .await
}

/// Waits until the pods of the namespace get this log level.
pub(super) async fn wait_for_log_level(linkerd: &Linkerd<'_>, level: &str) -> Outcome {
    let it = linkerd.it;
    eventually("the annotation takes effect", async || {
        expect_log_level(&it.expect_injected(&it.name, &plain_pod("tried")).await?, level)
    })
    .await
}
