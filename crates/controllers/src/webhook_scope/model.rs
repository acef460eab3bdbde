//! A model of replicas, an API server and other writers, with every interleaving of their steps that a random
//! walk finds.
//!
//! Replicas see changes of templates at most [`LAG`] late, which is less than [`KEPT`]. The invariants, checked
//! at each write of a leader:
//! 1. It takes no pod out of the scope that a template matches which some replica serves, if the leader has
//!    seen the template, or if another leader wrote the scope since the template exists. Exception: others
//!    have written the selectors since a leader did.
//! 2. Entries of others stay, and so does what injectd does not own of its entries; no `caBundle` is lost.
//!
//! And when all replicas have seen everything:
//! 3. Each pod that a template matches is called for.
//! 4. After [`KEPT`], the scope is the one of the templates, and nothing is written any more.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use injectd_cluster::Service;
use injectd_templates::{Template, scope::Scope};
use proptest::prelude::*;
use serde_json::json;

use super::{
    KEPT,
    memory::tests::{known, of_spec, template},
    selected::Selected,
    state::{Next, Outcome, Standing, State, Write},
};

mod server;
mod walks;

pub(super) use server::{Edit, Refused, Server, service};

/// How late a replica may see a change of templates.
const LAG: u64 = 100;
const REPLICAS: usize = 3;
/// Pods: three with a label, one in a namespace with a label, and one without any.
const PODS: usize = 5;

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Act {
    Seconds(u64),
    /// A template is created or changed to a variant, or deleted.
    Set(usize),
    Delete(usize),
    /// A replica sees the templates, or the configuration, as they are.
    Watch(usize),
    See(usize),
    /// A leader plans, and writes what it planned: later it may lead no more.
    Plan(usize),
    Write(usize, Fault),
    Lead(usize),
    /// A replica starts again without memory.
    Restart(usize),
    /// Others write the configuration.
    Others(Edit),
    /// The API server drops or rejects conditions from now on, or no more.
    Drops(bool),
    Rejects(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Nothing is done, and there is no answer.
    Unreachable,
    /// What was asked is done, and the answer is lost.
    Lost,
}

/// A template that exists, or existed.
#[derive(Debug, Clone)]
struct Made {
    variant: usize,
    created: u64,
}

/// The pods that the variants of templates match. Two variants are of one template.
const VARIANTS: [(&str, &[usize]); 6] =
    [("a", &[0]), ("a", &[1]), ("b", &[2]), ("b", &[3]), ("c", &[0, 1, 2, 3, 4]), ("a", &[0, 1])];

fn variant(at: usize) -> Arc<Template> {
    let name = VARIANTS[at].0;
    match at {
        0 => template(name, "w0"),
        1 => template(name, "w1"),
        2 => template(name, "w2"),
        3 => of_spec(name, json!({"enablement": {"key": "inject", "in": ["NamespaceLabel"]}})),
        4 => of_spec(
            name,
            json!({"match": {"systemPods": "Include",
            "conditions": [{"name": "one", "expression": "owner.kind != 'Job'"}]}}),
        ),
        _ => of_spec(
            name,
            json!({"match": {"conditions": [
            {"name": "one", "expression": "object.metadata.?labels[?'app'].orValue('') in ['w0', 'w1']"}]}}),
        ),
    }
}

struct Replica {
    process: usize,
    state: State,
    /// What it serves: indices of `World::made`, and since when that is old.
    served: BTreeSet<usize>,
    old_since: Option<u64>,
    /// All that its process has seen.
    seen: BTreeSet<usize>,
    planned: Option<Write>,
}

struct World {
    origin: Instant,
    now: u64,
    variants: Vec<Arc<Template>>,
    made: Vec<Made>,
    /// Templates that exist: indices of `made`.
    exist: BTreeSet<usize>,
    replicas: Vec<Replica>,
    processes: usize,
    leader: usize,
    server: Server,
    /// Which process wrote the entries last, and when; `None`: others.
    writer: Option<(usize, u64)>,
}

type Checked<T = ()> = Result<T, TestCaseError>;

impl World {
    fn new() -> Self {
        let mut world = Self {
            origin: Instant::now(),
            now: 0,
            variants: (0..VARIANTS.len()).map(variant).collect(),
            made: Vec::new(),
            exist: BTreeSet::new(),
            replicas: Vec::new(),
            processes: 0,
            leader: 0,
            server: Server::new(),
            writer: None,
        };
        world.replicas = (0..REPLICAS).map(|_| world.started()).collect();
        world.lead(0);
        world
    }

    fn started(&mut self) -> Replica {
        self.processes += 1;
        Replica {
            process: self.processes,
            state: State::new(service(), Some("mesh".to_owned())),
            served: BTreeSet::new(),
            old_since: None,
            seen: BTreeSet::new(),
            planned: None,
        }
    }

    fn instant(&self) -> Instant {
        self.origin + Duration::from_secs(self.now)
    }

    fn run(&mut self, act: Act) -> Checked {
        match act {
            Act::Seconds(seconds) => self.pass(seconds),
            Act::Set(variant) => {
                self.delete(VARIANTS[variant].0);
                self.made.push(Made { variant, created: self.now });
                self.exist.insert(self.made.len() - 1);
                self.is_old();
            }
            Act::Delete(variant) => {
                self.delete(VARIANTS[variant].0);
                self.is_old();
            }
            Act::Watch(replica) => self.watch(replica),
            Act::See(replica) => self.see(replica),
            Act::Plan(replica) if replica == self.leader => {
                let now = self.instant();
                if let Next::Write(write) = self.replicas[replica].state.next(now) {
                    self.replicas[replica].planned = Some(write);
                }
            }
            Act::Plan(_) => {}
            Act::Write(replica, fault) => return self.write(replica, fault),
            Act::Lead(replica) => self.lead(replica),
            Act::Restart(replica) => {
                self.replicas[replica] = self.started();
                // It serves after it has listed the templates.
                self.watch(replica);
                self.lead(self.leader);
            }
            Act::Others(edit) => {
                self.server.edit(edit);
                self.writer = None;
            }
            Act::Drops(is) => self.server.drops = is,
            Act::Rejects(is) => self.server.rejects = is,
        }
        Ok(())
    }

    fn delete(&mut self, name: &str) {
        let made = &self.made;
        self.exist.retain(|one| VARIANTS[made[*one].variant].0 != name);
    }

    /// Templates have changed: what replicas serve is old from now on.
    fn is_old(&mut self) {
        for replica in &mut self.replicas {
            replica.old_since.get_or_insert(self.now);
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            for replica in 0..REPLICAS {
                if self.replicas[replica].old_since.is_some_and(|since| since + LAG <= self.now) {
                    self.watch(replica);
                }
            }
        }
    }

    fn watch(&mut self, replica: usize) {
        let exist = self.exist.iter().map(|one| &self.variants[self.made[*one].variant]);
        let (known, now) = (known(exist), self.instant());
        let replica = &mut self.replicas[replica];
        replica.state.see_templates(&known, now);
        replica.served.clone_from(&self.exist);
        replica.seen.extend(&self.exist);
        replica.old_since = None;
    }

    fn see(&mut self, replica: usize) {
        let (found, now) = (self.server.read(), self.instant());
        self.replicas[replica].state.see(found.as_ref(), now);
    }

    fn lead(&mut self, leader: usize) {
        let now = self.instant();
        self.replicas[self.leader].state.leads(false, now);
        self.replicas[leader].state.leads(true, now);
        self.leader = leader;
    }

    fn write(&mut self, replica: usize, fault: Fault) -> Checked {
        let Some(write) = self.replicas[replica].planned.take() else { return Ok(()) };
        let now = self.instant();
        let again = now + Duration::from_secs(2);
        if fault == Fault::Unreachable {
            self.replicas[replica].state.failed(again);
            return Ok(());
        }
        let (before, called) = (self.server.webhooks(), self.called());
        match self.server.write(&write.version, &write.edits) {
            Ok(found) => {
                self.check_write(replica, called)?;
                self.server.check_owned(&before)?;
                self.writer = Some((self.replicas[replica].process, self.now));
                if fault == Fault::Lost {
                    self.replicas[replica].state.failed(again);
                } else {
                    let outcome = self.replicas[replica].state.wrote(&write, &found, now);
                    prop_assert_ne!(outcome, Outcome::Differs);
                }
            }
            Err(server::Refused::Conflict) => self.see(replica),
            Err(server::Refused::Conditions) => {
                self.replicas[replica].state.rejected(&write, again, now);
            }
        }
        Ok(())
    }

    /// The pods that the webhook is called for.
    fn called(&mut self) -> [bool; PODS] {
        self.server.called()
    }

    fn matched(&self, made: usize) -> &'static [usize] {
        VARIANTS[self.made[made].variant].1
    }

    /// Invariant 1.
    fn check_write(&mut self, leader: usize, before: [bool; PODS]) -> Checked {
        let after = self.called();
        let Some((writer, written)) = self.writer else { return Ok(()) };
        let leader = &self.replicas[leader];
        let served: BTreeSet<_> =
            self.replicas.iter().flat_map(|replica| &replica.served).copied().collect();
        for made in served {
            let is_newer = writer != leader.process && written >= self.made[made].created;
            if !leader.seen.contains(&made) && !is_newer {
                continue;
            }
            for pod in self.matched(made) {
                prop_assert!(
                    after[*pod] || !before[*pod],
                    "at {} s pod {pod} of {:?} is not called for any more",
                    self.now,
                    self.made[made]
                );
            }
        }
        Ok(())
    }

    /// Everyone sees everything, and the leader acts until there is nothing to do.
    fn settle(&mut self) -> Checked {
        for _ in 0..40 {
            for replica in 0..REPLICAS {
                self.watch(replica);
                self.see(replica);
            }
            let (leader, now) = (self.leader, self.instant());
            match self.replicas[leader].state.next(now) {
                Next::Write(write) => {
                    self.replicas[leader].planned = Some(write);
                    self.write(leader, Fault::None)?;
                }
                Next::Wait(Some(at))
                    if self.replicas[leader].state.standing() == Standing::Behind
                        && !self.is_wide() =>
                {
                    let wait = at.saturating_duration_since(now).as_secs() + 1;
                    prop_assert!(wait < 70, "the leader waits {wait} s");
                    self.pass(wait);
                }
                Next::Wait(_) => return Ok(()),
            }
        }
        prop_assert!(false, "the leader goes on writing");
        Ok(())
    }

    /// Whether all pods are called for.
    fn is_wide(&mut self) -> bool {
        self.called() == [true; PODS]
    }

    /// Invariants 3 and 4.
    fn end_round(&mut self) -> Checked {
        self.settle()?;
        self.check_called()?;
        // At most once after the last change, and once after the last write of another leader.
        for _ in 0..2 {
            self.pass(KEPT.as_secs() + 1);
            self.settle()?;
            self.check_called()?;
        }
        let Some(found) = self.server.entries() else { return Ok(()) };
        let exist = self.exist.iter().map(|one| &*self.variants[self.made[*one].variant]);
        let mut templates: Vec<_> = exist.collect();
        templates.sort_by_key(|template| &template.identity);
        let scope = Scope::of(templates, Some("mesh"));
        let mut exact: Vec<_> = scope.entries.iter().map(Selected::of_scope).collect();
        if exact.is_empty() {
            exact.push(Selected::nothing());
        }
        let plain: Vec<_> = exact.iter().map(Selected::without_condition).collect();
        prop_assert!(found == exact || found == plain, "{found:?} is not {exact:?}");
        if !self.server.has_lost_conditions {
            prop_assert!(found == exact, "{found:?} is not {exact:?}");
        }
        Ok(())
    }

    fn check_called(&mut self) -> Checked {
        if self.server.entries().is_none() {
            return Ok(());
        }
        let called = self.called();
        for made in &self.exist {
            for pod in self.matched(*made) {
                prop_assert!(called[*pod], "pod {pod} of {:?} is not called for", self.made[*made]);
            }
        }
        Ok(())
    }
}
