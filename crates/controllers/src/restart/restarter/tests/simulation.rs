//! A restarter in a simulated cluster: rollouts end when they like, answers are lost, leaders change.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, Mutex, MutexGuard},
};

use injectd_k8s::selector::LabelSelector;
use jiff::SignedDuration;
use proptest::prelude::*;
use tokio::runtime;

use super::*;
use crate::restart::{
    Budget, NamespaceSettings, ReplicaSet, Rollout,
    namespace::Mode,
    rim::{Answer, RequestError, Rim},
};

const BEGIN: &str = "2026-11-29T12:00:00Z";
const NAMESPACES: [&str; 3] = ["a", "b", "c"];
/// Workloads of each namespace.
const WORKLOADS: usize = 2;
const MAX_RESTARTING: usize = 2;
/// Events of a run.
const EVENTS: usize = 60;
/// Rounds in which a healthy cluster has all workloads restarted: several for each.
const ROUNDS: usize = 40;

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    /// The leader looks.
    Step,
    /// Time passes.
    Seconds(i64),
    /// The rollout of a workload ends.
    Finish(usize),
    /// An audit lists all workloads.
    Audit,
    /// The leader is killed, and the next one begins.
    NewLeader,
    /// The budget of a namespace allows no disruption, or does again.
    Budget(usize, bool),
    /// Namespaces and workloads cannot be read, or can be again.
    Unreadable(bool),
    /// The next restart fails in this way.
    Fault(Fault),
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The workload is restarted, and the answer is lost.
    Lost,
    /// The workload changed since it was read.
    Changed,
    /// The API server refuses.
    Refused,
}

/// A workload, and when it was restarted.
struct Simulated {
    workload: Workload,
    observed: Observed,
    restarts: Vec<Timestamp>,
}

struct World {
    now: Timestamp,
    workloads: Vec<Simulated>,
    /// Namespaces whose budget is exhausted.
    exhausted: BTreeMap<String, bool>,
    is_unreadable: bool,
    fault: Option<Fault>,
}

/// The cluster of a world.
#[derive(Clone)]
struct Simulation(Arc<Mutex<World>>);

impl Simulation {
    fn new() -> Self {
        let names =
            NAMESPACES.iter().flat_map(|namespace| (0..WORKLOADS).map(move |at| (namespace, at)));
        let workloads = names.map(|(namespace, at)| {
            let workload = Workload {
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                namespace: (*namespace).into(),
                name: format!("w{at}"),
                uid: None,
            };
            let observed = Observed {
                uid: workload.to_string(),
                resource_version: "0".into(),
                ..Observed::default()
            };
            Simulated { workload, observed, restarts: Vec::new() }
        });
        Self(Arc::new(Mutex::new(World {
            now: BEGIN.parse().expect("a time"),
            workloads: workloads.collect(),
            exhausted: BTreeMap::new(),
            is_unreadable: false,
            fault: None,
        })))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("a world")
    }

    /// An answer of the cluster, if it can be read.
    fn read<'a, T: Send + 'a>(&self, answer: impl FnOnce(&World) -> T) -> Answer<'a, T> {
        let world = self.world();
        let answer =
            if world.is_unreadable { Err(RequestError::Timeout) } else { Ok(answer(&world)) };
        Box::pin(ready(answer))
    }
}

impl World {
    fn of(&self, workload: &Workload) -> Option<&Simulated> {
        self.workloads.iter().find(|known| known.workload.is_same(workload))
    }

    fn restart(
        &mut self,
        workload: &Workload,
        read: &Observed,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let is_exhausted = self.exhausted.get(&workload.namespace).is_some_and(|is_so| *is_so);
        assert!(!is_exhausted, "the budget of {workload} allows no disruption");
        let fault = self.fault.take();
        if let Some(fault @ (Fault::Changed | Fault::Refused)) = fault {
            return Err(fault);
        }
        let known = self.workloads.iter_mut().find(|known| known.workload.is_same(workload));
        let Simulated { observed, restarts, .. } = known.expect("a workload");
        if observed.resource_version != read.resource_version {
            return Err(Fault::Changed);
        }
        let last = restarts.last().map(|last| at.duration_since(*last));
        assert!(last.is_none_or(|ago| ago >= PAUSE), "{workload} was restarted {last:?} ago");
        restarts.push(at);
        observed.resource_version = restarts.len().to_string();
        observed.rollout = Rollout::InProgress;
        observed.restarted_at = Some(at);
        observed.is_restarted_by_us = true;
        fault.map_or(Ok(()), Err)
    }

    /// Ends all faults; returns how often each workload was restarted.
    fn heal(&mut self) -> Vec<usize> {
        self.is_unreadable = false;
        self.fault = None;
        self.exhausted.clear();
        self.workloads.iter().map(|known| known.restarts.len()).collect()
    }

    /// Asserts that few workloads roll out: one of a namespace, and few in all. A rollout that takes too
    /// long counts for its namespace only, and a new leader does not see one that is older than an hour.
    fn check(&self, policy: &Policy) {
        let rolls_out = |known: &&Simulated| known.observed.rollout != Rollout::Finished;
        let mut namespaces = BTreeMap::<&str, usize>::new();
        let mut timely = 0;
        for known in self.workloads.iter().filter(rolls_out) {
            let age = self.now.duration_since(*known.restarts.last().expect("a restart"));
            timely += usize::from(age.unsigned_abs() < policy.rollout_timeout);
            *namespaces.entry(&known.workload.namespace).or_default() += usize::from(age < PAUSE);
        }
        assert!(namespaces.values().all(|count| *count <= 1), "{namespaces:?}");
        assert!(timely <= policy.max_restarting, "{timely} roll out");
    }
}

