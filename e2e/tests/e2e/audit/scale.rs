//! The audit of many pods.

use std::{fs, process::Stdio, time::Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use injectd_harness::{
    expect::{Outcome, expect, failed},
    objects,
};
use serde_json::{Value, json};

use super::Audit;

/// Pods of the long run, and of the short one.
const PODS: [usize; 2] = [20_000, 2_000];
/// Workloads with the same number of pods each.
const WORKLOADS: usize = 200;
/// Requests at a time.
const PARALLEL: usize = 32;
/// The first pods: several pages of a list.
const FEW: usize = 1_000;
/// The peak with all pods is at most so many times the one with the first.
const MAX_GROWTH: f64 = 1.5;

/// The peaks of memory with the first pods, and with all.
pub(super) async fn memory(it: &Audit) -> Outcome<String> {
    let pods = PODS[usize::from(!it.lab.is_long)];
    let namespace = it.way.scale();
    it.lab.api.create(None, &it.way.namespace(&namespace)).await?.created()?;
    it.wait_for_account(&namespace).await?;
    let mut owners = Vec::new();
    for index in 0..WORKLOADS {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("workload-{index}")}});
        let owner = it.lab.api.create(Some(&namespace), &owner).await?.created()?;
        owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "controller": true,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}));
    }
    create(it, &owners, 0..FEW).await?;
    let few = audit(it, FEW).await?;
    create(it, &owners, FEW..pods).await?;
    let all = audit(it, pods).await?;
    let growth = all.peak / few.peak;
    if growth > MAX_GROWTH {
        return Err(failed(format!("the peak is {growth:.2} times that of the first pods")));
    }
    Ok(format!(
        "{pods} pods: {:.1} s, {:.0} MiB; {FEW} pods: {:.1} s, {:.0} MiB",
        all.seconds, all.peak, few.seconds, few.peak
    ))
}

/// Half of the pods ask for no sidecar: the webhook answers for all.
async fn create(it: &Audit, owners: &[Value], which: std::ops::Range<usize>) -> Outcome {
    let namespace = it.way.scale();
    let one = async |index: usize| -> Outcome {
        let mut pod = objects::owned_pod(&format!("pod-{index}"), &owners[index % WORKLOADS]);
        if index.is_multiple_of(2) {
            it.way.mesh.disable(&mut pod);
        }
        it.lab.api.create(Some(&namespace), &pod).await?.created().map(drop)
    };
    stream::iter(which).map(one).buffer_unordered(PARALLEL).try_collect().await
}

/// How long an audit takes, and its peak of memory in MiB.
struct Measured {
    seconds: f64,
    peak: f64,
}

async fn audit(it: &Audit, pods: usize) -> Outcome<Measured> {
    let out = it.folder.path().join("scale.json");
    let mut command = it.command(&["audit", "-n", &it.way.scale(), "-o", "json"]);
    command.stdout(fs::File::create(&out)?).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    let code = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        peak = peak.max(kib.unwrap_or_default() / 1024.0);
        if let Some(status) = child.try_wait()? {
            break status.code();
        }
        tokio::task::yield_now().await;
    };
    let seconds = started.elapsed().as_secs_f64();
    expect("the exit code", Some(0), code)?;
    let audit: Value = serde_json::from_slice(&fs::read(&out)?)?;
    let expected = json!([pods, pods / 2, pods / 2]);
    let counts = &audit["pods"];
    expect("the pods", expected, json!([counts["total"], counts["meshed"], counts["unmeshed"]]))?;
    Ok(Measured { seconds, peak })
}
