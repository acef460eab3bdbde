//! A model of replicas that keep templates, of an API server, and of a user who changes templates, with every
//! interleaving of their steps that a random walk finds. Any replica may take itself for the leader, stop
//! between two writes, and do the rest later.
//!
//! Checked after each step:
//! 1. The newest revision of a template that is there is not removed, if its content is that of its hash.
//! 2. A replica that serves a template does not stop while the template is there. What it serves is one
//!    revision, the same in all replicas that serve its hash.
//! 3. The status of a template is about one generation of it, and never again about an older one.
//!
//! And when the watches have settled, and one leader has done what is due:
//! 4. All replicas serve the same. What a replica served of a template that is there is not lost: a revision
//!    of it is served.
//! 5. A `ControllerRevision` keeps each revision that is served, with its content.
//! 6. The status says what is so: `Accepted` by `spec`, `Programmed` if all replicas serve it.
//! 7. No leader writes anything more.
//! 8. No more revisions are kept than the limit allows, and none of templates that have been gone for long,
//!    unless their kind is gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use injectd_profiles::template_plane::HASH_LABEL;
use injectd_templates::object::Identity;
use jiff::Timestamp;
use proptest::prelude::*;
use tokio::time::Instant;

use super::{
    findings::Findings,
    plan,
    replicas::{LEASE_DURATION, Replicas, digest_of, served},
    revisions::{orphans, unkept},
    status::Facts,
    write::Write,
};

mod leaders;
pub(super) mod plane;
pub(super) mod store;
mod walks;

use plane::Plane;
use store::{LIMIT, Store, identity, is_whole, uid_of};

type Checked = Result<(), TestCaseError>;

const REPLICAS: usize = 3;
/// When the model begins.
const BEGIN: i64 = 1_800_000_000;
/// Rounds of all replicas after which nothing is left to do.
const ROUNDS: usize = 30;

/// A step of somebody.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A user writes a template: a spec in order, or one that is not.
    Edit(usize, Option<u8>),
    /// A user removes a template.
    Delete(usize),
    /// The definition of a kind is removed with all its templates, or is there again.
    Kind(usize, bool),
    /// Someone removes or overwrites a revision.
    Lose(usize),
    /// A replica sees templates, or revisions.
    SeeTemplates(usize),
    SeeRevisions(usize),
    /// A replica writes its Lease.
    Report(usize),
    /// A replica that takes itself for the leader plans, and does the next write of its plan.
    Plan(usize),
    Write(usize),
    /// A replica that does not lead keeps what it serves.
    Rescue(usize),
    /// A replica is replaced.
    Restart(usize),
    /// A long time passes: all replicas see what is there.
    Pass,
}

/// A replica, and what it remembers if it takes itself for the leader.
#[derive(Default)]
struct Replica {
    plane: Plane,
    leases: Replicas,
    gone_since: BTreeMap<String, Duration>,
    planned: Vec<Write>,
    /// The uids of the templates that it has served.
    has_served: BTreeSet<String>,
}

struct World {
    begin: Instant,
    passed: Duration,
    store: Store,
    replicas: [Replica; REPLICAS],
    /// The content of each revision that a replica has served, by its hash.
    contents: BTreeMap<String, String>,
    /// The generation that the status of each template is about, by its uid.
    generations: BTreeMap<String, i64>,
}

/// Time after which revisions of a template that is gone are removed.
const GONE: Duration = Duration::from_mins(10);

impl World {
    fn begun() -> Self {
        Self {
            begin: Instant::now(),
            passed: Duration::ZERO,
            store: Store::default(),
            replicas: Default::default(),
            contents: BTreeMap::new(),
            generations: BTreeMap::new(),
        }
    }

    fn run(&mut self, act: Act) -> Checked {
        match act {
            Act::Edit(index, spec) => self.store.edit(&identity(index), spec),
            Act::Delete(index) => self.store.delete(&identity(index)),
            Act::Kind(index, is_there) => self.store.set_kind(&identity(index), is_there),
            Act::Lose(index) => self.store.lose(index),
            Act::SeeTemplates(replica) => {
                let now = self.now();
                self.replicas[replica].plane.see_templates(&self.store, now.into_std());
            }
            Act::SeeRevisions(replica) => {
                let now = self.now();
                self.replicas[replica].plane.see_revisions(&self.store, now.into_std());
            }
            Act::Report(replica) => self.report(replica),
            Act::Plan(replica) => self.plan(replica),
            Act::Write(replica) => self.write(replica)?,
            Act::Rescue(replica) => self.rescue(replica),
            Act::Restart(replica) => self.replicas[replica] = Replica::default(),
            Act::Pass => {
                (0..REPLICAS).for_each(|replica| self.watch(replica));
                self.passed += GONE;
            }
        }
        self.check_order()?;
        self.check_served()
    }

