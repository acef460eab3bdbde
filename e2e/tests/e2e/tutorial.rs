//! What a tutorial shows: an application gets its sidecars.
//!
//! A namespace is annotated and a Deployment applied; its pods, the event on their owner, the
//! metrics and the debug log report it. Then the opposite: an application that opts out.

use std::time::Duration;

use injectd_e2e::{
    api::{NAMESPACES, collection},
    expect::{Outcome, eventually, expect, failed},
    lab::{Lab, NOT_LOCAL},
    objects::{deployment, disabled, owned_pod, owner},
    run::{Run, Suite},
};
use serde_json::{Value, json};

use crate::linkerd::{ACCOUNT, CONTROL_PLANE, Linkerd};

pub(crate) const NAME: &str = "tutorial";
const LIMIT: Duration = Duration::from_mins(1);
const NAMESPACE: &str = "tutorial";
const REPLICAS: usize = 2;
const SKIPPED: &str = "Linkerd sidecar proxy injection skipped: \
                       pod has the annotation \"linkerd.io/inject:disabled\"";
const EVENTS: &str = "injectd_events_total";

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    let Some(local) = &lab.local else {
        suite.skip(NOT_LOCAL);
        return Ok(());
    };
    let mut linkerd = Linkerd::new(lab, local, NAMESPACE, &["-log-level=debug"])?;
    all(&mut suite, &mut linkerd).await;
    linkerd.explain(&suite);
    Ok(())
}

async fn all(suite: &mut Suite<'_>, it: &mut Linkerd) {
    suite.setup("the API server calls proxy-injector -log-level=debug", serve(it)).await;
    let name = "an application is applied in an annotated namespace";
    suite.setup(name, apply(it)).await;
    let pods = it.expect_pods("web", REPLICAS, &[("deployment", "web")]);
    suite.scenario("its 2 pods get sidecars", pods).await;
    let name = "an event with count 2 is on the Deployment, none on its ReplicaSet";
    suite.scenario(name, event(it)).await;
    suite.scenario("the metrics count the responses and events", metrics(it)).await;
    suite.scenario("the log has the reviews and their patches", log(it)).await;
    suite.scenario("an application that opts out gets the reason", opted_out(it)).await;
    suite.scenario("a dry run leaves no event", dry_run(it)).await;
    suite.scenario("an owner that does not exist gets no event", no_owner(it)).await;
}

/// The control plane may be there already, from another suite.
async fn serve(it: &mut Linkerd) -> Outcome {
    let namespace = it.lab.api.get(&format!("{NAMESPACES}/{CONTROL_PLANE}")).await?;
    if namespace.status == 404 {
        it.make_account().await.map(drop)?;
    } else {
        it.remove_webhook().await?;
    }
    it.serve().await
}

async fn apply(it: &Linkerd) -> Outcome {
    it.create(NAMESPACE, &deployment("web", REPLICAS, &json!({}))).await.map(drop)
}

async fn event(it: &Linkerd) -> Outcome<String> {
    let path = collection("apps/v1", "Deployment", Some(NAMESPACE));
    let web = it.lab.api.get(&format!("{path}/web")).await?.ok()?;
    let found = eventually("the event counts all pods", async || {
        let found = the_event(it, &web).await?;
        expect("the count", json!(REPLICAS), found["count"].clone())?;
        Ok(found)
    })
    .await?;
    expect("the type", json!("Normal"), found["type"].clone())?;
    expect("the reason", json!("Injected"), found["reason"].clone())?;
    expect("the message", json!("Linkerd sidecar proxy injected"), found["message"].clone())?;
    let replica_sets = it.of_app("apps/v1", "ReplicaSet", "web").await?;
    let [replica_set] = &*replica_sets else { return Err(failed("not one ReplicaSet")) };
    let of_replica_set = events(it, "ReplicaSet", replica_set).await?;
    expect("the number of events of the ReplicaSet", 0, of_replica_set.len())?;
    Ok(format!("{}: {} (x{})", found["reason"], found["message"], found["count"]))
}

