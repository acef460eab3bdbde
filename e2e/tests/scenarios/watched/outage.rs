//! An API server that hangs and comes back.

use std::time::Duration;

use injectd_harness::{
    client::{Answer, patch_of},
    expect::{Outcome, eventually, expect, failed},
    objects::{INJECT, LOG_LEVEL, deployment, enabled, owned_pod, plain_pod},
    scenario::{note, with_lab_alone},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::namespaces::wait_for_log_level;
use crate::linkerd::{Linkerd, in_lab};

const LABEL_PATH: &str = "/metadata/labels/linkerd.io~1proxy-deployment";
const KNOWN_REVIEWS: usize = 50;
const REPLICAS: usize = 3;
/// What takes longer is not answered from memory.
const AT_ONCE: Duration = Duration::from_millis(1500);

#[tokio::test]
async fn while_the_api_server_hangs_reviews_are_answered_from_memory_or_refused() -> Outcome {
    with_lab_alone(async |lab| {
        in_lab(lab, &[], async |linkerd| {
            linkerd.create(&deployment("web", REPLICAS, &json!({}))).await?;
            linkerd.it.expect_pods("web", REPLICAS, &[("deployment", "web")]).await?;
            let hanging = lab.local()?.hang().await?;
            hangs(linkerd).await?;
            drop(hanging);
            is_back(linkerd).await
        })
        .await
    })
    .await
}

/// An answer, and how long it took.
struct Timed {
    answer: Answer,
    took: Duration,
}

async fn hangs(linkerd: &Linkerd<'_>) -> Outcome {
    let before = refused(linkerd).await?;
    let (late, replica, name) = (plain_pod("late"), unknown_replica(), &linkerd.it.name);
    let unknown = [3, 10].map(|seconds| format!("{name}-unknown-{seconds}"));
    let (short, long, derived, slowest) = tokio::try_join!(
        timed(linkerd, &unknown[0], &late, 3),
        timed(linkerd, &unknown[1], &late, 10),
        timed(linkerd, name, &replica, 10),
        slowest_known(linkerd),
    )?;
    if slowest > AT_ONCE {
        return Err(failed(format!("a review of a known namespace took {slowest:.1?}")));
    }
    for (Timed { answer, took }, seconds) in [(&short, 3), (&long, 10)] {
        answer.expect_refused()?;
        if *took > Duration::from_secs(seconds) {
            return Err(failed(format!("503 after {took:.1?}, its timeout was {seconds} s")));
        }
    }
    let [cluster, deadline] = refused(linkerd).await?;
    let refused = [cluster - before[0], deadline - before[1]];
    expect("the number of refused requests", 2, refused.iter().sum::<u64>())?;
    let patch = patch_of(&derived.answer.response()?)?;
    let label = patch.iter().find(|operation| operation["path"] == LABEL_PATH);
    let label = label.and_then(|operation| operation["value"].as_str());
    expect("the label of the workload", Some("hung"), label)?;
    let [short, long, derived] = [short, long, derived].map(|timed| timed.took);
    note(&format!(
        "known: at most {slowest:.0?}; 503 after {short:.1?} of 3 s, {long:.1?} of 10 s, \
         [cluster, deadline]: {refused:?}; owner derived from its name after {derived:.1?}"
    ));
    Ok(())
}

/// All works without a restart.
async fn is_back(linkerd: &mut Linkerd<'_>) -> Outcome {
    let it = linkerd.it;
    eventually("the API server creates pods", async || {
        it.expect_injected(&it.name, &plain_pod("tried")).await.map(drop)
    })
    .await?;
    linkerd.expect_not_found(&format!("{}-unknown-3", it.name)).await?;
    let after = format!("{}-after", it.name);
    it.make(&after, &enabled()).await?;
    it.expect_injected(&after, &plain_pod("tried")).await?;
    it.annotate(&it.name, &json!({INJECT: "enabled", LOG_LEVEL: "debug"})).await?;
    wait_for_log_level(linkerd, "debug").await?;
    it.scale("web", REPLICAS + 2).await?;
    it.expect_pods("web", REPLICAS + 2, &[("deployment", "web")]).await?;
    linkerd.expect_probe("/ready", 200, "ok\n").await?;
    let failing = linkerd.metric("injectd_watch_failing", &[]).await?;
    expect("whether the watch fails", 0, failing)?;
    linkerd.injectd.expect_running()
}

async fn timed(
    linkerd: &Linkerd<'_>,
    namespace: &str,
    pod: &Value,
    seconds: u64,
) -> Outcome<Timed> {
    let begin = Instant::now();
    let answer = linkerd.review(namespace, pod, seconds).await?;
    Ok(Timed { answer, took: begin.elapsed() })
}

/// The slowest of some reviews of a namespace that is known.
async fn slowest_known(linkerd: &Linkerd<'_>) -> Outcome<Duration> {
    let (pod, mut slowest) = (plain_pod("known"), Duration::ZERO);
    for _ in 0..KNOWN_REVIEWS {
        let Timed { answer, took } = timed(linkerd, &linkerd.it.name, &pod, 10).await?;
        expect("the status of a review of a known namespace", 200, answer.status)?;
        slowest = slowest.max(took);
    }
    Ok(slowest)
}

/// How many requests were refused, for want of the cluster and by their deadline.
async fn refused(linkerd: &Linkerd<'_>) -> Outcome<[u64; 2]> {
    let name = "injectd_requests_rejected_total";
    let cluster = linkerd.metric(name, &[("reason", "cluster")]).await?;
    Ok([cluster, linkerd.metric(name, &[("reason", "deadline")]).await?])
}

/// A pod of a `ReplicaSet` that injectd has not seen.
fn unknown_replica() -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
        "name": "hung-6f7", "uid": "00000000-0000-4000-8000-000000000001"});
    let mut pod = owned_pod("replica", &owner);
    pod["metadata"]["labels"] = json!({"pod-template-hash": "6f7"});
    pod
}
