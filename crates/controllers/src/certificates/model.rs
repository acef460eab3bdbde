//! A model of replicas, API servers and other writers, with every interleaving of their steps that a
//! random walk finds.
//!
//! The invariants, checked after each step:
//! 1. A CA of the Secret leaves it, or a `caBundle` that a leader writes, only when it has ended or is
//!    revoked.
//! 2. A CA begins to sign when each `caBundle` that has its predecessor has it, too, or when that
//!    ends.
//! 3. An API server that has seen the last `caBundle` for [`DELAY`] or less verifies the certificate of
//!    every replica that serves one, except where others overwrote a `caBundle`, until a leader has
//!    repaired it.
//!
//! And when the watches have settled:
//! 4. A CA with the name of ours that others wrote into a `caBundle` or the Secret is in neither, whether
//!    injectd reads it there or not. Exception: for [`HANDOVER`] after the Secret was lost, one that is
//!    read and has begun stays in a `caBundle`.
//! 5. A revoked CA is in neither. All CAs of a Secret are revoked with the one that signs.
//!
//! If others took the Secret away and overwrote a `caBundle`, and then a leader acts that has seen
//! neither before, it cannot know the CA that was lost. Only then, and after a CA was revoked, invariant 3
//! waits until the watches have settled.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{
    authority::{Ca, Certificate, Lifetimes, service_names},
    plan::{Entry, HANDOVER, Observed, Published, Step, next},
    revoked,
    serving::{Choice, Clock, PROPAGATION, Served, Trusted, choose},
    state::{Data, InvalidSecret, State, Terms, verify},
};

mod checks;
mod others;
mod replicas;
mod walks;

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
    /// Someone adds a CA with the name of ours to a `caBundle`.
    ForgeBundle(usize, Forgery),
    /// Someone adds such a CA to the Secret, with its key as that of the next one.
    ForgeSecret,
    /// An administrator revokes a CA of the Secret.
    Revoke(usize),
    /// Leaders may not write a configuration, or may again.
    Forbid(usize, bool),
}

/// How a CA of others is written into a `caBundle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forgery {
    Plain,
    /// After a beginning without an end: Go reads it, and injectd does not.
    Hidden,
    /// It begins later than clocks differ.
    Later,
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
    /// Until then it publishes CAs that only a `caBundle` has.
    unsettled_until: i64,
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
    terms: Terms,
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
    /// CAs that others made.
    forged: Vec<(Certificate, Forgery)>,
    revoked: Vec<Certificate>,
}

type Checked<T = ()> = Result<T, TestCaseError>;

impl World {
    fn new() -> Self {
        Self {
            now: BEGIN,
            origin: Instant::now(),
            terms: Terms { names: service_names("injectd", "x"), ca_lifetime: LIFETIMES.ca },
            secret: (1, Secret::Absent),
            backup: None,
            webhooks: Default::default(),
            is_secret_lost: false,
            was_overwritten: false,
            is_ca_lost: false,
            seconds: 0,
            replicas: (0..REPLICAS).map(|_| Replica::started(BEGIN)).collect(),
            forged: Vec::new(),
            revoked: Vec::new(),
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
        prop_assert!(world.replicas.iter().all(|replica| replica.served.is_some()), "not served");
        Ok(world)
    }

    fn read_webhooks(&self) -> Read {
        let entries = [0, 1].map(|index| Entry::new("w", 0, &self.webhooks[index].bundle));
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
            Act::Restart(replica) => self.replicas[replica] = Replica::started(self.now),
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
            Act::ForgeBundle(index, forgery) => self.forge_bundle(index, forgery),
            Act::ForgeSecret => return self.forge_secret(),
            Act::Revoke(index) => self.revoke(index),
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
            let served = replica.served.as_ref().map(|served| &served.leaf);
            let sequence = served.map(|leaf| leaf.certificate.sequence());
            // It is later if a leader with a clock ahead signed it and it was lost.
            prop_assert!(sequence >= newest, "replica {index} serves an older certificate");
            let verified = served.map(|leaf| verify(&cas, leaf, &self.terms.names[0]));
            prop_assert!(matches!(verified, Some(Ok(()))), "replica {index}: {verified:?}");
        }
        self.settle()?;
        self.check_strangers()
    }
}

impl Replica {
    fn started(now: i64) -> Self {
        Self { unsettled_until: now + HANDOVER, ..Self::default() }
    }
}
