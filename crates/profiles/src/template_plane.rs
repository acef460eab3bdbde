//! Sidecar templates in a cluster: which revision of each template a replica serves.
//!
//! [`TemplatePlane::apply`] takes what watches find; [`TemplatePlane::settle`] reads what has changed. A
//! template that is not in order does not replace its last good revision, which a `ControllerRevision` keeps
//! for replicas that start later. A template whose definition was deleted with it stays served. Not for the
//! watches themselves, the log and the metrics: the caller has them. Nor for what is written into the
//! cluster: the keeper of templates does that.

#![expect(clippy::disallowed_types, reason = "templates are few, and read when they change")]

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use injectd_cluster::watch::{Update, WatchFailure};
use injectd_templates::{Problem, Template, ceiling::Ceiling, object::Identity, schema};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::core::DynamicObject;

mod known;
mod objects;
mod revisions;

pub use known::{
    HASH_LABEL, KIND_LABEL, KeptRevision, KnownTemplate, KnownTemplates, NAME_LABEL,
    NAMESPACE_LABEL, UID_LABEL,
};

use objects::{AT_MOST, Objects};

/// How long templates are served whose definition was deleted with them and is there again: longer than the
/// time in which tools such as Flux apply what is missing, 3 to 10 minutes.
pub const ORPHANS_STAY: Duration = Duration::from_mins(15);

/// A kind of template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `ClusterSidecarTemplate`.
    Cluster,
    /// `SidecarTemplate`.
    Namespaced,
}

/// News of a cluster.
#[derive(Debug)]
pub enum TemplateChange {
    /// Of templates of a kind.
    Templates(Kind, Update<DynamicObject>),
    /// Of revisions.
    Revisions(Update<ControllerRevision>),
}

/// The `CustomResourceDefinition` of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// It is there, with this uid; empty if it may not be read.
    There(String),
    /// It is deleted, or is being deleted.
    Gone,
}

/// What the caller has to report.
#[derive(Debug)]
pub enum TemplateNote {
    /// A revision is served from now on.
    Applied {
        /// The template.
        identity: Identity,
        /// The hash of the revision.
        hash: String,
    },
    /// The newest revision is not in order.
    Rejected {
        /// The template.
        identity: Identity,
        /// What is wrong.
        problems: Arc<[Problem]>,
        /// The hash of the revision that is served; `None`: none is.
        served: Option<String>,
    },
    /// A template is not served any more.
    Removed(Identity),
    /// The definition of a template was deleted; the template is served on.
    Orphaned(Identity),
    /// Something to know about.
    Warning(String),
}

/// What a replica knows of the templates of a cluster.
#[derive(Debug)]
pub struct TemplatePlane {
    ceiling: Ceiling,
    kinds: [Objects; Kind::ALL.len()],
    revisions: revisions::Revisions,
    known: Arc<KnownTemplates>,
    /// Templates to look at.
    changed: BTreeSet<Identity>,
    /// Templates whose object is gone, until it is known whether its definition is gone, too.
    gone: BTreeSet<Identity>,
    /// Until when templates whose definition was deleted are served; `None`: it is not there again.
    orphans: BTreeMap<Identity, Option<Instant>>,
    /// Templates beyond the maximum.
    beyond: BTreeSet<Identity>,
    /// Whether there is anything to settle.
    has_news: bool,
    notes: Vec<TemplateNote>,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Cluster, Self::Namespaced];

    /// As objects name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => schema::CLUSTER_KIND,
            Self::Namespaced => schema::NAMESPACED_KIND,
        }
    }

    /// The kind of a template.
    #[must_use]
    pub fn of(identity: &Identity) -> Self {
        if identity.namespace.is_none() { Self::Cluster } else { Self::Namespaced }
    }
}

impl TemplatePlane {
    /// Nothing is known yet. Namespaced templates stay below the ceiling.
    #[must_use]
    pub fn new(ceiling: Ceiling) -> Self {
        Self {
            ceiling,
            kinds: Kind::ALL.map(|_| Objects::default()),
            revisions: revisions::Revisions::default(),
            known: Arc::default(),
            changed: BTreeSet::new(),
            gone: BTreeSet::new(),
            orphans: BTreeMap::new(),
            beyond: BTreeSet::new(),
            has_news: true,
            notes: Vec::new(),
        }
    }