    fn now(&self) -> Instant {
        self.begin + self.passed
    }

    fn watch(&mut self, replica: usize) {
        let now = self.now().into_std();
        let replica = &mut self.replicas[replica];
        replica.plane.see_templates(&self.store, now);
        replica.plane.see_revisions(&self.store, now);
        let known = replica.plane.known();
        if known.is_listed {
            note_gone(&mut replica.gone_since, orphans(known), self.passed);
        }
    }

    fn report(&mut self, replica: usize) {
        let known = self.replicas[replica].plane.known();
        if known.is_listed {
            let digest = digest_of(&served(known));
            self.store.report(replica, &digest);
        }
    }

    /// A leader reads the Leases, and plans.
    fn plan(&mut self, replica: usize) {
        let (now, passed) = (self.now(), self.passed);
        let time = BEGIN + i64::try_from(passed.as_secs()).unwrap_or_default();
        let Replica { plane, leases, gone_since, planned, .. } = &mut self.replicas[replica];
        let known = plane.known();
        if !known.is_listed {
            return;
        }
        leases.note(known);
        leases.see(&self.store.leases(), now);
        note_gone(gone_since, orphans(known), passed);
        let is_long = |since: &Duration| passed >= *since + GONE;
        let long_gone = gone_since.iter().filter(|(_, since)| is_long(since));
        let gone = long_gone.map(|(uid, _)| uid.clone());
        let gone = gone.filter(|uid| self.store.has_kind_of(known, uid)).collect();
        let replicas = leases.live(now);
        let facts = Facts {
            replicas: &replicas,
            findings: &Findings::of(known, "injectd"),
            counts: None,
            now: Timestamp::from_second(time).expect("a time"),
        };
        *planned = plan::writes(known, Some(facts), &gone);
        planned.extend(leases.removals(now));
        // The first write is the last one of the list.
        planned.reverse();
    }

    fn write(&mut self, replica: usize) -> Checked {
        let Some(write) = self.replicas[replica].planned.pop() else { return Ok(()) };
        if let Write::DeleteRevision(of) = &write
            && let Some(revision) = self.store.as_read(of)
            && let Some(uid) = uid_of(revision)
            && self.store.is_there(uid)
            && is_whole(revision)
        {
            let newest = self.store.newest(uid).expect("a revision");
            prop_assert!(newest > revision.revision, "the newest revision of {uid} is removed");
        }
        drop(self.store.write(&write));
        Ok(())
    }

    fn rescue(&mut self, replica: usize) {
        let known = self.replicas[replica].plane.known();
        if known.is_listed {
            for write in unkept(known) {
                drop(self.store.write(&write));
            }
        }
    }

