//! Owners of pods: the labels that name the workload.

use injectd_harness::{
    expect::{Outcome, failed},
    objects::{deployment, job, owned_pod, owner},
    scenario::note,
    sidecar::expect_workload,
};
use serde_json::{Value, json};

use crate::linkerd::{Linkerd, with_linkerd};

/// The replicas of the Deployment.
const REPLICAS: usize = 20;
const NO_UID: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test]
async fn pods_are_labelled_with_the_workload_that_owns_them() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let it = linkerd.it;
        linkerd.create(&deployment("web", 0, &json!({}))).await?;
        let before = linkerd.misses("owners").await?;
        it.scale("web", REPLICAS).await?;
        it.expect_pods("web", REPLICAS, &[("deployment", "web")]).await?;
        let misses = linkerd.misses("owners").await? - before;
        note(&format!("{misses} reviews did not know the ReplicaSet of web"));
        let mut replica_set = deployment("bare", 3, &json!({}));
        replica_set["kind"] = json!("ReplicaSet");
        linkerd.create(&replica_set).await?;
        it.expect_pods("bare", 3, &[("replicaset", "bare")]).await?;
        linkerd.create(&job("once", "once")).await?;
        it.expect_pods("once", 1, &[("job", "once")]).await?;
        run_cron_job(linkerd).await?;
        it.expect_pods("nightly", 1, &[]).await
    })
    .await
}

#[tokio::test]
async fn a_forged_uid_does_not_lead_to_the_deployment() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        linkerd.create(&deployment("web", 1, &json!({}))).await?;
        linkerd.it.expect_pods("web", 1, &[("deployment", "web")]).await?;
        let replica_sets = linkerd.it.of_app("apps/v1", "ReplicaSet", "web").await?;
        let [replica_set] = &*replica_sets else { return Err(failed("not one ReplicaSet")) };
        let (theirs, mut forged) = (owner(replica_set), owner(replica_set));
        forged["uid"] = json!(NO_UID);
        let name = replica_set["metadata"]["name"].as_str().unwrap_or_default();
        expect_labels(linkerd, &forged, ("replicaset", name)).await?;
        expect_labels(linkerd, &theirs, ("deployment", "web")).await?;
        linkerd.it.scale("web", 2).await?;
        linkerd.it.expect_pods("web", 2, &[("deployment", "web")]).await
    })
    .await
}

/// Creates a Job as `kubectl create job --from` does, without waiting for the schedule.
pub(super) async fn run_cron_job(linkerd: &Linkerd<'_>) -> Outcome {
    let template = json!({"spec": job("nightly", "nightly")["spec"]});
    let cron_job = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": template},
    });
    let mut made = job("nightly-1", "nightly");
    made["metadata"]["ownerReferences"] = json!([owner(&linkerd.create(&cron_job).await?)]);
    linkerd.create(&made).await.map(drop)
}

async fn expect_labels(linkerd: &Linkerd<'_>, owner: &Value, label: (&str, &str)) -> Outcome {
    let it = linkerd.it;
    let pod = it.expect_injected(&it.name, &owned_pod("forged", owner)).await?;
    expect_workload(&pod, &[label])
}
