//! An API server that hangs and comes back.

use std::time::Duration;

use injectd_harness::{
    client::{Answer, patch_of},
    expect::{Outcome, eventually, expect, failed},
    objects::{INJECT, LOG_LEVEL, enabled, owned_pod, plain_pod},
    run::Suite,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{AT_ONCE, NAMESPACE, Watched, namespaces::wait_for_log_level, workloads::REPLICAS};
use crate::linkerd::Linkerd;

const LABEL_PATH: &str = "/metadata/labels/linkerd.io~1proxy-deployment";
const KNOWN_REVIEWS: usize = 50;

pub(super) async fn all(suite: &mut Suite<'_>, it: &mut Watched) {
    let name = "while the API server hangs, reviews get 200 from memory, or 503";
    suite.scenario(name, hangs(it)).await;
    let name = "once the API server is back, all works without a restart";
    suite.scenario(name, is_back(it)).await;
}

/// An answer, and how long it took.
type Timed = (Answer, Duration);

async fn hangs(it: &mut Watched) -> Outcome<String> {
    it.hanging = Some(it.linkerd.local.hang()?);
    let it = &it.linkerd;
    let before = refused(it).await?;
    let (late, replica) = (plain_pod("late"), unknown_replica());
    let (short, long, derived, slowest) = tokio::try_join!(
        timed(it, "unknown-3", &late, 3),
        timed(it, "unknown-10", &late, 10),
        timed(it, NAMESPACE, &replica, 10),
        slowest_known(it),
    )?;
    if slowest > AT_ONCE {
        return Err(failed(format!("a review of a known namespace took {slowest:.1?}")));
    }
    for ((answer, took), seconds) in [(&short, 3), (&long, 10)] {
        answer.expect_refused()?;
        if *took > Duration::from_secs(seconds) {
            return Err(failed(format!("503 after {took:.1?}, its timeout was {seconds} s")));
        }
    }
    let [cluster, deadline] = refused(it).await?;
    let refused = [cluster - before[0], deadline - before[1]];
    expect("the number of refused requests", 2, refused.iter().sum::<u64>())?;
    let patch = patch_of(&derived.0.response()?)?;
    let label = patch.iter().find(|it| it["path"] == LABEL_PATH);
    let label = label.and_then(|it| it["value"].as_str());
    expect("the label of the workload", Some("hung"), label)?;
    let (short, long, derived) = (short.1, long.1, derived.1);
    Ok(format!(
        "known: at most {slowest:.0?}; 503 after {short:.1?} of 3 s, {long:.1?} of 10 s, \
         [cluster, deadline]: {refused:?}; owner derived from its name after {derived:.1?}"
    ))
}

async fn is_back(it: &mut Watched) -> Outcome {
    it.hanging = None;
    let it = &mut it.linkerd;
    eventually("the API server creates pods", async || {
        it.expect_injected(NAMESPACE, &plain_pod("tried")).await.map(drop)
    })
    .await?;
    it.expect_not_found("unknown-3").await?;
    it.make_namespace("after", &enabled()).await?;
    it.expect_injected("after", &plain_pod("tried")).await?;
    it.annotate(NAMESPACE, &json!({INJECT: "enabled", LOG_LEVEL: "debug"})).await?;
    wait_for_log_level(it, "debug").await?;
    it.scale("web", REPLICAS + 2).await?;
    it.expect_pods("web", REPLICAS + 2, &[("deployment", "web")]).await?;
    it.expect_probe("/ready", 200, "ok\n").await?;
    let failing = it.metric("injectd_watch_failing", &[]).await?;
    expect("whether the watch fails", 0, failing)?;
    it.injectd_mut()?.expect_running()
}

async fn timed(it: &Linkerd, namespace: &str, pod: &Value, seconds: u64) -> Outcome<Timed> {
    let begin = Instant::now();
    let answer = it.review(namespace, pod, seconds).await?;
    Ok((answer, begin.elapsed()))
}

/// The slowest of some reviews of a namespace that is known.
async fn slowest_known(it: &Linkerd) -> Outcome<Duration> {
    let (pod, mut slowest) = (plain_pod("known"), Duration::ZERO);
    for _ in 0..KNOWN_REVIEWS {
        let (answer, took) = timed(it, NAMESPACE, &pod, 10).await?;
        expect("the status of a review of a known namespace", 200, answer.status)?;
        slowest = slowest.max(took);
    }
    Ok(slowest)
}

/// How many requests were refused, for want of the cluster and by their deadline.
async fn refused(it: &Linkerd) -> Outcome<[u64; 2]> {
    let name = "injectd_requests_rejected_total";
    let cluster = it.metric(name, &[("reason", "cluster")]).await?;
    Ok([cluster, it.metric(name, &[("reason", "deadline")]).await?])
}

/// A pod of a `ReplicaSet` that injectd has not seen.
fn unknown_replica() -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
        "name": "hung-6f7", "uid": "00000000-0000-4000-8000-000000000001"});
    let mut pod = owned_pod("replica", &owner);
    pod["metadata"]["labels"] = json!({"pod-template-hash": "6f7"});
    pod
}
