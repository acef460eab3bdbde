//! A model of replicas, API servers and other writers, with every interleaving of their steps that a
//! random walk finds.
//!
//! The invariants, checked after each step:
//! 1. A CA of ours leaves the Secret, or a `caBundle` that a leader writes, only when it has ended.
//! 2. A CA begins to sign when each `caBundle` that has its predecessor has it, too, or when that
//!    ends.
//! 3. An API server that has seen the last `caBundle` for [`DELAY`] or less verifies the certificate of
//!    every replica that serves one, except where others overwrote a `caBundle`, until a leader has
//!    repaired it.
//!
//! If others took the Secret away and overwrote a `caBundle`, and then a leader acts that has seen
//! neither before, it cannot know the CA that was lost. Only then invariant 3 waits until the watches
//! have settled.

use std::time::{Duration, Instant};

use proptest::{prelude::*, test_runner::Config};

use super::{
    authority::{Certificate, Lifetimes, service_names},
    plan::{Change, Entry, Observed, Published, Step, next},
    serving::{Choice, PROPAGATION, Served, Trusted, choose},
    state::{InvalidSecret, State, verify},
};

/// How late an API server may see a change; less than [`PROPAGATION`].
const DELAY: i64 = 4;
const REPLICAS: usize = 3;
/// Configurations with an entry each.
const CONFIGURATIONS: [&str; 2] = ["a", "b"];
const LIFETIMES: Lifetimes = Lifetimes { ca: Duration::from_mins(4), leaf: Duration::from_mins(2) };
/// The clocks of replicas differ by as many seconds.
const SKEW: [i64; REPLICAS] = [0, -15, 15];
const MAX_SKEW: i64 = 15;
const BEGIN: i64 = 1_800_000_000;
/// A round lasts no longer: a certificate without a leader would end.
const MAX_SECONDS: i64 = 20;
/// What `plan` takes for the last moment of a CA.
const LAST_SECONDS: i64 = 10;

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Time passes.
    Seconds(i64),
    /// A replica sees the Secret and the webhooks as they are.
    Watch(usize),
    /// A leader sees the webhooks as they are.
    ReadWebhooks(usize),
    /// A leader reads the Secret and plans; several may believe that they lead.
    ReadSecret(usize),
    /// It writes what it planned, if nothing changed meanwhile.
    Write(usize),
    /// A replica is killed, and starts again without memory.
    Restart(usize),
    /// Someone deletes the Secret.
    LoseSecret,
    /// Someone writes another Secret.
    ForeignSecret,
    /// Someone restores the Secret from a backup.
    OldSecret,
    /// Someone overwrites a `caBundle`.
    Overwrite(usize),
    /// Leaders may not write a configuration, or may again.
    Forbid(usize, bool),
}

#[derive(Debug, Clone, Default)]
struct Webhook {
    version: u64,
    bundle: Vec<u8>,
    /// Earlier bundles that an API server may still have, until when, and whether others wrote them.
    late: Vec<(Vec<u8>, i64, bool)>,
    /// Others overwrote it, and no leader has written it since.
    is_overwritten: bool,
    is_forbidden: bool,
}

#[derive(Debug, Clone)]
struct Read {
    versions: [u64; 2],
    entries: [Entry; 2],
}

#[derive(Debug, Default)]
struct Replica {
    served: Option<Served>,
    memory: Option<State>,
    trusted: Trusted,
    webhooks: Option<Read>,
    /// The version of the Secret that was read, what a leader read before it, and what follows.
    planned: Option<(u64, Read, Option<Step>)>,
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
    secret: (u64, Secret),
    backup: Option<State>,
    webhooks: [Webhook; 2],
    /// In this round others took the Secret away, or replaced it by a foreign or an older one.
    is_secret_lost: bool,
    /// In this round others overwrote a `caBundle`.
    was_overwritten: bool,
    /// A leader could not know a CA that was lost; until the watches have settled.
    is_ca_lost: bool,
    /// How long the round has lasted.
    seconds: i64,
    replicas: Vec<Replica>,
}