    /// What is known since the last [`TemplatePlane::settle`].
    #[must_use]
    pub fn known(&self) -> Arc<KnownTemplates> {
        Arc::clone(&self.known)
    }

    /// What the caller has to report.
    pub fn take_notes(&mut self) -> Vec<TemplateNote> {
        mem::take(&mut self.notes)
    }

    /// The number of templates of both kinds, and of revisions, in memory.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        [self.kinds.iter().map(Objects::len).sum(), self.revisions.len()]
    }

    /// Why nothing is served yet: what was not listed.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let of_kind = |kind: Kind| self.kinds[kind as usize].waits_for(kind.as_str());
        Kind::ALL.into_iter().find_map(of_kind).or_else(|| self.revisions.waits_for())
    }

    /// Takes news in; [`TemplatePlane::settle`] puts them to use.
    pub fn apply(&mut self, change: TemplateChange) {
        self.has_news = true;
        match change {
            TemplateChange::Templates(kind, update) => {
                if let Update::Failed(failure) = &update {
                    self.failed(kind, failure);
                }
                let news = self.kinds[kind as usize].apply(kind, update);
                for identity in news.there {
                    self.gone.remove(&identity);
                    self.changed.insert(identity);
                }
                self.gone.extend(news.gone);
            }
            TemplateChange::Revisions(update) => {
                if let Some(warning) = self.revisions.apply(update) {
                    self.notes.push(TemplateNote::Warning(warning));
                }
                // Templates of which another replica may have served a newer good revision.
                // A template in order is served as it is and needs no revision.
                let waiting = self.known.templates.iter().filter(|(_, known)| known.read.is_err());
                self.changed.extend(waiting.map(|(identity, _)| identity.clone()));
            }
        }
    }

    fn failed(&mut self, kind: Kind, failure: &WatchFailure) {
        let kind_name = kind.as_str();
        let text = match failure {
            WatchFailure::Unknown if self.kinds[kind as usize].is_unknown() => return,
            WatchFailure::Unknown => format!(
                "the cluster has no {kind_name}: apply the CustomResourceDefinitions of injectd (manifest, subcommand crds)"
            ),
            WatchFailure::Forbidden(text) | WatchFailure::Other(text) => {
                format!("the objects of kind {kind_name} cannot be read: {text}")
            }
        };
        self.notes.push(TemplateNote::Warning(text));
    }

    /// Kinds whose definition must be looked at: objects of theirs are gone, or they are there again.
    #[must_use]
    pub fn asks_definitions(&self) -> Vec<Kind> {
        let has_gone = |kind: Kind| self.gone.iter().any(|identity| Kind::of(identity) == kind);
        let waits = |kind: Kind| {
            let mut orphans = self.orphans.iter();
            orphans.any(|(identity, until)| until.is_none() && Kind::of(identity) == kind)
        };
        let is_back = |kind: Kind| !self.kinds[kind as usize].is_unknown() && waits(kind);
        Kind::ALL.into_iter().filter(|kind| has_gone(*kind) || is_back(*kind)).collect()
    }

    /// Takes in the definition of a kind. Templates that are gone are not served any more if their definition
    /// is the one that it was before.
    pub fn define(&mut self, kind: Kind, definition: &Definition, now: Instant) {
        let of_kind = |identity: &Identity| Kind::of(identity) == kind;
        let is_same = self.kinds[kind as usize].is_defined_by(definition);
        let gone: Vec<_> = self.gone.iter().filter(|gone| of_kind(gone)).cloned().collect();
        self.gone.retain(|identity| !of_kind(identity));
        self.has_news |= !gone.is_empty();
        for identity in gone {
            if is_same && !self.orphans.contains_key(&identity) {
                self.changed.insert(identity);
                continue;
            }
            if self.orphans.insert(identity.clone(), None).is_none() {
                self.notes.push(TemplateNote::Orphaned(identity));
            }
        }
        if matches!(definition, Definition::There(_)) {
            let orphans = self.orphans.iter_mut().filter(|(identity, _)| of_kind(identity));
            // The time runs once, from the first look at the new definition. A later look must not
            // extend it.
            orphans.for_each(|(_, until)| _ = until.get_or_insert(now + ORPHANS_STAY));
        }
    }

    /// When there is something to settle without further news.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Instant> {
        self.orphans.values().flatten().min().copied()
    }

    /// Reads what has changed; without any news, what is known stays the same object. Nothing is known before
    /// everything was listed once.
    pub fn settle(&mut self, now: Instant) {
        let ended =
            self.orphans.iter().filter(|(_, until)| until.is_some_and(|until| until <= now));
        let ended: Vec<_> = ended.map(|(identity, _)| identity.clone()).collect();
        self.has_news |= !ended.is_empty();
        for identity in ended {
            self.orphans.remove(&identity);
            self.changed.insert(identity);
        }
        // The order counts: news must stay news until everything is listed.
        if self.waits_for().is_some() || !mem::take(&mut self.has_news) {
            return;
        }
        let mut known = KnownTemplates::clone(&self.known);
        known.is_listed = true;
        known.revisions = self.revisions.all();
        let beyond = self.kinds.iter().flat_map(Objects::beyond).collect();
        let before = mem::replace(&mut self.beyond, beyond);
        let moved: Vec<_> = before.symmetric_difference(&self.beyond).cloned().collect();
        for identity in &moved {
            // It is read again.
            known.templates.get_mut(identity).into_iter().for_each(|known| known.is_read = false);
        }
        self.changed.extend(moved);
        for identity in mem::take(&mut self.changed) {
            let before = known.templates.remove(&identity);
            if let Some(next) = self.look(&identity, before) {
                known.templates.insert(identity, next);
            }
        }
        for (identity, template) in &mut known.templates {
            template.is_orphan = self.orphans.contains_key(identity);
        }
        self.known = Arc::new(known);
    }

    /// What is known of a template now; `None` if its object is gone.
    fn look(
        &mut self,
        identity: &Identity,
        before: Option<KnownTemplate>,
    ) -> Option<KnownTemplate> {
        let Some(object) = self.kinds[Kind::of(identity) as usize].get(identity) else {
            if self.orphans.contains_key(identity) {
                return before;
            }
            if before.is_some_and(|before| before.served.is_some()) {
                self.notes.push(TemplateNote::Removed(identity.clone()));
            }
            return None;
        };
        let was_orphan = self.orphans.remove(identity).is_some();
        // Another uid is another object of the same name: what was served before must not be the
        // last good revision of it. After its definition was deleted, all uids are new, and the
        // templates are the same.
        let is_same = |before: &KnownTemplate| before.object.metadata.uid == object.metadata.uid;
        let before = before.filter(|before| was_orphan || is_same(before));
        let last = before.as_ref().and_then(|before| before.served.clone());
        let is_read = |before: &KnownTemplate| {
            is_same(before) && before.object.metadata.generation == object.metadata.generation
        };
        let (read, is_new) = match before.filter(|before| before.is_read && is_read(before)) {
            Some(before) => (before.read, false),
            None => (self.read(identity, &object), true),
        };
        let served = read.as_ref().ok().cloned();
        let last_good = || self.revisions.last_good(&object, self.ceiling, last.as_ref());
        let served = served.or_else(last_good);
        let [hash, hash_before] = [&served, &last]
            .map(|template| template.as_ref().map(|template| template.hash.clone()));
        match (&read, &hash) {
            (Err(problems), _) if is_new => self.notes.push(TemplateNote::Rejected {
                identity: identity.clone(),
                problems: Arc::clone(problems),
                served: hash,
            }),
            (_, Some(hash)) if Some(hash) != hash_before.as_ref() => {
                let (identity, hash) = (identity.clone(), hash.clone());
                self.notes.push(TemplateNote::Applied { identity, hash });
            }
            _ => {}
        }
        Some(KnownTemplate::new(object, read, served))
    }

    /// Reads an object.
    fn read(
        &self,
        identity: &Identity,
        object: &DynamicObject,
    ) -> Result<Arc<Template>, Arc<[Problem]>> {
        if self.beyond.contains(identity) {
            return Err(vec![Problem::new("metadata.name", AT_MOST.to_string())].into());
        }
        let template = Template::read(&objects::as_written(object))?;
        let problems = self.ceiling.problems(&template);
        if problems.is_empty() { Ok(Arc::new(template)) } else { Err(problems.into()) }
    }
}

#[cfg(test)]
mod tests;
