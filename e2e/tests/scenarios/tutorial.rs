//! What a tutorial shows: an application gets its sidecars.
//!
//! A namespace is annotated and a Deployment applied; its pods, the event on their owner, the
//! metrics and the debug log report it. Then the opposite: an application that opts out.

use injectd_harness::{
    api::collection,
    expect::{Outcome, eventually, expect, failed},
    linkerd::ACCOUNT,
    objects::{deployment, disabled, owned_pod, owner},
};
use serde_json::{Value, json};

use crate::linkerd::{Linkerd, with_linkerd};

const REPLICAS: usize = 2;
const SKIPPED: &str = "Linkerd sidecar proxy injection skipped: \
                       pod has the annotation \"linkerd.io/inject:disabled\"";
const EVENTS: &str = "injectd_events_total";

#[tokio::test]
async fn an_application_gets_sidecars_and_events_metrics_and_log_say_so() -> Outcome {
    with_linkerd(&["-log-level=debug"], async |linkerd| {
        linkerd.create(&deployment("web", REPLICAS, &json!({}))).await?;
        linkerd.it.expect_pods("web", REPLICAS, &[("deployment", "web")]).await?;
        event(linkerd).await?;
        metrics(linkerd).await?;
        log(linkerd).await
    })
    .await
}

#[tokio::test]
async fn an_application_that_opts_out_gets_the_reason_as_an_event() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let made = linkerd.create(&deployment("plain", 1, &disabled())).await?;
        let found = eventually("the event", async || the_event(linkerd, &made).await).await?;
        expect("the reason", json!("InjectionSkipped"), found["reason"].clone())?;
        expect("the message", json!(SKIPPED), found["message"].clone())
    })
    .await
}

#[tokio::test]
async fn a_dry_run_leaves_no_event() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let made = linkerd.create(&deployment("dry", 0, &json!({}))).await?;
        let mut pod = owned_pod("", &owner(&made));
        pod["metadata"]["generateName"] = json!("owned-");
        linkerd.it.expect_injected(&linkerd.it.name, &pod).await?;
        linkerd.create(&pod).await?;
        let found = eventually("the event", async || the_event(linkerd, &made).await).await?;
        expect("the count, without the dry run", json!(1), found["count"].clone())
    })
    .await
}

#[tokio::test]
async fn an_owner_that_does_not_exist_gets_no_event() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        let labels = [("result", "no_object")];
        let before = linkerd.metric(EVENTS, &labels).await?;
        let forged = json!({"apiVersion": "apps/v1", "kind": "Deployment", "controller": true,
            "name": "web", "uid": "00000000-0000-4000-8000-000000000000"});
        linkerd.create(&owned_pod("forged", &forged)).await?;
        eventually("the event is counted", async || {
            expect("events without an object", before + 1, linkerd.metric(EVENTS, &labels).await?)
        })
        .await
    })
    .await
}

async fn event(linkerd: &Linkerd<'_>) -> Outcome {
    let path = linkerd.it.path("apps/v1", "Deployment", "web");
    let web = linkerd.it.lab.api.get(&path).await?.ok()?;
    let found = eventually("the event counts all pods", async || {
        let found = the_event(linkerd, &web).await?;
        expect("the count", json!(REPLICAS), found["count"].clone())?;
        Ok(found)
    })
    .await?;
    expect("the type", json!("Normal"), found["type"].clone())?;
    expect("the reason", json!("Injected"), found["reason"].clone())?;
    expect("the message", json!("Linkerd sidecar proxy injected"), found["message"].clone())?;
    let replica_sets = linkerd.it.of_app("apps/v1", "ReplicaSet", "web").await?;
    let [replica_set] = &*replica_sets else { return Err(failed("not one ReplicaSet")) };
    let of_replica_set = events(linkerd, "ReplicaSet", replica_set).await?;
    expect("the number of events of the ReplicaSet", 0, of_replica_set.len())
}

async fn metrics(linkerd: &Linkerd<'_>) -> Outcome {
    let labels = [("owner_kind", "deployment"), ("skip", "false"), ("annotation_at", "namespace")];
    let responses = linkerd.metric("proxy_inject_admission_responses_total", &labels).await?;
    let replicas = u64::try_from(REPLICAS)?;
    expect("Linkerd's counter of responses", replicas, responses)?;
    let sent = linkerd.metric(EVENTS, &[("result", "sent")]).await?;
    if !(1..=replicas).contains(&sent) {
        return Err(failed(format!("{sent} writes for {REPLICAS} pods")));
    }
    Ok(())
}

async fn log(linkerd: &Linkerd<'_>) -> Outcome {
    let pods = linkerd.it.of_app("v1", "Pod", "web").await?;
    let first = pods.first().ok_or_else(|| failed("no pod"))?;
    let name = first["metadata"]["generateName"].as_str().unwrap_or_default();
    for line in [
        "level=info msg=\"received admission review request ",
        &format!("received pod/{name}"),
        &format!("injection patch generated for: pod/{name}"),
        "level=debug",
    ] {
        linkerd.injectd.logs(line).await?;
    }
    Ok(())
}

/// The only event of the injector on a Deployment.
async fn the_event(linkerd: &Linkerd<'_>, about: &Value) -> Outcome<Value> {
    let mut found = events(linkerd, "Deployment", about).await?;
    expect("the number of events", 1, found.len())?;
    Ok(found.remove(0))
}

/// The events that `kubectl describe` finds, of the injector alone.
async fn events(linkerd: &Linkerd<'_>, kind: &str, about: &Value) -> Outcome<Vec<Value>> {
    let [name, uid] =
        ["name", "uid"].map(|field| about["metadata"][field].as_str().unwrap_or_default());
    let fields = [("kind", kind), ("name", name), ("namespace", &linkerd.it.name), ("uid", uid)];
    let selector = fields.map(|(key, value)| format!("involvedObject.{key}%3D{value}")).join("%2C");
    let path = collection("v1", "Event", Some(&linkerd.it.name));
    let list = linkerd.it.lab.api.get(&format!("{path}?fieldSelector={selector}")).await?.ok()?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.filter(|event| event["source"]["component"] == ACCOUNT).cloned().collect())
}
