//! A model of replicas, API servers and other writers, with every interleaving of their steps that a
//! random walk finds.
//!
//! The invariant: an API server that has seen the last `caBundle` for [`DELAY`] or less verifies the
//! certificate of every replica that serves one, except after others overwrote the `caBundle`, until a
//! leader has repaired it. If others also took the Secret away at that time, and the leader has started
//! since, no one knows the CA that was lost: then the exception lasts until the watches have settled.

use std::time::{Duration, Instant};

use proptest::{prelude::*, test_runner::Config};

use super::{
    authority::{Certificate, Leaf, Lifetimes, service_names},
    plan::{Change, Entry, Observed, Step, next},
    serving::{Choice, PROPAGATION, Trusted, choose},
    state::{InvalidSecret, State, verify},
};

/// How late an API server may see a change; less than [`PROPAGATION`].
const DELAY: i64 = 4;
const REPLICAS: usize = 3;
const LIFETIMES: Lifetimes = Lifetimes { ca: Duration::from_mins(4), leaf: Duration::from_mins(2) };
/// The clocks of replicas differ by as many seconds.
const SKEW: [i64; REPLICAS] = [0, -15, 15];
const BEGIN: i64 = 1_800_000_000;

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Time passes.
    Seconds(i64),
    /// A replica sees the Secret and the webhooks as they are.
    Watch(usize),
    /// A leader reads, and remembers it; several may believe that they lead.
    Read(usize),
    /// It writes what follows from what it read, if nothing changed meanwhile.
    Write(usize),
    /// A replica is killed, and starts again without memory.
    Restart(usize),
    /// Someone deletes the Secret.
    LoseSecret,
    /// Someone writes another Secret.
    ForeignSecret,
    /// Someone restores the Secret from a backup.
    OldSecret,
    /// Someone overwrites the `caBundle`.
    Overwrite,
}

#[derive(Debug, Clone)]
struct Versioned<T> {
    version: u64,
    value: T,
}

