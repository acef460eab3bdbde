//! Watches workloads, budgets and namespaces, and records each version of them.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::StreamExt as _;
use injectd_controllers::restart::{RESTARTED_AT_ANNOTATION, WINDOW_ANNOTATION};
use injectd_harness::{
    expect::{Outcome, failed},
    namespaced::OF_SCENARIO,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
    runtime::{
        WatchStreamExt as _,
        watcher::{Config, watcher},
    },
};
use tokio::{sync::watch, task::JoinSet, time::timeout};

use super::fleet::is_open;

/// Longer than the restart of all workloads takes on a slow machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Kind, namespace and name.
pub(super) type Key = (&'static str, String, String);

/// A version of an object.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Grows with each write to the cluster.
    pub(super) version: u64,
    pub(super) key: Key,
    pub(super) fact: Fact,
}

#[derive(Debug, Clone)]
pub(super) enum Fact {
    Namespace {
        is_open: bool,
    },
    /// Of the workload of the same name.
    Budget {
        is_exhausted: bool,
    },
    Workload {
        generation: i64,
        restarted_at: Option<String>,
        is_finished: bool,
    },
}

/// What the newest versions say.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) restarted: usize,
    pub(super) finished: usize,
    /// Restarted and not finished.
    pub(super) in_flight: usize,
    /// Budgets that allow no disruption.
    pub(super) exhausted: usize,
}

pub(super) struct Recorder {
    records: Arc<Mutex<Vec<Record>>>,
    seen: watch::Receiver<Seen>,
    _tasks: JoinSet<()>,
}

impl Recorder {
    /// Of the objects whose label says that they are of a scenario.
    pub(super) fn start(client: &Client, scenario: &str) -> Self {
        let (records, seen) = (Arc::<Mutex<Vec<Record>>>::default(), watch::Sender::default());
        let receiver = seen.subscribe();
        let (found, mut changes) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for (group, kind) in [
            ("", "Namespace"),
            ("policy", "PodDisruptionBudget"),
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("apps", "DaemonSet"),
        ] {
            let (client, found) = (client.clone(), found.clone());
            let selector = format!("{OF_SCENARIO}={scenario}");
            tasks.spawn(async move {
                let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
                let api = Api::<DynamicObject>::all_with(client, &resource);
                let config = Config::default().labels(&selector);
                let mut objects = pin!(watcher(api, config).default_backoff().applied_objects());
                while let Some(object) = objects.next().await {
                    let record = object.ok().map(|object| record(kind, &object));
                    if record.is_some_and(|record| found.send(record).is_err()) {
                        return;
                    }
                }
            });
        }
        let into = Arc::clone(&records);
        tasks.spawn(async move {
            let mut newest = Newest::default();
            while let Some(record) = changes.recv().await {
                newest.add(&record);
                into.lock().unwrap_or_else(PoisonError::into_inner).push(record);
                seen.send_replace(newest.seen);
            }
        });
        Self { records, seen: receiver, _tasks: tasks }
    }

    pub(super) fn seen(&self) -> Seen {
        *self.seen.borrow()
    }

    pub(super) async fn wait(&self, what: &str, is_so: impl Fn(&Seen) -> bool) -> Outcome {
        let mut seen = self.seen.clone();
        let found = timeout(PATIENCE, seen.wait_for(is_so)).await;
        match found {
            Ok(found) => Ok(found.map(drop)?),
            Err(_) => Err(failed(format!("{what}: not in time; seen: {:?}", self.seen()))),
        }
    }

    /// All records, in the order of the writes.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The kinds have a watch each, and only the version of the object says which write came
        // first.
        records.sort_by_key(|record| record.version);
        records
    }
}

#[derive(Default)]
struct Newest {
    facts: HashMap<Key, Fact>,
    seen: Seen,
}

impl Newest {
    fn add(&mut self, record: &Record) {
        if let Some(before) = self.facts.insert(record.key.clone(), record.fact.clone()) {
            self.count(&before, |count, by| *count -= by);
        }
        self.count(&record.fact, |count, by| *count += by);
    }

    fn count(&mut self, fact: &Fact, add: impl Fn(&mut usize, usize)) {
        match fact {
            Fact::Namespace { .. } => {}
            Fact::Budget { is_exhausted } => {
                add(&mut self.seen.exhausted, usize::from(*is_exhausted));
            }
            Fact::Workload { restarted_at, is_finished, .. } => {
                let is_restarted = restarted_at.is_some();
                add(&mut self.seen.restarted, usize::from(is_restarted));
                add(&mut self.seen.finished, usize::from(*is_finished));
                add(&mut self.seen.in_flight, usize::from(is_restarted && !is_finished));
            }
        }
    }
}

fn record(kind: &'static str, object: &DynamicObject) -> Record {
    let version =
        object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default();
    let key = (kind, object.namespace().unwrap_or_default(), object.name_any());
    let (spec, status) = (&object.data["spec"], &object.data["status"]);
    let generation = object.metadata.generation.unwrap_or_default();
    let is_observed = status["observedGeneration"].as_i64() == Some(generation);
    let number = |name: &str| status[name].as_i64().unwrap_or_default();
    let fact = match kind {
        "Namespace" => {
            let window = object.annotations().get(WINDOW_ANNOTATION);
            Fact::Namespace { is_open: window.is_none_or(|window| is_open(window)) }
        }
        "PodDisruptionBudget" => {
            Fact::Budget { is_exhausted: !is_observed || number("disruptionsAllowed") < 1 }
        }
        _ => {
            let is_finished = match kind {
                "DaemonSet" => {
                    let numbers = ["updatedNumberScheduled", "numberAvailable"].map(number);
                    numbers == [number("desiredNumberScheduled"); 2]
                }
                "StatefulSet" => {
                    let revisions =
                        ["currentRevision", "updateRevision"].map(|revision| &status[revision]);
                    revisions[0] == revisions[1]
                        && ["replicas", "availableReplicas"].map(number) == [1; 2]
                }
                _ => {
                    let counts = ["replicas", "updatedReplicas", "availableReplicas"];
                    HashSet::from(counts.map(number)) == HashSet::from([1])
                }
            };
            let annotations = &spec["template"]["metadata"]["annotations"];
            let restarted_at = annotations[RESTARTED_AT_ANNOTATION].as_str().map(str::to_owned);
            Fact::Workload { generation, restarted_at, is_finished: is_observed && is_finished }
        }
    };
    Record { version, key, fact }
}
