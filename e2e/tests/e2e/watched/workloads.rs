//! Owners of pods: the labels that name the workload.

use injectd_harness::{
    expect::{Outcome, failed},
    objects::{deployment, job, owned_pod, owner},
    run::Suite,
};
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::linkerd::{Linkerd, expect_workload};

/// The replicas of the Deployment `web`.
pub(super) const REPLICAS: usize = 20;
const NO_UID: &str = "00000000-0000-4000-8000-000000000000";

pub(super) async fn all(suite: &mut Suite<'_>, it: &Linkerd) {
    let name = "the 20 pods of a Deployment are labelled with it";
    suite.scenario(name, of_deployment(it)).await;
    let name = "the pods of a ReplicaSet without owner are labelled with it";
    suite.scenario(name, of_replica_set(it)).await;
    suite.scenario("the pod of a Job is labelled with it", of_job(it)).await;
    suite.scenario("the pod of a CronJob has no owner's label", of_cron_job(it)).await;
    suite.scenario("a forged uid does not lead to the Deployment", forged(it)).await;
}

async fn of_deployment(it: &Linkerd) -> Outcome<String> {
    it.create(NAMESPACE, &deployment("web", 0, &json!({}))).await?;
    let before = it.misses("owners").await?;
    it.scale("web", REPLICAS).await?;
    it.expect_pods("web", REPLICAS, &[("deployment", "web")]).await?;
    let misses = it.misses("owners").await? - before;
    Ok(format!("{misses} reviews did not know its ReplicaSet"))
}

async fn of_replica_set(it: &Linkerd) -> Outcome {
    let mut replica_set = deployment("bare", 3, &json!({}));
    replica_set["kind"] = json!("ReplicaSet");
    it.create(NAMESPACE, &replica_set).await?;
    it.expect_pods("bare", 3, &[("replicaset", "bare")]).await
}

async fn of_job(it: &Linkerd) -> Outcome {
    it.create(NAMESPACE, &job("once", "once")).await?;
    it.expect_pods("once", 1, &[("job", "once")]).await
}

/// The Job is created as `kubectl create job --from` does, without waiting for the schedule.
async fn of_cron_job(it: &Linkerd) -> Outcome {
    let template = json!({"spec": job("nightly", "nightly")["spec"]});
    let cron_job = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": template},
    });
    let mut made = job("nightly-1", "nightly");
    made["metadata"]["ownerReferences"] = json!([owner(&it.create(NAMESPACE, &cron_job).await?)]);
    it.create(NAMESPACE, &made).await?;
    it.expect_pods("nightly", 1, &[]).await
}

async fn forged(it: &Linkerd) -> Outcome {
    let replica_sets = it.of_app("apps/v1", "ReplicaSet", "web").await?;
    let [replica_set] = &*replica_sets else { return Err(failed("not one ReplicaSet")) };
    let (theirs, mut forged) = (owner(replica_set), owner(replica_set));
    forged["uid"] = json!(NO_UID);
    let name = replica_set["metadata"]["name"].as_str().unwrap_or_default();
    expect_labels(it, &forged, ("replicaset", name)).await?;
    expect_labels(it, &theirs, ("deployment", "web")).await?;
    it.scale("web", REPLICAS + 1).await?;
    it.expect_pods("web", REPLICAS + 1, &[("deployment", "web")]).await
}

async fn expect_labels(it: &Linkerd, owner: &Value, label: (&str, &str)) -> Outcome {
    let pod = it.expect_injected(NAMESPACE, &owned_pod("forged", owner)).await?;
    expect_workload(&pod, &[label])
}