    /// Everybody sees and reports, and one leader does what is due, until nothing is left. Returns whether it
    /// came to an end.
    fn settle(&mut self, leader: usize) -> Result<bool, TestCaseError> {
        // A Lease that a replica wrote before it was replaced counts for some time.
        self.passed += LEASE_DURATION;
        for _ in 0..ROUNDS {
            for replica in 0..REPLICAS {
                self.watch(replica);
                self.report(replica);
                self.rescue(replica);
            }
            self.plan(leader);
            let before = self.store.version();
            while !self.replicas[leader].planned.is_empty() {
                self.write(leader)?;
            }
            if self.store.version() == before && self.is_in_step() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether all replicas have seen all there is.
    fn is_in_step(&mut self) -> bool {
        let digests: Vec<_> = (0..REPLICAS)
            .map(|replica| {
                self.watch(replica);
                digest_of(&served(self.replicas[replica].plane.known()))
            })
            .collect();
        digests.iter().all(|digest| self.store.has_reported(digest))
            && digests.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Settles, and checks all invariants.
    fn end_round(&mut self, leader: usize) -> Checked {
        let before = self.served();
        prop_assert!(self.settle(leader)?, "the writes of leader {leader} do not end");
        self.check_served()?;
        for (replica, before) in before.iter().enumerate() {
            for identity in before.iter().filter(|(_, uid)| self.store.is_there(uid)) {
                let known = self.replicas[replica].plane.known();
                let served =
                    known.templates.get(&identity.0).and_then(|found| found.served.as_ref());
                prop_assert!(served.is_some(), "what was served of {} is lost", identity.0);
            }
        }
        self.check_kept()?;
        self.check_status()?;
        for replica in 0..REPLICAS {
            self.plan(replica);
            let mut planned = std::mem::take(&mut self.replicas[replica].planned);
            // Replicas serve orphans for some time; those that began later do not know them.
            planned.retain(|write| !self.is_of_gone(write));
            prop_assert!(planned.is_empty(), "replica {replica} would write {planned:?}");
        }
        Ok(())
    }

    /// Whether a revision is removed whose template is gone.
    fn is_of_gone(&self, write: &Write) -> bool {
        let Write::DeleteRevision(of) = write else { return false };
        let uid = self.store.as_read(of).and_then(uid_of);
        uid.is_some_and(|uid| !self.store.is_there(uid))
    }

    fn check_served(&mut self) -> Checked {
        for replica in &mut self.replicas {
            for (identity, template) in &replica.plane.known().templates {
                let uid = plane::uid(template);
                let Some(served) = &template.served else {
                    let is_lost = replica.has_served.contains(&uid);
                    prop_assert!(!is_lost, "{} is not served any more", identity);
                    continue;
                };
                let content = self.contents.entry(served.hash.clone());
                let content = content.or_insert_with(|| served.revision.to_string());
                prop_assert_eq!(&*content, &*served.revision, "a revision of {}", identity);
                replica.has_served.insert(uid);
            }
        }
        Ok(())
    }

    /// What each replica serves: templates and their uids.
    fn served(&self) -> Vec<Vec<(Identity, String)>> {
        let of = |replica: &Replica| {
            let known = replica.plane.known().templates.iter();
            let served = known.filter(|(_, template)| template.served.is_some());
            let uid =
                |(identity, template): (&Identity, &_)| (identity.clone(), plane::uid(template));
            served.map(uid).collect()
        };
        self.replicas.iter().map(of).collect()
    }

    fn check_kept(&self) -> Checked {
        for replica in &self.replicas {
            for (identity, template) in &replica.plane.known().templates {
                if template.is_orphan {
                    continue;
                }
                let Some(served) = &template.served else { continue };
                let kept = self.store.kept(&plane::uid(template));
                let of_hash = kept.iter().find(|revision| {
                    revision.metadata.labels.as_ref().and_then(|labels| labels.get(HASH_LABEL))
                        == Some(&served.hash)
                });
                let is_kept = of_hash.is_some_and(|revision| is_whole(revision));
                prop_assert!(is_kept, "revision {} of {identity} is not kept", served.hash);
                prop_assert!(kept.len() <= LIMIT + 2, "{} revisions of {identity}", kept.len());
            }
        }
        Ok(())
    }

    fn check_status(&self) -> Checked {
        let known = self.replicas[0].plane.known();
        for (identity, template) in &known.templates {
            if template.is_orphan {
                continue;
            }
            let status = &template.object.data["status"];
            let of = |name: &str| {
                let conditions = status["conditions"].as_array().map(Vec::as_slice);
                let mut conditions = conditions.unwrap_or_default().iter();
                conditions.find(|condition| condition["type"] == name).cloned().unwrap_or_default()
            };
            let is_good = if template.read.is_ok() { "True" } else { "False" };
            prop_assert_eq!(&of("Accepted")["status"], is_good, "{}", identity);
            prop_assert_eq!(&of("Programmed")["status"], is_good, "{}: {}", identity, status);
            prop_assert_eq!(
                status["observedGeneration"].as_i64(),
                template.object.metadata.generation
            );
            let Some(served) = &template.served else { continue };
            for field in ["currentRevision", "updateRevision"] {
                prop_assert_eq!(&status[field], served.hash.as_str(), "{}: {}", identity, field);
            }
        }
        Ok(())
    }
}

/// Remembers since when templates are gone.
fn note_gone<'k>(
    gone_since: &mut BTreeMap<String, Duration>,
    orphans: impl Iterator<Item = &'k str>,
    passed: Duration,
) {
    let orphans: Vec<_> = orphans.collect();
    gone_since.retain(|uid, _| orphans.contains(&uid.as_str()));
    for uid in orphans {
        gone_since.entry(uid.to_owned()).or_insert(passed);
    }
}
