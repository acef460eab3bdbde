//! Attackers: a number of connections, each opened again when it ends, and what they count.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::body::Bytes;
use injectd_harness::expect::Outcome;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use super::{expensive, floods, held, target::Place};

/// After a connection that was refused, and how long a look for frames takes.
// Without it the attackers take the cores that the server needs, and the test measures the machine.
pub(super) const PAUSE: Duration = Duration::from_millis(2);

/// What is counted of each attack, also of one that the server does not let begin.
const ENDED: &str = "connections ended";

/// What the attackers of each connection do until the time is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// As many streams as the server allows, with so many bytes of bodies that do not end.
    EndlessStreams(usize),
    StalledBodies,
    UntakenAnswers,
    Refusals,
    RapidReset,
    Continuations,
    Settings,
    Pings,
    HalfHandshakes,
    /// This review, one after the other.
    Reviews(fn() -> Vec<u8>),
    /// Reviews of which no two are alike, made of their number.
    NewPods(fn(usize) -> Vec<u8>),
    /// This call of gRPC, one after the other.
    Calls(fn() -> Vec<u8>),
}

/// What attackers have done, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Arc<Mutex<BTreeMap<String, usize>>>);

impl Counts {
    pub(super) fn add(&self, what: impl Into<String>, count: usize) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what.into()).or_default() += count;
    }

    /// Whether the attackers have done more than open connections that ended.
    pub(super) fn is_any(&self) -> bool {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().any(|(name, count)| name != ENDED && *count > 0)
    }

    pub(super) fn text(&self) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        counts.join(", ")
    }
}

/// One connection of an attack.
#[derive(Clone)]
pub(super) struct Attacker {
    pub(super) place: Place,
    pub(super) counts: Counts,
    /// What [`Act::Reviews`] and [`Act::Calls`] send.
    body: Bytes,
    /// The number of the next pod.
    next: Arc<AtomicUsize>,
}

impl Act {
    /// Does it over so many connections until the time is over, and again after each end.
    pub(super) async fn run(self, place: Place, connections: usize, until: Instant) -> Counts {
        self.run_as(&self.at(place), connections, until).await
    }

    /// The attacker of a place. Its body may take seconds to make, which are not of the attack.
    pub(super) fn at(self, place: Place) -> Attacker {
        let body = match self {
            Self::Reviews(make) | Self::Calls(make) => make().into(),
            _ => Bytes::new(),
        };
        Attacker { place, counts: Counts::default(), body, next: Arc::default() }
    }

    /// As [`Act::run`], by an attacker of [`Act::at`].
    pub(super) async fn run_as(self, one: &Attacker, connections: usize, until: Instant) -> Counts {
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            let one = one.clone();
            tasks.spawn(async move {
                while let Ok(ended) = timeout_at(until, Box::pin(self.once(&one))).await {
                    one.counts.add(ENDED, 1);
                    if ended.is_err() {
                        sleep(PAUSE).await;
                    }
                }
            });
        }
        tasks.join_all().await;
        one.counts.clone()
    }

    async fn once(self, it: &Attacker) -> Outcome {
        match self {
            Self::EndlessStreams(bytes) => held::endless_streams(it, &vec![b' '; bytes]).await,
            Self::StalledBodies => held::stalled_body(it).await,
            Self::UntakenAnswers => held::untaken_answers(it).await,
            Self::Refusals => held::refusals(it).await,
            Self::RapidReset => floods::rapid_reset(it).await,
            Self::Continuations => floods::continuations(it).await,
            Self::Settings => floods::settings(it).await,
            Self::Pings => floods::pings(it).await,
            Self::HalfHandshakes => floods::half_handshake(it).await,
            Self::Reviews(_) => expensive::reviews(it, || it.body.to_vec()).await,
            Self::Calls(_) => expensive::calls(it, &it.body).await,
            Self::NewPods(make) => {
                let next = || make(it.next.fetch_add(1, Ordering::Relaxed));
                expensive::reviews(it, next).await
            }
        }
    }

    pub(super) fn is_grpc(self) -> bool {
        matches!(self, Self::Calls(_))
    }
}