async fn metrics(it: &Linkerd) -> Outcome<String> {
    let labels = [("owner_kind", "deployment"), ("skip", "false"), ("annotation_at", "namespace")];
    let responses = it.metric("proxy_inject_admission_responses_total", &labels).await?;
    let replicas = u64::try_from(REPLICAS)?;
    expect("Linkerd's counter of responses", replicas, responses)?;
    let sent = it.metric(EVENTS, &[("result", "sent")]).await?;
    let folded = it.metric(EVENTS, &[("result", "folded")]).await?;
    if !(1..=replicas).contains(&sent) {
        return Err(failed(format!("{sent} writes for {REPLICAS} pods")));
    }
    Ok(format!("{responses} responses, {sent} writes, {folded} folded"))
}

async fn log(it: &Linkerd) -> Outcome {
    let pods = it.of_app("v1", "Pod", "web").await?;
    let first = pods.first().ok_or_else(|| failed("no pod"))?;
    let name = first["metadata"]["generateName"].as_str().unwrap_or_default();
    for line in [
        "level=info msg=\"received admission review request ",
        &format!("received pod/{name}"),
        &format!("injection patch generated for: pod/{name}"),
        "level=debug",
    ] {
        it.injectd()?.logs(line).await?;
    }
    Ok(())
}

async fn opted_out(it: &Linkerd) -> Outcome<String> {
    let made = it.create(NAMESPACE, &deployment("plain", 1, &disabled())).await?;
    let found = eventually("the event", async || the_event(it, &made).await).await?;
    expect("the reason", json!("InjectionSkipped"), found["reason"].clone())?;
    expect("the message", json!(SKIPPED), found["message"].clone())?;
    Ok(SKIPPED.to_owned())
}

async fn dry_run(it: &Linkerd) -> Outcome {
    let made = it.create(NAMESPACE, &deployment("dry", 0, &json!({}))).await?;
    let mut pod = owned_pod("", &owner(&made));
    pod["metadata"]["generateName"] = json!("owned-");
    it.expect_injected(NAMESPACE, &pod).await?;
    it.create(NAMESPACE, &pod).await?;
    let found = eventually("the event", async || the_event(it, &made).await).await?;
    expect("the count, without the dry run", json!(1), found["count"].clone())
}

async fn no_owner(it: &Linkerd) -> Outcome {
    let labels = [("result", "no_object")];
    let before = it.metric(EVENTS, &labels).await?;
    let forged = json!({"apiVersion": "apps/v1", "kind": "Deployment", "controller": true,
        "name": "web", "uid": "00000000-0000-4000-8000-000000000000"});
    it.create(NAMESPACE, &owned_pod("forged", &forged)).await?;
    eventually("the event is counted", async || {
        expect("events without an object", before + 1, it.metric(EVENTS, &labels).await?)
    })
    .await
}

/// The only event of the injector on a Deployment.
async fn the_event(it: &Linkerd, about: &Value) -> Outcome<Value> {
    let mut found = events(it, "Deployment", about).await?;
    expect("the number of events", 1, found.len())?;
    Ok(found.remove(0))
}

/// The events that `kubectl describe` finds, of the injector alone.
async fn events(it: &Linkerd, kind: &str, about: &Value) -> Outcome<Vec<Value>> {
    let [name, uid] =
        ["name", "uid"].map(|field| about["metadata"][field].as_str().unwrap_or_default());
    let fields = [("kind", kind), ("name", name), ("namespace", NAMESPACE), ("uid", uid)];
    let selector = fields.map(|(key, value)| format!("involvedObject.{key}%3D{value}")).join("%2C");
    let path = collection("v1", "Event", Some(NAMESPACE));
    let list = it.lab.api.get(&format!("{path}?fieldSelector={selector}")).await?.ok()?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.filter(|event| event["source"]["component"] == ACCOUNT).cloned().collect())
}