type Checked<T = ()> = Result<T, TestCaseError>;

impl World {
    fn new() -> Self {
        Self {
            now: BEGIN,
            origin: Instant::now(),
            names: service_names("injectd", "x"),
            secret: (1, Secret::Absent),
            backup: None,
            webhooks: Default::default(),
            is_secret_lost: false,
            was_overwritten: false,
            is_ca_lost: false,
            seconds: 0,
            replicas: (0..REPLICAS).map(|_| Replica::default()).collect(),
        }
    }

    /// A world in which the first certificate is served everywhere.
    fn begun() -> Checked<Self> {
        let mut world = Self::new();
        // The first certificate, which no API server could know before.
        world.is_ca_lost = true;
        world.settle()?;
        world.pass(PROPAGATION.as_secs().cast_signed());
        (0..REPLICAS).for_each(|replica| world.watch(replica));
        world.is_ca_lost = false;
        world.check()?;
        prop_assert!(world.replicas.iter().all(|it| it.served.is_some()), "not served");
        Ok(world)
    }

    fn read_webhooks(&self) -> Read {
        let entries = [0, 1].map(|index| Entry {
            webhook: "w".to_owned(),
            index: 0,
            cas: Certificate::of_pem(&self.webhooks[index].bundle),
        });
        Read { versions: [0, 1].map(|index| self.webhooks[index].version), entries }
    }

