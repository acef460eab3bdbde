//! What a replica knows of templates and of the configuration, and what it writes next while it leads. Pure: it
//! is given what was read, and the time.
//!
//! A write takes no pod out of the scope that a template of this replica matches, or matched until [`KEPT`]
//! ago. Neither does it narrow what another leader wrote, which may know a newer template: all pods are
//! selected, until nothing has changed for [`KEPT`].

use std::time::{Duration, Instant};

use injectd_cluster::Service;
use injectd_profiles::template_plane::KnownTemplates;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration};

use super::{
    KEPT,
    author::Author,
    edits::{Edit, edits},
    memory::{Memory, Wanted},
    pace::Pace,
    selected::{Selected, has_room, is_of_templates},
};

/// How long conditions are left out that an API server rejected, or did not keep: a newer one may.
const WITHOUT_CONDITIONS: Duration = Duration::from_hours(1);

/// A replica.
#[derive(Debug)]
pub(super) struct State {
    service: Service,
    memory: Memory,
    /// `None` until the configuration was read.
    seen: Option<Seen>,
    /// Since when others have not changed which pods are selected.
    since: Option<Instant>,
    leads_since: Option<Instant>,
    /// What this leader wrote, if nothing else was seen since.
    own: Option<Vec<Selected>>,
    /// What the configuration had, as it was to be.
    settled: Option<Vec<Selected>>,
    pace: Pace,
    /// Nothing is written before.
    again: Option<Instant>,
    /// Until then no conditions are written.
    plain_until: Option<Instant>,
}

/// The configuration as it was seen.
#[derive(Debug)]
enum Seen {
    Missing,
    There(Found),
}

/// A configuration.
#[derive(Debug)]
struct Found {
    version: String,
    webhooks: Vec<MutatingWebhook>,
    /// The indices of the entries that lead to injectd's templates.
    ours: Vec<usize>,
    entries: Vec<Selected>,
    author: Author,
}

/// Whether the configuration is as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Configuration or templates are not known yet.
    Unknown,
    /// The configuration does not exist.
    Missing,
    /// No entry of the configuration leads to injectd's templates.
    NoEntry,
    /// Its entries select what they must.
    InStep,
    /// They do not.
    Behind,
}

/// What a leader does next.
#[derive(Debug)]
pub(super) enum Next {
    Write(Write),
    /// Nothing, and at this time it looks again.
    Wait(Option<Instant>),
}

/// A write of the configuration.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) version: String,
    pub(super) edits: Vec<Edit>,
    pub(super) why: Why,
    target: Vec<Selected>,
    /// Whether the target selects all pods only for a while.
    is_bridge: bool,
    /// Whether the configuration had the target before.
    is_again: bool,
}

/// Why a leader writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// The templates changed, or the configuration is new.
    Changed,
    /// Another leader wrote something else: all pods are selected for a while.
    Bridged,
    /// Others changed it.
    Repaired(Author),
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Kept,
    /// The API server did not keep the conditions.
    WithoutConditions,
    /// The API server has something else.
    Differs,
}

impl State {
    pub(super) fn new(service: Service, own_namespace: Option<String>) -> Self {
        Self {
            service,
            memory: Memory::new(own_namespace),
            seen: None,
            since: None,
            leads_since: None,
            own: None,
            settled: None,
            pace: Pace::default(),
            again: None,
            plain_until: None,
        }
    }

    /// Takes note of the templates.
    pub(super) fn see_templates(&mut self, known: &KnownTemplates, now: Instant) {
        self.memory.see(known, now);
    }

    /// Takes note of the configuration; `None` if it does not exist.
    pub(super) fn see(&mut self, found: Option<&MutatingWebhookConfiguration>, now: Instant) {
        let seen =
            found.map_or(Seen::Missing, |found| Seen::There(Found::new(found, &self.service)));
        let is_same = self.seen.as_ref().is_some_and(|before| before.entries() == seen.entries());
        if !is_same {
            self.since = Some(now);
            self.own = None;
        }
        self.seen = Some(seen);
    }

    /// Takes note of whether this replica leads.
    pub(super) fn leads(&mut self, is_leader: bool, now: Instant) {
        if self.leads_since.is_some() != is_leader {
            self.leads_since = is_leader.then_some(now);
            self.own = None;
        }
    }

    /// Time passes.
    pub(super) fn pass(&mut self, now: Instant) {
        self.plain_until.take_if(|until| *until <= now);
        self.memory.pass(self.floor(), now);
    }

    /// When a leader forgets earlier revisions at the earliest, but for [`KEPT`]: what another leader wrote may
    /// be for them.
    fn floor(&self) -> Option<Instant> {
        let leads_since = self.leads_since?;
        Some(
            self.since.filter(|_| self.own.is_none()).map_or(leads_since, |at| at.max(leads_since)),
        )
    }

    /// Which pods the entries must select; `None` until the templates are known.
    pub(super) fn wanted(&self) -> Option<Wanted> {
        let mut wanted = self.memory.wanted()?.clone();
        let first = self.found().and_then(|found| found.webhooks.get(*found.ours.first()?));
        if self.plain_until.is_some() || first.is_some_and(|first| !has_room(first)) {
            wanted.entries = wanted.entries.iter().map(Selected::without_condition).collect();
        }
        Some(wanted)
    }

    fn found(&self) -> Option<&Found> {
        match &self.seen {
            Some(Seen::There(found)) => Some(found),
            _ => None,
        }
    }

