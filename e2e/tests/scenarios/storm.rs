//! Two replicas behind a Service, pods created all the time, and one fault after another.
//!
//! No call of the webhook may fail, except those in progress at a SIGKILL. With failurePolicy Fail these
//! are retried: every pod must get its sidecar, and no pod may be lost. With Ignore they are counted.

mod creators;
mod faults;
mod flood;
mod pair;
mod phase;

use std::{collections::BTreeSet, time::Duration};

use injectd_harness::{
    api::collection,
    expect::{Outcome, eventually, expect, failed},
    lab::Lab,
    metrics::metric,
    objects::{deployment, enabled},
    scenario::{explain, note, step, with_own_lab},
    sidecar::expect_workload,
};
use serde_json::{Value, json};

use creators::{Creators, NUMBER};
use faults::Fault;
use pair::Pair;
use phase::{Phase, Settings, sidecars};

/// Small, so that the floods reach them; the API server keeps fewer connections.
const MAX_CONNECTIONS: u64 = 100;
const MAX_REQUESTS: u64 = 16;
/// What the API server answers if the webhook does not.
const WEBHOOK_FAILED: &str = "failed calling webhook";
/// A list is read in pages.
const PAGE: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_loses_a_pod_or_a_sidecar_with_policy_fail() -> Outcome {
    with_own_lab("", async |lab| storm(lab, "Fail").await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_killed_replica_leaves_pods_without_sidecar_with_policy_ignore() -> Outcome {
    with_own_lab("", async |lab| storm(lab, "Ignore").await).await
}

/// The number of pods and faults.
struct Extent {
    creators: usize,
    pause: Duration,
    short_pause: Duration,
    replicas: usize,
    /// The least number of pods of a phase; most phases have more.
    pods: usize,
    hung: Duration,
    floods: usize,
}

impl Extent {
    /// The short one makes each fault once, with as many pods as show it.
    fn of(lab: &Lab) -> Self {
        let millis = Duration::from_millis;
        if lab.is_long {
            Self {
                creators: 8,
                pause: millis(250),
                short_pause: millis(50),
                replicas: 6,
                pods: 80,
                hung: millis(4000),
                floods: 3,
            }
        } else {
            Self {
                creators: 6,
                pause: millis(200),
                short_pause: millis(50),
                replicas: 3,
                pods: 30,
                hung: millis(1500),
                floods: 1,
            }
        }
    }
}

/// All faults with one failure policy.
struct Storm<'a> {
    pair: Pair<'a>,
    creators: Creators,
    extent: Extent,
    /// The uids of the Deployment's pods that were counted.
    seen: BTreeSet<String>,
}

async fn storm(lab: &Lab, policy: &'static str) -> Outcome {
    let extent = Extent::of(lab);
    let pair = Pair::start(lab, policy).await?;
    let creators = Creators::new(&lab.api, pair.namespace(), extent.creators, extent.pause);
    let mut storm = Storm { pair, creators, extent, seen: BTreeSet::new() };
    let outcome = storm.all(policy, lab.is_long).await;
    phase::print(&storm.creators.phases());
    storm.explain(&outcome);
    outcome
}

impl Storm<'_> {
    async fn all(&mut self, policy: &str, is_long: bool) -> Outcome {
        step("the webhook is registered", self.register()).await?;
        for fault in Fault::ALL {
            // The restart of the API server takes longest.
            let is_left_out = fault == Fault::ApiServerRestarts && policy == "Fail" && !is_long;
            if is_left_out {
                note(&format!("{} is left out of the short run", fault.name()));
            } else {
                step(fault.name(), self.under_load(fault, policy)).await?;
            }
        }
        step("every pod exists, with one sidecar at most", self.audit()).await
    }

    async fn register(&mut self) -> Outcome {
        self.pair.register().await?;
        let web = deployment("web", 0, &enabled());
        let api = &self.pair.lab.api;
        api.create(Some(self.pair.namespace()), &web).await?.created().map(drop)
    }

    async fn settings(&self) -> Outcome<Settings> {
        Ok(Settings::of(&self.pair.expect_injected(self.pair.namespace()).await?))
    }

    /// Makes a fault while pods are created; at the end all pods of the Deployment must exist.
    async fn under_load(&mut self, fault: Fault, policy: &str) -> Outcome {
        let before = self.settings().await?;
        self.creators.enter(fault.name()).await?;
        self.scale().await?;
        self.make(fault).await?;
        self.creators.wait_for(self.extent.pods).await?;
        self.count_replicas().await?;
        let after = self.settings().await?;
        check(fault, policy, &self.creators.phase(), &[before, after])
    }

    fn replicas(&self) -> usize {
        self.creators.phases().len() * self.extent.replicas
    }

    async fn scale(&self) -> Outcome {
        let path = collection("apps/v1", "Deployment", Some(self.pair.namespace()));
        let path = format!("{path}/web/scale");
        let replicas = self.replicas();
        eventually("the Deployment is scaled", async || {
            self.pair
                .lab
                .api
                .update(&path, |deployment| deployment["spec"]["replicas"] = json!(replicas))
                .await
        })
        .await
    }

    /// Counts the Deployment's pods of this phase once all exist.
    async fn count_replicas(&mut self) -> Outcome {
        let pods = eventually("the Deployment's pods", async || {
            let namespace = self.pair.namespace();
            let pods = self.pair.lab.api.of_app("v1", "Pod", namespace, "web").await?;
            expect("the number of the Deployment's pods", self.replicas(), pods.len())?;
            Ok(pods)
        })
        .await?;
        for pod in pods {
            let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
            if self.seen.insert(uid.to_owned()) && self.creators.count(&pod)? {
                expect_workload(&pod, &[("deployment", "web")])?;
            }
        }
        Ok(())
    }

    /// Compares the stored pods with the counts of this program and of the API server.
    async fn audit(&mut self) -> Outcome {
        self.creators.stop().await;
        self.creators.expect_no_failure()?;
        let phases = self.creators.phases();
        let uninjected: BTreeSet<_> =
            phases.iter().flat_map(|phase| &phase.uninjected).map(|pod| pod.name.clone()).collect();
        let (mut numbers, mut without, mut count) = (BTreeSet::new(), BTreeSet::new(), 0);
        for pod in self.stored().await? {
            count += 1;
            let metadata = &pod["metadata"];
            numbers.extend(metadata["labels"][NUMBER].as_str().map(str::to_owned));
            let name = metadata["name"].as_str().unwrap_or_default().to_owned();
            match sidecars(&pod) {
                0 => drop(without.insert(name)),
                1 => {}
                count => return Err(failed(format!("{count} sidecars in {name}"))),
            }
        }
        let begun = self.creators.begun();
        let missing: Vec<_> =
            (0..begun).filter(|number| !numbers.contains(&number.to_string())).collect();
        expect("creations without a pod", [0; 0].as_slice(), missing.as_slice())?;
        let uncounted: Vec<_> = without.difference(&uninjected).collect();
        expect("whether stored pods without sidecar are counted", true, uncounted.is_empty())?;
        let text = self.pair.lab.api.get("/metrics").await?.ok()?;
        let text = text["message"].as_str().unwrap_or_default();
        let labels = [("type", "admit")];
        let failed_open = metric(text, "apiserver_admission_webhook_fail_open_count", &labels);
        let what = "the API server's count of calls that failed open";
        expect(what, without.len() as u64, failed_open)?;
        self.expect_healthy().await?;
        note(&format!(
            "{count} stored, {} without sidecar, as many as failed open; {} of them created twice, \
             because the first answer was lost",
            without.len(),
            count - begun - self.seen.len() as u64,
        ));
        Ok(())
    }

    /// All pods of the namespace.
    async fn stored(&self) -> Outcome<Vec<Value>> {
        let path = collection("v1", "Pod", Some(self.pair.namespace()));
        let (mut pods, mut rest) = (Vec::new(), String::new());
        loop {
            let page = format!("{path}?limit={PAGE}&continue={rest}");
            let mut list = self.pair.lab.api.get(&page).await?.ok()?;
            for mut pod in list["items"].as_array_mut().into_iter().flatten().map(Value::take) {
                // Lists leave it out.
                pod["kind"] = json!("Pod");
                pods.push(pod);
            }
            list["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut rest);
            if rest.is_empty() {
                return Ok(pods);
            }
        }
    }

    async fn expect_healthy(&self) -> Outcome {
        for replica in &self.pair.replicas {
            replica.expect_ready().await?;
            eventually("the watch", async || {
                let failing = replica.metric("injectd_watch_failing", &[]).await?;
                expect("whether it fails", 0, failing)
            })
            .await?;
            expect("bugs", 0, replica.metric("injectd_panics_total", &[]).await?)?;
        }
        Ok(())
    }

    fn explain(&self, outcome: &Outcome) {
        for (index, replica) in self.pair.replicas.iter().enumerate() {
            let log = replica.injectd.log();
            let lines = log.lines().filter(|line| !line.contains("level=info"));
            explain(outcome, format_args!("the log of replica {index}"), lines);
        }
        let log = std::fs::read(&self.pair.api_server.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines = log.lines().filter(|line| line.to_lowercase().contains(WEBHOOK_FAILED));
        explain(outcome, "failed calls in the API server's log", lines);
    }
}

/// Fails if a fault had an effect that it must not have.
fn check(fault: Fault, policy: &str, phase: &Phase, settings: &[Settings; 2]) -> Outcome {
    let (is_killed, examples) = (fault == Fault::Killed, &phase.examples);
    let may_fail_open = is_killed && policy == "Ignore";
    if !phase.uninjected.is_empty() && !may_fail_open {
        let some = phase.uninjected.iter().take(3).collect::<Vec<_>>();
        return Err(failed(format!("pods without sidecar: {some:?} of {}", phase.created)));
    }
    if phase.refused > 0 && !is_killed {
        return Err(failed(format!("{} calls of the webhook failed: {examples:?}", phase.refused)));
    }
    if phase.unreachable > 0 && fault != Fault::ApiServerRestarts {
        let count = phase.unreachable;
        return Err(failed(format!("{count} creations not answered: {examples:?}")));
    }
    let is_change = matches!(fault, Fault::ValuesChange | Fault::RootsChange);
    expect("whether settings changed", is_change, settings[0] != settings[1])?;
    let others: Vec<_> =
        phase.settings.iter().filter(|setting| !settings.contains(setting)).collect();
    expect(format!("settings that are neither old nor new ({others:?})"), 0, others.len())
}
