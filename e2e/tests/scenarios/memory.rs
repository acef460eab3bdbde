//! Memory of injectd by objects of the cluster, and reviews that wait for it.
//!
//! Namespaces, pods and `ReplicaSets` are plain objects. The controllers are stopped, so that nothing
//! else changes. Reviews go directly to the webhook. Each scenario prints a table of resident memory.

mod callers;
mod extent;
mod objects;
mod outage;

use injectd_harness::{
    certificates::Ca,
    client::patch_of,
    component::Component,
    expect::{Outcome, expect, skipped},
    lab::{Lab, is_long},
    linkerd::make_account,
    objects::{namespace, service_account},
    scenario::{explain, note, passed_over, step, with_own_lab},
};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Duration, sleep};

use crate::{
    endurance::crowd::mib,
    replica::{Mounts, Replica},
};
use callers::{Answers, send};
use extent::Extent;
use objects::{CROWD, Objects, team};

/// The budget of `docs/performance.md`, with any number of pods.
const MAX_KIB: u64 = 64 << 10;
const MAX_START_SECONDS: f64 = 1.0;
/// Less growth than this is noise: pods and `ReplicaSets` in memory would take more.
const NOISE_KIB: u64 = 4 << 10;
/// Of `kube-lab`: an API server with 10,000 namespaces and 20,000 pods.
const FLAGS: &str = "-memory=3GiB";
const CALLERS: usize = 25;
// The fastest counts: other work on the machine only makes a start slower.
const STARTS: usize = 3;
const DEPLOYMENT: &str = "/metadata/labels/linkerd.io~1proxy-deployment";
const LEVEL: &str = "config.linkerd.io/proxy-log-level";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_grows_with_namespaces_and_owners_alone_and_stays_in_its_budget() -> Outcome {
    with_own_lab(FLAGS, async |lab| {
        measure(lab, if lab.is_long { Extent::LONG } else { Extent::SHORT }).await
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_and_series_of_events_stay_in_the_budget() -> Outcome {
    if_long(Extent { replica_sets: 20_000, injections: 40_000, ..Extent::SHORT }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_that_is_not_read_stays_in_the_budget() -> Outcome {
    if_long(Extent { annotations: 20, ..Extent::LONG }).await
}

/// Scenarios that measure a figure of `docs/performance.md` and check nothing that the first does not.
async fn if_long(extent: Extent) -> Outcome {
    if !is_long() {
        return passed_over(Err(skipped("it runs at full length alone (--long)")));
    }
    with_own_lab(FLAGS, async |lab| measure(lab, extent).await).await
}

struct Row {
    when: String,
    rss_kib: u64,
    peak_kib: u64,
}

/// One replica, the objects in the cluster, and the measured memory.
struct Memory<'a> {
    lab: &'a Lab,
    extent: Extent,
    objects: Objects,
    owners: Vec<Value>,
    rows: Vec<Row>,
    api_server: Component,
    _controllers: Component,
    ca: Ca,
    replica: Replica,
    _folder: TempDir,
}

async fn measure(lab: &Lab, extent: Extent) -> Outcome {
    let mut memory = Memory::new(lab, extent).await?;
    let outcome = memory.steps().await;
    memory.print();
    explain(&outcome, "injectd's log", memory.replica.injectd.log().lines());
    outcome
}

impl<'a> Memory<'a> {
    async fn new(lab: &'a Lab, extent: Extent) -> Outcome<Self> {
        let (folder, ca) = (tempfile::tempdir()?, Ca::new()?);
        let kubeconfig = make_account(&lab.api, "linkerd", folder.path()).await?;
        let (files, place) = (Mounts::new(&ca)?, folder.path().join("replica"));
        let replica = Replica::new(&lab.binary, &place, &kubeconfig, &files)?;
        let crowd = namespace(CROWD, &json!({}), &json!({}));
        lab.api.create(None, &crowd).await?.created()?;
        // The controller manager may be faster.
        lab.api.create(Some(CROWD), &service_account("default")).await?;
        let controllers = Component::beside(&lab.kubeconfig, "kube-controller-manager")?;
        controllers.hang().await?;
        Ok(Self {
            lab,
            objects: Objects::new(&lab.api, extent.annotations)?,
            extent,
            owners: Vec::new(),
            rows: Vec::new(),
            api_server: Component::beside(&lab.kubeconfig, "kube-apiserver")?,
            _controllers: controllers,
            ca,
            replica,
            _folder: folder,
        })
    }

    async fn steps(&mut self) -> Outcome {
        let [few, some, many] = self.extent.namespaces;
        step(format!("{few} namespaces"), self.first()).await?;
        step(format!("start with {some} namespaces"), self.starts()).await?;
        step(format!("{many} namespaces"), self.namespaces()).await?;
        step("pods and ReplicaSets", self.crowd()).await?;
        step("pods injected", self.injections()).await?;
        step("a pod each of new ReplicaSets", self.strangers()).await?;
        step("memory is in its budget", async { self.budget() }).await?;
        step("sets of overrides", self.templates()).await?;
        step("the API server hangs and is back", self.hangs()).await?;
        step("SIGTERM ends it", self.replica.injectd.terminate()).await
    }

    // === steps ===

    async fn first(&mut self) -> Outcome {
        let count = self.extent.namespaces[0];
        self.objects.fill(count).await?;
        let seconds = self.replica.start().await?;
        note(&format!("ready after {seconds:.2} s"));
        self.measure(format!("{count} namespaces")).await
    }

    async fn starts(&mut self) -> Outcome {
        let count = self.extent.namespaces[1];
        self.watch(count).await?;
        let mut fastest = f64::INFINITY;
        for _ in 0..STARTS {
            fastest = fastest.min(self.start_again().await?);
        }
        self.measure(format!("{count} namespaces, listed at start")).await?;
        let what = format!("whether {fastest:.2} s is in the budget of {MAX_START_SECONDS} s");
        expect(what, true, fastest <= MAX_START_SECONDS)
    }

    async fn namespaces(&mut self) -> Outcome {
        let count = self.extent.namespaces[2];
        self.watch(count).await?;
        self.start_again().await?;
        self.measure(format!("{count} namespaces, listed at start")).await
    }

    async fn crowd(&mut self) -> Outcome {
        let (pods, sets) = (self.extent.pods, self.extent.replica_sets);
        let before = self.last_peak();
        self.objects.pods(pods).await?;
        self.owners = self.objects.replica_sets(sets).await?;
        let what = format!("  and {pods} pods, {sets} ReplicaSets");
        self.measure(format!("{what}, created meanwhile")).await?;
        // The peak, because the allocator returns the memory of the list at start at some time.
        let more = self.last_peak() - before;
        self.start_again().await?;
        self.measure(format!("{what}, present at start")).await?;
        expect(format!("whether {more} KiB are noise"), true, more <= NOISE_KIB)
    }

    /// injectd looks up each owner once; the pods are in many namespaces.
    async fn injections(&mut self) -> Outcome {
        let (count, teams) = (self.extent.injections, self.extent.namespaces[2] / 2);
        let review = |index: usize| {
            if index.is_multiple_of(2) {
                return self.objects.review(&team(index / 2 % teams), None, None);
            }
            let owner = &self.owners[index / 2 % self.owners.len()];
            self.objects.review(CROWD, Some(owner), None)
        };
        let reviews: Vec<_> = (0..count).map(review).collect();
        note(&self.send(&reviews, CALLERS).await?.text());
        self.measure(format!("  and {count} pods injected over {CALLERS} connections")).await
    }

    async fn strangers(&mut self) -> Outcome {
        let count = self.extent.strangers;
        let strangers = self.objects.replica_sets(count).await?;
        let before = self.misses("owners").await?;
        let review = |user| self.objects.review(CROWD, Some(user), None);
        let reviews: Vec<_> = strangers.iter().map(review).collect();
        let found = self.send(&reviews, CALLERS).await?;
        for (stranger, response) in strangers.iter().zip(found.expect_injected()?) {
            let operations = patch_of(&response)?;
            let label = operations.iter().find(|operation| operation["path"] == DEPLOYMENT);
            let theirs = &stranger["metadata"]["ownerReferences"][0]["name"];
            expect("the label", Some(theirs), label.map(|operation| &operation["value"]))?;
        }
        let misses = self.misses("owners").await? - before;
        expect("unknown owners", count as u64, misses)?;
        note(&format!("{CALLERS} callers; {}; all labelled with their Deployment", found.text()));
        self.measure(format!("  and {count} pods of as many new ReplicaSets")).await
    }

    fn budget(&self) -> Outcome {
        let most = self.rows.iter().map(|row| row.rss_kib).max().unwrap_or_default();
        note(&format!("{} at most, of {}", mib(most), mib(MAX_KIB)));
        expect(format!("whether {most} KiB are in the budget"), true, most <= MAX_KIB)
    }

    /// Each set is used once: an uncached template costs time, and the cache is bounded.
    async fn templates(&mut self) -> Outcome {
        let count = self.extent.templates;
        let review = |index: usize| {
            let level = format!("warn,linkerd=debug,set={index}");
            self.objects.review(CROWD, None, Some((LEVEL, level)))
        };
        let reviews: Vec<_> = (0..count).map(review).collect();
        note(&self.send(&reviews, CALLERS).await?.text());
        self.measure(format!("  and {count} sets of overrides")).await
    }

    // === parts of the steps ===

    /// Creates namespaces that injectd watches; fails if it does not know the newest.
    async fn watch(&mut self, count: usize) -> Outcome {
        self.objects.fill(count).await?;
        self.measure(format!("{count} namespaces, watched one by one")).await?;
        let before = self.misses("namespaces").await?;
        let review = |index: usize| self.objects.review(&team(index), None, None);
        // Some namespaces have other names.
        let newest: Vec<_> = (count - 50..count - 10).map(review).collect();
        self.send(&newest, 1).await?;
        expect("unknown namespaces", before, self.misses("namespaces").await?)
    }

    async fn start_again(&mut self) -> Outcome<f64> {
        let status = self.replica.injectd.stop(Signal::INT).await?;
        expect("the exit code", Some(0), status.code())?;
        let seconds = self.replica.start().await?;
        note(&format!("ready after {seconds:.2} s"));
        Ok(seconds)
    }

    async fn misses(&self, cache: &str) -> Outcome<u64> {
        self.replica.metric("injectd_cache_misses_total", &[("cache", cache)]).await
    }

    /// Sends reviews; all must be injected.
    async fn send(&self, reviews: &[Vec<u8>], callers: usize) -> Outcome<Answers> {
        let found = send(&self.replica.endpoint(&self.ca)?, reviews, callers, 10).await?;
        found.expect_injected()?;
        Ok(found)
    }

    /// Records the memory once it no longer changes.
    async fn measure(&mut self, when: String) -> Outcome {
        let mut before = 0;
        loop {
            let rss_kib = self.replica.memory_kib("VmRSS")?;
            if rss_kib == before {
                let peak_kib = self.replica.memory_kib("VmHWM")?;
                self.rows.push(Row { when, rss_kib, peak_kib });
                return Ok(());
            }
            before = rss_kib;
            sleep(Duration::from_millis(500)).await;
        }
    }

    fn last_peak(&self) -> u64 {
        self.rows.last().map_or(0, |row| row.peak_kib)
    }

    fn print(&self) {
        note(&format!("  {:57} {:>10} {:>10}", "", "RSS", "peak"));
        for Row { when, rss_kib, peak_kib } in &self.rows {
            note(&format!("  {when:57} {:>10} {:>10}", mib(*rss_kib), mib(*peak_kib)));
        }
    }
}