    fn published<'r>(&self, read: &'r Read) -> Vec<Published<'r>> {
        let all = CONFIGURATIONS.iter().zip(&read.entries).zip(&self.webhooks);
        let of = all.map(|((configuration, entry), webhook)| Published {
            configuration,
            entries: std::slice::from_ref(entry),
            is_writable: !webhook.is_forbidden,
        });
        of.collect()
    }

    /// The clock of the process, which has no skew.
    fn instant(&self) -> Instant {
        self.origin + Duration::from_secs(u64::try_from(self.now - BEGIN).unwrap_or_default())
    }

    fn clock(&self, replica: usize) -> i64 {
        self.now + SKEW[replica]
    }

    fn state(&self) -> Option<&State> {
        match &self.secret.1 {
            Secret::Good(state) => Some(state),
            _ => None,
        }
    }

    fn run(&mut self, act: Act) -> Checked {
        match act {
            Act::Seconds(seconds) => {
                let seconds = seconds.min(MAX_SECONDS - self.seconds);
                self.seconds += seconds;
                self.pass(seconds);
            }
            Act::Watch(replica) => self.watch(replica),
            Act::ReadWebhooks(replica) => {
                self.replicas[replica].webhooks = Some(self.read_webhooks());
            }
            Act::ReadSecret(replica) => self.read_secret(replica),
            Act::Write(replica) => return self.write(replica),
            Act::Restart(replica) => self.replicas[replica] = Replica::default(),
            Act::LoseSecret => self.lose(Secret::Absent),
            Act::ForeignSecret => self.lose(Secret::Foreign),
            Act::OldSecret => {
                if let Some(state) = self.backup.clone() {
                    self.lose(Secret::Good(Box::new(state)));
                }
            }
            Act::Overwrite(index) => {
                self.set_bundle(index, Vec::new(), true);
                self.webhooks[index].is_overwritten = true;
                self.was_overwritten = true;
            }
            Act::Forbid(index, is_forbidden) => self.webhooks[index].is_forbidden = is_forbidden,
        }
        Ok(())
    }

    fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        for webhook in &mut self.webhooks {
            webhook.late.retain(|(_, until, _)| *until >= self.now);
        }
    }

    fn lose(&mut self, secret: Secret) {
        self.is_secret_lost = true;
        self.set_secret(secret);
    }

    fn set_secret(&mut self, secret: Secret) {
        if self.backup.is_none() {
            self.backup = self.state().cloned();
        }
        self.secret = (self.secret.0 + 1, secret);
    }

    fn set_bundle(&mut self, index: usize, bundle: Vec<u8>, is_foreign: bool) {
        let webhook = &mut self.webhooks[index];
        let before = std::mem::replace(&mut webhook.bundle, bundle);
        webhook.late.push((before, self.now + DELAY, webhook.is_overwritten));
        webhook.version += 1;
        if !is_foreign {
            // An API server that has seen only what others wrote is part of their outage.
            webhook.late.retain(|(_, _, is_foreign)| !is_foreign);
            webhook.is_overwritten = false;
        }
    }

    fn watch(&mut self, replica: usize) {
        let read = self.read_webhooks();
        let published = self.published(&read);
        let (now, clock, version) = (self.instant(), self.clock(replica), self.secret.0);
        let state = self.state().cloned();
        let replica = &mut self.replicas[replica];
        replica.trusted.update(&published, now);
        let Some(state) = state else { return };
        let seen = replica.seen.filter(|(seen, _)| *seen == version).map_or(now, |(_, at)| at);
        replica.seen = Some((version, seen));
        let earlier = replica.memory.take();
        replica.memory = Some(state.clone().remembering(earlier, clock));
        let choice = choose(replica.served.as_ref(), &state, seen, &replica.trusted, (clock, now));
        if choice == Choice::Now {
            replica.served = Some(Served::of(&state));
        }
    }

    /// A leader reads the Secret after what it saw of the webhooks.
    fn read_secret(&mut self, replica: usize) {
        let Some(read) = self.replicas[replica].webhooks.take() else { return };
        let invalid = InvalidSecret::Ca;
        let secret = match &self.secret.1 {
            Secret::Absent => None,
            Secret::Foreign => Some(Err(&invalid)),
            Secret::Good(state) => Some(Ok(&**state)),
        };
        let memory = self.replicas[replica].memory.as_ref();
        let published = self.published(&read);
        let observed = Observed { secret, published: &published, is_all_read: true, memory };
        let step = next(&observed, &self.names, self.clock(replica), LIFETIMES);
        let step = step.expect("keys can be made");
        self.replicas[replica].planned = Some((self.secret.0, read, step));
    }

    fn write(&mut self, replica: usize) -> Checked {
        let Some((version, read, step)) = self.replicas[replica].planned.take() else {
            return Ok(());
        };
        self.is_ca_lost |=
            self.is_secret_lost && self.was_overwritten && !self.knows(replica, &read);
        match step {
            Some(Step::Secret(state, _)) if version == self.secret.0 => {
                self.check_secret(replica, &state, &read)?;
                self.replicas[replica].memory = Some((*state).clone());
                self.set_secret(Secret::Good(state));
            }
            Some(Step::Bundles(bundles)) => {
                for (name, _) in &bundles.wrong {
                    let index = usize::from(name == CONFIGURATIONS[1]);
                    let webhook = &self.webhooks[index];
                    if webhook.version == read.versions[index] && !webhook.is_forbidden {
                        let before = Certificate::of_pem(&webhook.bundle);
                        let after = Certificate::of_pem(bundles.pem.as_bytes());
                        self.check_kept(replica, &before, &after)?;
                        self.set_bundle(index, bundles.pem.clone().into_bytes(), false);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a leader knows the CA of each certificate that is served.
    fn knows(&self, leader: usize, read: &Read) -> bool {
        let states = self.replicas[leader].memory.as_ref().into_iter().chain(self.state());
        let known: Vec<_> = states.flat_map(State::cas).collect();
        let in_bundles = |ca| read.entries.iter().any(|entry| entry.cas.contains(ca));
        let mut served = self.replicas.iter().filter_map(|it| Some(&it.served.as_ref()?.ca));
        served.all(|ca| ca.has_ended(self.now) || known.contains(&ca) || in_bundles(ca))
    }

    /// Invariant 1, by the clock of the leader.
    fn check_kept(&self, leader: usize, before: &[Certificate], after: &[Certificate]) -> Checked {
        let clock = self.clock(leader);
        let lost = before.iter().find(|ca| !ca.has_ended(clock) && !after.contains(ca));
        prop_assert!(lost.is_none(), "a CA that has not ended is removed");
        Ok(())
    }

    /// Invariants 1 and 2 of a write of the Secret.
    fn check_secret(&self, leader: usize, new: &State, read: &Read) -> Checked {
        let Some(old) = self.state() else { return Ok(()) };
        let [before, after] = [old, new].map(|it| it.cas().cloned().collect::<Vec<_>>());
        self.check_kept(leader, &before, &after)?;
        let is_restored =
            self.replicas[leader].memory.as_ref().is_some_and(|it| old.is_older_than(it));
        let is_last = !old.ca.certificate.is_valid(self.clock(leader) + LAST_SECONDS);
        if old.ca == new.ca || is_restored || is_last {
            return Ok(());
        }
        let is_behind = |entry: &Entry| {
            entry.cas.contains(&old.ca.certificate) && !entry.cas.contains(&new.ca.certificate)
        };
        prop_assert!(!read.entries.iter().any(is_behind), "a CA signs that is not published");
        Ok(())
    }

    /// Invariant 3: checks every replica that serves a certificate with every API server.
    fn check(&self) -> Checked {
        if self.is_ca_lost {
            return Ok(());
        }
        for (index, replica) in self.replicas.iter().enumerate() {
            let Some(served) = &replica.served else { continue };
            // A replica whose clock is behind takes a backup for valid, until it is renewed.
            let is_valid = self.is_secret_lost || !served.leaf.certificate.has_ended(self.now);
            prop_assert!(is_valid, "replica {index} serves an expired certificate");
            for webhook in &self.webhooks {
                let late = webhook.late.iter().map(|(bundle, ..)| bundle);
                for bundle in [&webhook.bundle].into_iter().chain(late) {
                    let cas = Certificate::of_pem(bundle);
                    // One that may not be written verifies nothing once its CAs have ended.
                    let is_last =
                        |ca: &Certificate| ca.has_ended(self.now + MAX_SKEW + LAST_SECONDS + 2);
                    let is_over = webhook.is_forbidden && cas.iter().all(is_last);
                    let seconds = self.now - BEGIN;
                    prop_assert!(
                        webhook.is_overwritten || is_over || cas.contains(&served.ca),
                        "replica {index} is not verified at {seconds} s by {} CAs",
                        cas.len()
                    );
                }
            }
        }
        Ok(())
    }

    /// Everyone sees everything, and a leader acts until there is nothing to do.
    fn settle(&mut self) -> Checked {
        for _ in 0..20 {
            (0..REPLICAS).for_each(|replica| self.watch(replica));
            self.run(Act::ReadWebhooks(0))?;
            self.run(Act::ReadSecret(0))?;
            if matches!(self.replicas[0].planned, Some((_, _, None))) {
                return Ok(());
            }
            self.run(Act::Write(0))?;
        }
        prop_assert!(false, "the leader goes on writing");
        Ok(())
    }

    /// Ends a round: everyone is up to date, as watches do within seconds.
    fn end_round(&mut self) -> Checked {
        (0..2).try_for_each(|index| self.run(Act::Forbid(index, false)))?;
        // As long as a replica without a certificate waits at most.
        for _ in 0..8 {
            self.settle()?;
            (self.is_secret_lost, self.was_overwritten) = (false, false);
            self.check()?;
            self.pass(PROPAGATION.as_secs().cast_signed());
            (0..REPLICAS).for_each(|replica| self.watch(replica));
            self.check()?;
        }
        (self.is_ca_lost, self.seconds) = (false, 0);
        self.check()?;
        let newest = self.state().map(|state| state.leaf.certificate.sequence());
        let cas = Certificate::of_pem(&self.webhooks[0].bundle);
        let cas: Vec<_> = cas.iter().collect();
        for (index, replica) in self.replicas.iter().enumerate() {
            let served = replica.served.as_ref().map(|it| &it.leaf);
            let sequence = served.map(|leaf| leaf.certificate.sequence());
            // It is later if a leader with a clock ahead signed it and it was lost.
            prop_assert!(sequence >= newest, "replica {index} serves an older certificate");
            let verified = served.map(|leaf| verify(&cas, leaf, &self.names[0]));
            prop_assert!(matches!(verified, Some(Ok(()))), "replica {index}: {verified:?}");
        }
        Ok(())
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let replica = || 0..REPLICAS;
    let act = prop_oneof![
        4 => replica().prop_map(Act::ReadWebhooks),
        4 => replica().prop_map(Act::ReadSecret),
        4 => replica().prop_map(Act::Write),
        4 => replica().prop_map(Act::Watch),
        2 => (1..20_i64).prop_map(Act::Seconds),
        1 => replica().prop_map(Act::Restart),
        1 => Just(Act::LoseSecret),
        1 => Just(Act::ForeignSecret),
        1 => Just(Act::OldSecret),
        1 => (0..2_usize).prop_map(Act::Overwrite),
        1 => (0..2_usize, any::<bool>()).prop_map(|(index, is)| Act::Forbid(index, is)),
    ];
    proptest::collection::vec(act, 1..60)
}

/// Runs acts in rounds, the first one at some age of the CA.
fn walk(age: u8, rounds: &[Vec<Act>]) -> Checked {
    let mut world = World::begun()?;
    for _ in 0..age {
        world.pass(5);
        world.settle()?;
        world.check()?;
    }
    for acts in rounds {
        for act in acts {
            world.run(*act)?;
            world.check()?;
        }
        world.end_round()?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 64, ..Config::default() })]

    #[test]
    fn every_review_is_verified(
        age in 0..48_u8,
        rounds in proptest::collection::vec(acts(), 1..6),
    ) {
        walk(age, &rounds)?;
    }
}

#[test]
fn certificates_are_renewed_and_previous_cas_are_removed_when_they_end() {
    let mut world = World::begun().expect("a world");
    let (mut changes, mut served) = (Vec::new(), Vec::new());
    for _ in 0..610 {
        world.pass(1);
        for _ in 0..2 {
            world.run(Act::ReadWebhooks(0)).expect("read");
            world.run(Act::ReadSecret(0)).expect("read");
            if let Some((_, _, Some(Step::Secret(_, found)))) = &world.replicas[0].planned {
                changes.extend(found.clone());
            }
            world.run(Act::Write(0)).expect("the invariants");
        }
        (0..REPLICAS).for_each(|replica| world.watch(replica));
        world.check().expect("the invariants");
        served.extend(world.replicas[1].served.clone());
        served.dedup();
    }
    let count = |change| changes.iter().filter(|it| **it == change).count();
    // A CA lives 240 s and is replaced when 120 s remain, the lifetime of a certificate.
    assert_eq!((count(Change::NewCa), count(Change::NextCaSigns)), (5, 5));
    assert_eq!(count(Change::NewLeaf), 10);
    assert_eq!(count(Change::RemovedCa), 4);
    assert_eq!(served.len(), 11, "each certificate is served");
    assert_eq!(world.state().expect("a state").previous.len(), 1);
}

#[test]
fn a_configuration_that_may_not_be_written_keeps_the_other_one_working() {
    let mut world = World::begun().expect("a world");
    let first = world.state().expect("a state").ca.clone();
    world.run(Act::Forbid(1, true)).expect("forbidden");
    for second in 0..=240 - MAX_SKEW - LAST_SECONDS {
        world.pass(1);
        (0..REPLICAS).for_each(|replica| world.watch(replica));
        world.settle().expect("the invariants");
        let state = world.state().expect("a state");
        assert_eq!(state.ca, first, "{second} s: the CA signs until its last seconds");
        let ended = world
            .replicas
            .iter()
            .flat_map(|it| &it.served)
            .any(|it| it.leaf.certificate.has_ended(world.now));
        assert!(!ended, "{second} s: certificates are renewed");
    }
    for _ in 0..MAX_SKEW + LAST_SECONDS {
        world.pass(1);
        world.settle().expect("the invariants");
    }
    let state = world.state().expect("a state");
    assert_ne!(state.ca, first);
    let served = |replica: &Replica| replica.served.as_ref().map(|it| it.ca.clone());
    assert_eq!(served(&world.replicas[0]), Some(state.ca.certificate.clone()));
}
