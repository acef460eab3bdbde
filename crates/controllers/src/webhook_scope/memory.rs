//! The templates that a replica serves, and those that it served until lately: the scope has both.
//!
//! Pure: it is given the time.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use injectd_profiles::template_plane::KnownTemplates;
use injectd_templates::{
    Template,
    scope::{Entry, Scope},
};

use super::{KEPT, selected::Selected};

/// Earlier revisions that are remembered; of more, all pods are called for.
const MAX_GONE: usize = 64;
/// Scopes that are known again.
const MAX_SCOPES: usize = 32;

/// What a replica knows of templates.
#[derive(Debug)]
pub(super) struct Memory {
    own_namespace: Option<String>,
    /// Since when the templates of the cluster are known.
    listed_since: Option<Instant>,
    templates: Vec<Remembered>,
    last_id: u64,
    /// When an earlier revision was forgotten, because there were too many.
    crowded: Option<Instant>,
    wanted: Wanted,
    /// Scopes that this process wanted, the newest last, each with its templates.
    scopes: VecDeque<(BTreeSet<u64>, Vec<Selected>)>,
}

/// A revision of a template, or several with the same scope.
#[derive(Debug)]
struct Remembered {
    id: u64,
    template: Arc<Template>,
    /// Its scope alone.
    alone: Scope,
    /// Since when it is not served any more.
    gone: Option<Instant>,
}

/// Which pods the entries must select.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Wanted {
    pub(super) entries: Vec<Selected>,
    /// Why all pods are selected; empty if they are not.
    pub(super) all_pods: Vec<String>,
}

impl Memory {
    pub(super) fn new(own_namespace: Option<String>) -> Self {
        Self {
            own_namespace,
            listed_since: None,
            templates: Vec::new(),
            last_id: 0,
            crowded: None,
            wanted: Wanted::default(),
            scopes: VecDeque::new(),
        }
    }

    /// Since when the templates are known.
    pub(super) fn listed_since(&self) -> Option<Instant> {
        self.listed_since
    }

    /// Which pods the entries must select; `None` until the templates are known.
    pub(super) fn wanted(&self) -> Option<&Wanted> {
        self.listed_since.map(|_| &self.wanted)
    }

    /// All pods, as an entry selects them.
    pub(super) fn all_pods(&self) -> Vec<Selected> {
        vec![Selected::of_scope(&Entry::of_all_pods(self.own_namespace.as_deref()))]
    }

    /// Takes note of the templates as they are served now.
    pub(super) fn see(&mut self, known: &KnownTemplates, now: Instant) {
        // Until the list is complete, a template that is missing may only not have come yet.
        if !known.is_listed {
            return;
        }
        let mut is_changed = self.listed_since.is_none();
        self.listed_since.get_or_insert(now);
        let before = self.last_id;
        let served: BTreeSet<_> = known.served().map(|template| self.id_of(template)).collect();
        is_changed |= self.last_id != before;
        for remembered in &mut self.templates {
            if served.contains(&remembered.id) {
                remembered.gone = None;
            } else {
                remembered.gone.get_or_insert(now);
            }
        }
        is_changed |= self.forget_oldest(now);
        if is_changed {
            self.compute();
        }
    }

    /// The number of a template; a new one if no template with its scope is remembered.
    fn id_of(&mut self, template: &Arc<Template>) -> u64 {
        let is_it = |of: &&mut Remembered| {
            of.template.identity == template.identity && of.template.hash == template.hash
        };
        if let Some(known) = self.templates.iter_mut().find(is_it) {
            return known.id;
        }
        let alone = Scope::of([&**template], self.own_namespace.as_deref());
        let is_like =
            |of: &&mut Remembered| of.template.identity == template.identity && of.alone == alone;
        if let Some(known) = self.templates.iter_mut().find(is_like) {
            known.template = Arc::clone(template);
            return known.id;
        }
        self.last_id += 1;
        let (id, template) = (self.last_id, Arc::clone(template));
        self.templates.push(Remembered { id, template, alone, gone: None });
        id
    }

    /// Forgets the oldest of too many earlier revisions. Returns whether one was forgotten.
    fn forget_oldest(&mut self, now: Instant) -> bool {
        let mut gone: Vec<_> =
            self.templates.iter().filter_map(|one| Some((one.gone?, one.id))).collect();
        if gone.len() <= MAX_GONE {
            return false;
        }
        gone.sort_unstable();
        gone.truncate(gone.len() - MAX_GONE);
        self.templates.retain(|one| !gone.iter().any(|(_, id)| *id == one.id));
        // Another replica may still serve what is forgotten here, and needs its pods.
        self.crowded = Some(now);
        true
    }

    /// Forgets what was not served for [`KEPT`], counted from `floor` at the earliest.
    pub(super) fn pass(&mut self, floor: Option<Instant>, now: Instant) {
        let is_over = |since: Instant| floor.map_or(since, |floor| floor.max(since)) + KEPT <= now;
        let before = (self.templates.len(), self.crowded);
        self.templates.retain(|one| !one.gone.is_some_and(is_over));
        self.crowded = self.crowded.filter(|since| !is_over(*since));
        if (self.templates.len(), self.crowded) != before {
            self.compute();
        }
    }

    /// When something is forgotten next.
    pub(super) fn due(&self, floor: Option<Instant>) -> Option<Instant> {
        let gone = self.templates.iter().filter_map(|one| one.gone);
        let first = gone.chain(self.crowded).min()?;
        Some(floor.map_or(first, |floor| floor.max(first)) + KEPT)
    }

    fn compute(&mut self) {
        // Replicas that know the same templates write the same, in whatever order they saw them.
        let mut templates: Vec<_> = self.templates.iter().map(|one| &*one.template).collect();
        templates.sort_by_key(|template| (&template.identity, &template.hash));
        let scope = Scope::of(templates, self.own_namespace.as_deref());
        let mut entries: Vec<_> = scope.entries.iter().map(Selected::of_scope).collect();
        let mut all_pods: Vec<_> = scope.all_pods.iter().map(ToString::to_string).collect();
        if self.crowded.is_some() {
            entries = self.all_pods();
            all_pods = vec!["templates change too often".to_owned()];
        }
        if entries.is_empty() {
            entries.push(Selected::nothing());
        }
        let of = (self.templates.iter().map(|one| one.id).collect(), entries.clone());
        if self.crowded.is_none() {
            self.scopes.retain(|known| *known != of);
            self.scopes.push_back(of);
        }
        if self.scopes.len() > MAX_SCOPES {
            self.scopes.pop_front();
        }
        self.wanted = Wanted { entries, all_pods };
    }

    /// Whether entries are a scope of templates that are all remembered; one without its conditions, too, if it
    /// is plain.
    pub(super) fn covers(&self, entries: &[Selected], is_plain: bool) -> bool {
        let plain =
            |of: &[Selected]| of.iter().map(Selected::without_condition).collect::<Vec<_>>();
        let is_remembered = |id: &u64| self.templates.iter().any(|remembered| remembered.id == *id);
        let mut known = self.scopes.iter().filter(|(ids, _)| ids.iter().all(is_remembered));
        entries == [Selected::nothing()]
            || known.any(|(_, scope)| entries == scope || is_plain && entries == plain(scope))
    }
}

#[cfg(test)]
pub(super) mod tests;