#[derive(Debug, Default)]
struct Replica {
    served: Option<Leaf>,
    memory: Option<State>,
    trusted: Trusted,
    /// Versions of webhooks and Secret that a leader read, and the step that follows.
    read: Option<(u64, u64, Option<Step>)>,
    seen: Option<(u64, Instant)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Secret {
    Absent,
    Foreign,
    Good(Box<State>),
}

struct World {
    now: i64,
    origin: Instant,
    names: Vec<String>,
    secret: Versioned<Secret>,
    backup: Option<State>,
    webhook: Versioned<Vec<u8>>,
    /// Earlier bundles that an API server may still have, and until when.
    late: Vec<(Vec<u8>, i64)>,
    /// Others overwrote the `caBundle`, and no leader has written it since.
    is_overwritten: bool,
    /// In this round others took the Secret away or replaced it, and overwrote the `caBundle`.
    lost: [bool; 2],
    /// Both, until the end of the round.
    is_lost: bool,
    replicas: Vec<Replica>,
}

impl World {
    fn new() -> Self {
        Self {
            now: BEGIN,
            origin: Instant::now(),
            names: service_names("injectd", "x"),
            secret: Versioned { version: 1, value: Secret::Absent },
            backup: None,
            webhook: Versioned { version: 1, value: Vec::new() },
            late: Vec::new(),
            is_overwritten: false,
            lost: [false; 2],
            is_lost: false,
            replicas: (0..REPLICAS).map(|_| Replica::default()).collect(),
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let ca_bundle = self.webhook.value.clone();
        vec![Entry { configuration: "injectd".to_owned(), index: 0, ca_bundle }]
    }

    /// The clock of the process, which has no skew.
    fn instant(&self) -> Instant {
        self.origin + Duration::from_secs(u64::try_from(self.now - BEGIN).unwrap_or_default())
    }

    fn clock(&self, replica: usize) -> i64 {
        self.now + SKEW[replica]
    }

    fn state(&self) -> Option<&State> {
        match &self.secret.value {
            Secret::Good(state) => Some(state),
            _ => None,
        }
    }

    fn run(&mut self, act: Act) {
        match act {
            Act::Seconds(seconds) => self.now += seconds,
            Act::Watch(replica) => self.watch(replica),
            Act::Read(replica) => self.read(replica),
            Act::Write(replica) => self.write(replica),
            Act::Restart(replica) => self.replicas[replica] = Replica::default(),
            Act::LoseSecret => {
                self.lost[0] = true;
                self.set_secret(Secret::Absent);
            }
            Act::ForeignSecret => {
                self.lost[0] = true;
                self.set_secret(Secret::Foreign);
            }
            Act::OldSecret => {
                self.lost[0] = true;
                if let Some(state) = self.backup.clone() {
                    self.set_secret(Secret::Good(Box::new(state)));
                }
            }
            Act::Overwrite => {
                self.set_bundle(Vec::new());
                self.is_overwritten = true;
                self.lost[1] = true;
            }
        }
        self.late.retain(|(_, until)| *until >= self.now);
    }

    fn set_secret(&mut self, value: Secret) {
        if self.backup.is_none() {
            self.backup = self.state().cloned();
        }
        self.secret = Versioned { version: self.secret.version + 1, value };
    }

    fn set_bundle(&mut self, bundle: Vec<u8>) {
        let before = std::mem::replace(&mut self.webhook.value, bundle);
        self.late.push((before, self.now + DELAY));
        self.webhook.version += 1;
    }

    fn watch(&mut self, replica: usize) {
        let (entries, now) = (self.entries(), self.instant());
        let state = self.state().cloned();
        let (clock, version) = (self.clock(replica), self.secret.version);
        let replica = &mut self.replicas[replica];
        replica.trusted.update(&entries, now);
        let Some(state) = state else { return };
        let seen = replica.seen.filter(|(seen, _)| *seen == version).map_or(now, |(_, at)| at);
        replica.seen = Some((version, seen));
        let earlier = replica.memory.take();
        replica.memory = Some(state.clone().remembering(earlier, clock));
        if choose(replica.served.as_ref(), &state, seen, &replica.trusted, (clock, now))
            == Choice::Now
        {
            replica.served = Some(state.leaf);
        }
    }

    fn read(&mut self, replica: usize) {
        let entries = self.entries();
        let invalid = InvalidSecret::Ca;
        let secret = match &self.secret.value {
            Secret::Absent => None,
            Secret::Foreign => Some(Err(&invalid)),
            Secret::Good(state) => Some(Ok(&**state)),
        };
        let memory = self.replicas[replica].memory.as_ref();
        let observed = Observed { secret, entries: &entries, memory, can_publish: true };
        let step = next(&observed, &self.names, self.clock(replica), LIFETIMES);
        let step = step.expect("keys can be made");
        let read = (self.webhook.version, self.secret.version, step);
        self.replicas[replica].read = Some(read);
    }

    fn write(&mut self, replica: usize) {
        let Some((webhook, secret, step)) = self.replicas[replica].read.take() else { return };
        match step {
            Some(Step::Secret(state, _)) if secret == self.secret.version => {
                self.replicas[replica].memory = Some((*state).clone());
                self.set_secret(Secret::Good(state));
            }
            Some(Step::Bundles { bundles, .. }) if webhook == self.webhook.version => {
                let bundle = bundles.into_iter().next().map(|(_, bundle)| bundle);
                self.set_bundle(bundle.unwrap_or_default().into_bytes());
                // Bundles that only had been overwritten are not to be verified by.
                if self.is_overwritten {
                    self.late.clear();
                }
                self.is_overwritten = false;
            }
            _ => {}
        }
    }

    /// Checks every replica that serves a certificate with every API server.
    fn check(&self) -> Result<(), TestCaseError> {
        if self.is_overwritten || self.lost == [true; 2] {
            return Ok(());
        }
        let late = self.late.iter().map(|(bundle, _)| bundle);
        for (which, bundle) in [&self.webhook.value].into_iter().chain(late).enumerate() {
            let cas = Certificate::of_pem(bundle);
            let cas: Vec<_> = cas.iter().collect();
            for (index, replica) in self.replicas.iter().enumerate() {
                let Some(leaf) = &replica.served else { continue };
                // A replica whose clock is behind takes a backup for valid, until it is renewed.
                let is_valid =
                    self.lost[0] || self.is_lost || !leaf.certificate.has_ended(self.now);
                prop_assert!(is_valid, "an expired certificate");
                let verified = verify(&cas, leaf, &self.names[0]);
                prop_assert!(
                    verified.is_ok(),
                    "replica {index}, caBundle {which}: {verified:?}, {} CAs, {} s",
                    cas.len(),
                    self.now - BEGIN
                );
            }
        }
        Ok(())
    }

    /// Everyone sees everything, and a leader acts until there is nothing to do.
    fn settle(&mut self) -> usize {
        for steps in 0..20 {
            (0..REPLICAS).for_each(|replica| self.watch(replica));
            self.read(0);
            if matches!(self.replicas[0].read, Some((_, _, None))) {
                return steps;
            }
            self.write(0);
        }
        20
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let replica = || 0..REPLICAS;
    let act = prop_oneof![
        4 => replica().prop_map(Act::Read),
        4 => replica().prop_map(Act::Write),
        4 => replica().prop_map(Act::Watch),
        2 => Just(Act::Seconds(1)),
        1 => replica().prop_map(Act::Restart),
        1 => Just(Act::LoseSecret),
        1 => Just(Act::ForeignSecret),
        1 => Just(Act::OldSecret),
        1 => Just(Act::Overwrite),
    ];
    proptest::collection::vec(act, 1..60)
}

/// Runs acts in rounds. Between them time passes, and each round ends with everyone up to date, as
/// watches do within seconds.
fn walk(rounds: &[Vec<Act>]) -> Result<(), TestCaseError> {
    let mut world = World::new();
    world.settle();
    // The first certificate, which no API server could know before.
    world.late.clear();
    for acts in rounds {
        for act in acts {
            world.run(*act);
            world.check()?;
        }
        for _ in 0..4 {
            prop_assert!(world.settle() < 20, "the leader goes on writing");
            if world.lost == [true; 2] {
                world.late.clear();
                world.is_lost = true;
            }
            world.lost = [false; 2];
            world.check()?;
            world.run(Act::Seconds(i64::try_from(PROPAGATION.as_secs()).unwrap_or_default()));
            (0..REPLICAS).for_each(|replica| world.watch(replica));
            world.check()?;
        }
        world.is_lost = false;
        let ends = world.state().map(|state| state.leaf.certificate.ends());
        for replica in &world.replicas {
            let served = replica.served.as_ref().map(|leaf| leaf.certificate.ends());
            // A replica that started with a clock ahead takes the certificate for overdue, and waits.
            let is_new = served.is_none() || served >= ends;
            prop_assert!(is_new, "a replica serves an older certificate");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 64, ..Config::default() })]

    #[test]
    fn every_review_is_verified(rounds in proptest::collection::vec(acts(), 1..8)) {
        walk(&rounds)?;
    }
}

#[test]
fn certificates_are_renewed_and_previous_cas_are_removed_when_they_end() {
    let mut world = World::new();
    world.settle();
    world.late.clear();
    let mut changes = Vec::new();
    for _ in 0..600 {
        world.run(Act::Seconds(1));
        world.read(0);
        if let Some((_, _, Some(Step::Secret(_, found)))) = &world.replicas[0].read {
            changes.extend(found.clone());
        }
        world.write(0);
        (0..REPLICAS).for_each(|replica| world.watch(replica));
        world.check().expect("the invariant");
    }
    let count = |change| changes.iter().filter(|it| **it == change).count();
    // A CA lives 240 s and is replaced when 120 s remain, the lifetime of a certificate.
    assert_eq!(count(Change::NewCa), 5);
    assert_eq!(count(Change::NewLeaf), 10);
    assert_eq!(count(Change::RemovedCa), 4);
    assert_eq!(world.state().expect("a state").previous.len(), 1);
}
