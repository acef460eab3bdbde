//! The audit of many pods.

use std::{
    fs::{self, File},
    time::Instant,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use injectd_harness::{
    expect::{Outcome, expect, failed},
    objects,
    program::{Program, memory_kib},
    scenario::note,
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
/// The peak with all pods is at most so many percent of the one with the first.
// Pods are read in pages and not kept: twenty times the pods may add the counts of their workloads,
// and noise.
const MAX_PERCENT: u64 = 150;

/// The peaks of memory with the first pods, and with all.
pub(super) async fn memory(it: &Audit<'_>) -> Outcome {
    let pods = PODS[usize::from(!it.it.lab.is_long)];
    let namespace = scale(it);
    it.it.make_object(&it.way.namespace(&namespace, it.it)).await?;
    let mut owners = Vec::new();
    for index in 0..WORKLOADS {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("workload-{index}")}});
        let owner = it.it.lab.api.create(Some(&namespace), &owner).await?.created()?;
        owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "controller": true,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}));
    }
    create(it, &owners, 0..FEW).await?;
    let few = audit(it, FEW).await?;
    create(it, &owners, FEW..pods).await?;
    let all = audit(it, pods).await?;
    let percent = all.kib * 100 / few.kib.max(1);
    if percent > MAX_PERCENT {
        return Err(failed(format!("the peak is {percent} % of that with the first pods")));
    }
    note(&format!(
        "{pods} pods: {:.1} s, {} MiB; {FEW} pods: {:.1} s, {} MiB",
        all.seconds,
        all.kib >> 10,
        few.seconds,
        few.kib >> 10
    ));
    Ok(())
}

/// The namespace of the pods that lack nothing.
fn scale(it: &Audit<'_>) -> String {
    it.it.name_of("scale")
}

/// Half of the pods ask for no sidecar: the webhook answers for all.
async fn create(it: &Audit<'_>, owners: &[Value], which: std::ops::Range<usize>) -> Outcome {
    let namespace = scale(it);
    let api = it.it.unaudited(std::slice::from_ref(&namespace)).await?;
    let one = async |index: usize| -> Outcome {
        let mut pod = objects::owned_pod(&format!("pod-{index}"), &owners[index % WORKLOADS]);
        if index.is_multiple_of(2) {
            it.way.mesh.disable(&mut pod);
        }
        api.create(Some(&namespace), &pod).await?.created().map(drop)
    };
    stream::iter(which).map(one).buffer_unordered(PARALLEL).try_collect().await
}

/// How long an audit takes, and its peak of memory.
struct Measured {
    seconds: f64,
    kib: u64,
}

async fn audit(it: &Audit<'_>, pods: usize) -> Outcome<Measured> {
    let out = it.folder.path().join("scale.json");
    let mut command = it.command(&["audit", "-n", &scale(it), "-o", "json"]);
    let err = File::create(it.folder.path().join("scale.err"))?;
    let started = Instant::now();
    let mut program = Program::start(&mut command, File::create(&out)?, err)?;
    let mut kib = 0;
    let code = loop {
        // A process that has ended has none.
        kib = memory_kib(program.pid(), "VmHWM").unwrap_or_default().max(kib);
        if let Some(status) = program.exit_status()? {
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
    Ok(Measured { seconds, kib })
}
