//! Nodes: their kubelets decide whether proxies are native sidecars, their number costs nothing.

use std::time::Duration;

use injectd_harness::{
    api::{Api, collection},
    client::{patch_of, wait_until_ready},
    expect::{DEADLINE, Outcome, eventually, expect, failed},
    scenario::note,
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::{
    deployed::Istio,
    pods::{is_native, labelled},
    replicas::{review, wait_for_patch},
    with_istio_alone,
};

/// How many Nodes there are, short and at full length.
const NODES: [usize; 2] = [500, 5_000];
/// Requests at the same time that create them.
const CLIENTS: usize = 16;
const REVIEWS: usize = 20;
const OLD: &str = "v1.32.9";
const NEW: &str = "v1.33.1";
const RESIDENT: &str = "process_resident_memory_bytes";

/// It is alone, as all scenarios of Nodes: every injectd of Istio sees them.
#[tokio::test]
async fn the_kubelets_of_the_nodes_decide_whether_the_proxy_is_a_native_sidecar() -> Outcome {
    with_istio_alone(async |istio| {
        for name in ["old", "new"] {
            istio.it.delete_at_end(path(istio, name));
        }
        decide(istio).await
    })
    .await
}

#[tokio::test]
async fn thousands_of_nodes_neither_delay_the_start_nor_need_memory() -> Outcome {
    with_istio_alone(async |istio| many(istio).await).await
}

/// The path of a Node of the scenario.
fn path(it: &Istio<'_>, name: &str) -> String {
    format!("{}/{}", collection("v1", "Node", None), it.it.name_of(name))
}

async fn decide(it: &Istio<'_>) -> Outcome {
    wait_for(it, true).await?;
    create(&it.lab.api, &it.it.name_of("old"), OLD).await?;
    create(&it.lab.api, &it.it.name_of("new"), NEW).await?;
    wait_for(it, false).await?;
    let path = format!("{}/status", path(it, "old"));
    eventually("the Node is upgraded", async || {
        let upgrade = |node: &mut Value| node["status"]["nodeInfo"]["kubeletVersion"] = json!(NEW);
        it.lab.api.update(&path, upgrade).await
    })
    .await?;
    wait_for(it, true).await
}

async fn wait_for(it: &Istio<'_>, native: bool) -> Outcome {
    let pod = labelled(&json!({}));
    wait_for_patch(it, "default", &pod, r#""restartPolicy":"Always""#, native).await?;
    let pod = it.pod("enabled", &pod).await?;
    expect("whether it is native", native, is_native(&pod)?)
}

async fn create(api: &Api, name: &str, version: &str) -> Outcome {
    let info = [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    let mut info: Value = info.iter().map(|field| ((*field).to_owned(), json!("e2e"))).collect();
    info["kubeletVersion"] = json!(version);
    // As large as a kubelet's.
    let images: Vec<_> = (0..20)
        .map(|number| json!({"names": [format!("example.com/image-{number}:1")], "sizeBytes": 1_000_000}))
        .collect();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"nodeInfo": info, "images": images}});
    api.create(None, &node).await?.created().map(drop)
}

async fn many(it: &Istio<'_>) -> Outcome {
    let count = NODES[usize::from(it.lab.is_long)];
    let few = measure(it, "few-nodes").await?;
    let begin = Instant::now();
    let outcome = create_many(it, count).await;
    let created = begin.elapsed();
    let many = match outcome {
        Ok(()) => measure(it, "many-nodes").await,
        Err(why) => Err(why),
    };
    delete_many(it, count).await?;
    let many = many?;
    let (few_mib, many_mib) = (few.bytes >> 20, many.bytes >> 20);
    let figures = format!(
        "{count} Nodes (made in {created:.1?}): ready after {:.1?} instead of {:.1?}, {many_mib} \
         MiB instead of {few_mib} MiB",
        many.ready, few.ready
    );
    if many.ready > DEADLINE / 3 || many.bytes > 2 * few.bytes {
        return Err(failed(figures));
    }
    note(&figures);
    expect("the patch", few.patch, many.patch)
}

/// Calls for each of so many numbers, with a few clients at the same time.
async fn for_each<F>(count: usize, call: impl Fn(usize) -> F) -> Outcome
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let mut calls = JoinSet::new();
    for number in 0..count {
        if calls.len() == CLIENTS {
            calls.join_next().await.transpose()?.transpose()?;
        }
        calls.spawn(call(number));
    }
    calls.join_all().await.into_iter().collect()
}

async fn create_many(it: &Istio<'_>, count: usize) -> Outcome {
    for_each(count, |number| {
        let (api, name) = (it.lab.api.clone(), it.it.name_of(&number.to_string()));
        async move { create(&api, &name, NEW).await }
    })
    .await
}

/// The API server deletes a collection one by one.
async fn delete_many(it: &Istio<'_>, count: usize) -> Outcome {
    for_each(count, |number| {
        let (api, path) = (it.lab.api.clone(), path(it, &number.to_string()));
        async move { api.delete(&path).await.map(drop) }
    })
    .await
}

/// What a further replica costs.
struct Cost {
    /// Time from its start until it is ready.
    ready: Duration,
    /// Resident memory after some reviews.
    bytes: u64,
    patch: Vec<Value>,
}

async fn measure(it: &Istio<'_>, name: &str) -> Outcome<Cost> {
    let mut replica = it.replica(name, &it.lab.api.server).await?;
    let begin = Instant::now();
    replica.start().await?;
    wait_until_ready(replica.admin).await?;
    let ready = begin.elapsed();
    let mut patch = Vec::new();
    for _ in 0..REVIEWS {
        let answer = review(&replica, "default", "enabled", &labelled(&json!({}))).await?;
        patch = patch_of(&answer.response()?)?;
    }
    Ok(Cost { ready, bytes: replica.metric(RESIDENT, &[]).await?, patch })
}