    /// Whether the configuration is as it must be.
    pub(super) fn standing(&self) -> Standing {
        let found = match &self.seen {
            None => return Standing::Unknown,
            Some(Seen::Missing) => return Standing::Missing,
            Some(Seen::There(found)) if found.ours.is_empty() => return Standing::NoEntry,
            Some(Seen::There(found)) => found,
        };
        match self.wanted() {
            None => Standing::Unknown,
            Some(wanted) if found.edits(&wanted.entries).is_empty() => Standing::InStep,
            Some(_) => Standing::Behind,
        }
    }

    /// What this replica, which leads, does next.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        self.pass(now);
        let (Some(found), Some(wanted)) = (self.found(), self.wanted()) else {
            return Next::Wait(self.due(None));
        };
        if found.ours.is_empty() {
            return Next::Wait(self.due(None));
        }
        let bridge = self.bridge(found, &wanted.entries, now);
        let target = match bridge {
            None => wanted.entries,
            Some(_) if found.entries.iter().any(Selected::is_all) => found.entries.clone(),
            Some(_) => self.memory.all_pods(),
        };
        let edits = found.edits(&target);
        let is_again = self.settled.as_ref() == Some(&target);
        if edits.is_empty() {
            let due = self.due(bridge);
            self.settled = Some(target);
            return Next::Wait(due);
        }
        let pace = if is_again { self.pace.wait(now) } else { None };
        if let Some(at) = self.again.into_iter().chain(pace).max().filter(|at| *at > now) {
            return Next::Wait(Some(at));
        }
        let why = match bridge {
            // Else a further entry follows what others changed in the first one.
            _ if is_again && found.entries != target => Why::Repaired(found.author.clone()),
            Some(_) => Why::Bridged,
            None => Why::Changed,
        };
        let (version, is_bridge) = (found.version.clone(), bridge.is_some());
        Next::Write(Write { version, edits, why, target, is_bridge, is_again })
    }

    /// Until when all pods are selected, because another leader may know templates that are not known here.
    fn bridge(&self, found: &Found, wanted: &[Selected], now: Instant) -> Option<Instant> {
        let is_known = found.entries == wanted
            || self.own.as_ref() == Some(&found.entries)
            || matches!(found.author, Author::Other(_))
            || self.memory.covers(&found.entries, self.plain_until.is_some());
        let times = [self.since, self.leads_since, self.memory.listed_since()];
        let until = times.into_iter().flatten().max()? + KEPT;
        (!is_known && until > now).then_some(until)
    }

    fn due(&self, bridge: Option<Instant>) -> Option<Instant> {
        let forgets = self.memory.due(self.floor());
        forgets.into_iter().chain(bridge).chain(self.plain_until).min()
    }

    /// Takes note of the configuration that a write led to.
    pub(super) fn wrote(
        &mut self,
        write: &Write,
        found: &MutatingWebhookConfiguration,
        now: Instant,
    ) -> Outcome {
        let found = Found::new(found, &self.service);
        let plain: Vec<_> = write.target.iter().map(Selected::without_condition).collect();
        let outcome = if found.entries == write.target {
            Outcome::Kept
        } else if found.entries == plain {
            self.plain_until = Some(now + WITHOUT_CONDITIONS);
            Outcome::WithoutConditions
        } else {
            self.since = Some(now);
            Outcome::Differs
        };
        if write.is_again {
            self.pace.repaired(now);
        }
        let is_own = outcome != Outcome::Differs && !write.is_bridge;
        self.own = is_own.then(|| found.entries.clone());
        let is_plain = outcome == Outcome::WithoutConditions;
        self.settled = Some(if is_plain { plain } else { write.target.clone() });
        self.again = None;
        self.seen = Some(Seen::There(found));
        outcome
    }

    /// The API server does not take a write. Returns whether another one is tried, without conditions.
    pub(super) fn rejected(&mut self, write: &Write, again: Instant, now: Instant) -> bool {
        let has_conditions = write.target.iter().any(|selected| selected.condition.is_some());
        if has_conditions {
            self.plain_until = Some(now + WITHOUT_CONDITIONS);
        } else {
            self.again = Some(again);
        }
        has_conditions
    }

    /// A write failed, and the next one is not before.
    pub(super) fn failed(&mut self, again: Instant) {
        self.again = Some(again);
    }
}

impl Seen {
    /// Which pods the entries select; `None` if there is no configuration.
    fn entries(&self) -> Option<&[Selected]> {
        match self {
            Self::Missing => None,
            Self::There(found) => Some(&found.entries),
        }
    }
}

impl Found {
    fn new(found: &MutatingWebhookConfiguration, service: &Service) -> Self {
        let webhooks = found.webhooks.clone().unwrap_or_default();
        let ours = webhooks.iter().enumerate().filter(|(_, one)| is_of_templates(one, service));
        let ours: Vec<_> = ours.map(|(at, _)| at).collect();
        Self {
            version: found.metadata.resource_version.clone().unwrap_or_default(),
            entries: ours.iter().map(|at| Selected::of_webhook(&webhooks[*at])).collect(),
            author: Author::of(found, &ours),
            ours,
            webhooks,
        }
    }

    fn edits(&self, wanted: &[Selected]) -> Vec<Edit> {
        edits(&self.webhooks, &self.ours, wanted)
    }
}