impl Rim for Simulation {
    fn now(&self) -> Timestamp {
        self.world().now
    }

    fn settings<'a>(&'a self, _: &'a str) -> Answer<'a, NamespaceSettings> {
        self.read(|_| NamespaceSettings::default())
    }

    fn budgets<'a>(&'a self, namespace: &'a str) -> Answer<'a, Arc<[Budget]>> {
        self.read(|world| {
            let is_exhausted = world.exhausted.get(namespace).is_some_and(|is_so| *is_so);
            let allowed = i64::from(!is_exhausted);
            [Budget::new("all", Some(LabelSelector::default()), allowed)].into()
        })
    }

    fn workload<'a>(&'a self, workload: &'a Workload) -> Answer<'a, Option<Observed>> {
        self.read(|world| world.of(workload).map(|known| known.observed.clone()))
    }

    fn is_owner<'a>(
        &'a self,
        _: &'a Workload,
        _: &'a str,
        _: &'a [ReplicaSet],
    ) -> Answer<'a, bool> {
        self.read(|_| true)
    }

    fn unfinished(&self, since: Timestamp) -> Answer<'_, Vec<(Workload, Observed)>> {
        self.read(|world| {
            let known = world.workloads.iter();
            let unfinished = known.filter(|known| known.observed.unfinished_since(since).is_some());
            unfinished.map(|known| (known.workload.clone(), known.observed.clone())).collect()
        })
    }

    fn restart<'a>(&'a self, workload: &'a Workload, mark: Mark<'a>) -> Answer<'a, ()> {
        let restarted = self.world().restart(workload, mark.observed, mark.at);
        Box::pin(ready(restarted.map_err(|fault| match fault {
            Fault::Lost => RequestError::Timeout,
            Fault::Changed => RequestError::Changed,
            Fault::Refused => answer(403),
        })))
    }
}

/// The leader in a world.
struct Run {
    simulation: Simulation,
    policy: Policy,
    /// `None` until a leader has read the rollouts of the one before.
    restarter: Option<Restarter>,
}

impl Run {
    async fn happens(&mut self, event: Event) {
        match event {
            Event::Step => self.step().await,
            Event::Seconds(seconds) => {
                let mut world = self.simulation.world();
                world.now += SignedDuration::from_secs(seconds);
            }
            Event::Finish(index) => {
                self.simulation.world().workloads[index].observed.rollout = Rollout::Finished;
            }
            Event::Audit => self.audit(),
            Event::NewLeader => self.restarter = None,
            Event::Budget(index, is_exhausted) => {
                let namespace = NAMESPACES[index].to_owned();
                self.simulation.world().exhausted.insert(namespace, is_exhausted);
            }
            Event::Unreadable(is_so) => self.simulation.world().is_unreadable = is_so,
            Event::Fault(fault) => self.simulation.world().fault = Some(fault),
        }
        self.simulation.world().check(&self.policy);
    }

    async fn step(&mut self) {
        if let Some(restarter) = &mut self.restarter {
            restarter.step(&|| true).await;
            return;
        }
        let mut restarter = Restarter::of(Box::new(self.simulation.clone()), self.policy.clone());
        if restarter.recover().await.is_ok() {
            self.restarter = Some(restarter);
            self.audit();
        }
    }

    fn audit(&mut self) {
        let world = self.simulation.world();
        let of =
            |known: &Simulated| Finding { workload: known.workload.clone(), ..Finding::default() };
        let findings = world.workloads.iter().map(of).collect();
        drop(world);
        if let Some(restarter) = &mut self.restarter {
            restarter.set_findings(findings);
        }
    }

    /// A healthy cluster: all rollouts end, and each workload has its restart.
    async fn heals(&mut self) {
        let before = self.simulation.world().heal();
        for round in 0..ROUNDS {
            self.happens(Event::Seconds(PAUSE.as_secs())).await;
            for index in 0..NAMESPACES.len() * WORKLOADS {
                self.happens(Event::Finish(index)).await;
            }
            if round % 4 == 0 {
                self.happens(Event::Audit).await;
            }
            self.happens(Event::Step).await;
        }
        let world = self.simulation.world();
        for (Simulated { workload, restarts, .. }, before) in world.workloads.iter().zip(before) {
            assert!(restarts.len() > before, "{workload} was not restarted");
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let fault = prop_oneof![Just(Fault::Lost), Just(Fault::Changed), Just(Fault::Refused)];
    prop_oneof![
        6 => Just(Event::Step),
        3 => (1_i64..1_200).prop_map(Event::Seconds),
        4 => (0..NAMESPACES.len() * WORKLOADS).prop_map(Event::Finish),
        2 => Just(Event::Audit),
        1 => Just(Event::NewLeader),
        1 => (0..NAMESPACES.len(), any::<bool>()).prop_map(|(at, is_so)| Event::Budget(at, is_so)),
        1 => any::<bool>().prop_map(Event::Unreadable),
        2 => fault.prop_map(Event::Fault),
    ]
}

proptest! {
    #[test]
    fn restarts_stay_few_whatever_happens_and_all_are_done(
        events in proptest::collection::vec(event(), 0..EVENTS),
    ) {
        let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let policy = Policy { mode: Mode::On, max_restarting: MAX_RESTARTING, ..Policy::default() };
            let mut run = Run { simulation: Simulation::new(), policy, restarter: None };
            for event in events {
                run.happens(event).await;
            }
            run.heals().await;
        });
    }
}
