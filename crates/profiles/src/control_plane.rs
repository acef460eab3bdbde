//! Istio's control plane in a cluster: which revisions its `ConfigMap`s configure, and the Nodes and
//! `ProxyConfig`s that their injectors read.
//!
//! [`ControlPlane::apply`] takes what watches find; [`ControlPlane::settle`] reads the changed
//! configurations and puts them to use. Not for the watches themselves, the log and the metrics: the
//! caller has them.

#![expect(clippy::disallowed_types, reason = "ProxyConfigs are few, and read when they change")]

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use injectd_cluster::{
    objects::ConfigMap,
    sources::Sources,
    watch::{Update, WatchFailure},
};
use injectd_istio::{cluster::Cluster, mesh::Istio, revision::Revision};

use crate::{IstioInjector, Revisions};

mod change;
mod config_maps;
mod names;
mod settings;
mod surroundings;

pub use change::{Change, Note};
use config_maps::ConfigMaps;
pub use names::{ISTIO_NAMESPACE, injector_name, mesh_name, revision_of};
pub use settings::Settings;
use surroundings::Surroundings;

/// Why a `ConfigMap` is gone.
const DELETED: &str = "was deleted";

/// The state of the control plane.
#[derive(Debug)]
pub struct ControlPlane {
    settings: Settings,
    sources: Sources,
    /// What the servers use.
    served: Arc<Revisions>,
    maps: ConfigMaps,
    revisions: BTreeMap<String, WatchedRevision>,
    surroundings: Surroundings,
    /// Revisions whose configuration has changed.
    changed: BTreeSet<String>,
    /// Revisions that need not be served and whose `ConfigMap` was deleted.
    deleted: BTreeSet<String>,
    notes: Vec<Note>,
}

#[derive(Debug, Default)]
struct WatchedRevision {
    /// What is served.
    injector: Option<Arc<IstioInjector>>,
    /// A configuration that waits for the first lists of Nodes and `ProxyConfig`s.
    next: Option<Revision>,
    /// Counts the configurations that were in use.
    generation: u64,
    /// Why the newest configuration is not in use.
    problem: Option<String>,
}

impl ControlPlane {
    /// A control plane of which nothing is known yet; `served` gets its revisions, whose injectors
    /// look namespaces up in `sources`.
    #[must_use]
    pub fn new(settings: Settings, sources: Sources, served: Arc<Revisions>) -> Self {
        let named = settings.named.iter().flatten().cloned();
        let control_plane = Self {
            maps: ConfigMaps::of(&settings),
            revisions: named.map(|revision| (revision, WatchedRevision::default())).collect(),
            settings,
            sources,
            served,
            surroundings: Surroundings::default(),
            changed: BTreeSet::new(),
            deleted: BTreeSet::new(),
            notes: Vec::new(),
        };
        // A revision that is named is known from the start: its path answers 503 and not 404.
        control_plane.publish();
        control_plane
    }

    /// What the revisions have in common.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The `ConfigMap`s to watch: by name, or `None` for all of the namespace.
    #[must_use]
    pub fn watched_maps(&self) -> Vec<Option<String>> {
        self.maps.scopes()
    }

    /// Watches no `ConfigMap`s: [`Change::Files`] brings the configurations.
    pub fn watch_no_maps(&mut self) {
        self.maps = ConfigMaps::default();
    }

    /// Whether the nodes decide about native sidecars in a revision.
    #[must_use]
    pub fn asks_nodes(&self) -> bool {
        self.revisions.values().any(|revision| {
            let served = revision.injector.as_ref().map(|injector| injector.mesh());
            served.is_some_and(|mesh| mesh.revision().asks_nodes())
                || revision.next.as_ref().is_some_and(Revision::asks_nodes)
        })
    }

    /// Forgets the nodes, because they are not watched any more.
    pub fn forget_nodes(&mut self) {
        self.surroundings.forget_nodes();
    }

    /// The number of `ConfigMap`s, Nodes and `ProxyConfig`s in memory.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        let [nodes, proxy_configs] = self.surroundings.counts();
        [self.maps.count(), nodes, proxy_configs]
    }

    /// What the caller has to report.
    pub fn take_notes(&mut self) -> Vec<Note> {
        mem::take(&mut self.notes)
    }

    /// Takes news in; [`ControlPlane::settle`] puts them to use.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::ConfigMaps(scope, update) => self.apply_maps(scope.as_deref(), update),
            Change::Nodes(update) => {
                let warnings = self.surroundings.apply_nodes(update);
                self.notes.extend(warnings.into_iter().map(Note::Warning));
            }
            Change::ProxyConfigs(update) => {
                let warnings = self.surroundings.apply_proxy_configs(update);
                self.notes.extend(warnings.into_iter().map(Note::Warning));
            }
            // Who reads files reports their warnings.
            Change::Files(name, revision) => self.read(name, Ok(*revision)),
        }
    }

    fn apply_maps(&mut self, scope: Option<&str>, update: Update<ConfigMap>) {
        match update {
            Update::Listed(objects) => {
                for name in self.maps.missing_in(scope, &objects) {
                    self.delete(&name, DELETED);
                }
                for object in objects {
                    self.store(object);
                }
                if self.maps.listed(scope) {
                    // A revision whose ConfigMap is missing is reported, too.
                    let unread = |revision: &WatchedRevision| {
                        revision.generation == 0
                            && revision.next.is_none()
                            && revision.problem.is_none()
                    };
                    let unread = self.revisions.iter().filter(|(_, revision)| unread(revision));
                    self.changed.extend(unread.map(|(name, _)| name.clone()));
                }
            }
            Update::Applied(object) => self.store(object),
            Update::Deleted(object) => {
                let name = object.metadata.name.unwrap_or_default();
                self.delete(&name, DELETED);
            }
            Update::Failed(failure) => {
                if let Some(problem) = self.maps.fail(scope, failure) {
                    self.notes.push(Note::Warning(problem));
                }
            }
        }
    }

    fn store(&mut self, object: ConfigMap) {
        if !self.maps.configures_istio(&object) {
            return self.delete(&object.metadata.name.unwrap_or_default(), "has lost its key mesh");
        }
        let Some(name) = self.maps.store(object) else { return };
        if let (None, Some(revision)) = (&self.settings.named, revision_of(&name)) {
            self.revisions.entry(revision.to_owned()).or_default();
        }
        self.changed.extend(self.dependents(&name));
    }

    /// The revisions that a `ConfigMap` configures.
    fn dependents(&self, name: &str) -> Vec<String> {
        let is_shared = self.settings.shared_mesh.as_deref() == Some(name);
        let depends = |revision: &&String| {
            is_shared || injector_name(revision) == name || mesh_name(revision) == name
        };
        self.revisions.keys().filter(depends).cloned().collect()
    }

    /// A `ConfigMap` is gone for this reason; nothing happens if it did not configure Istio. If its
    /// revision need not be served, that is gone too. Else its texts stay, also when another one of
    /// the revision changes.
    fn delete(&mut self, name: &str, reason: &str) {
        if !self.maps.has(name) {
            return;
        }
        if let (None, Some(revision)) = (&self.settings.named, revision_of(name)) {
            self.maps.remove(name);
            self.deleted.insert(revision.to_owned());
            return;
        }
        let dependents = self.dependents(name);
        let is_used = |revision: &String| {
            self.revisions.get(revision).is_some_and(|revision| revision.generation > 0)
        };
        if dependents.iter().any(is_used) {
            if self.maps.mark_deleted(name) {
                let namespace = &self.settings.namespace;
                let text = format!(
                    "the ConfigMap {namespace}/{name} {reason}; its last content stays in use"
                );
                self.notes.push(Note::Warning(text));
            }
        } else {
            self.maps.remove(name);
            self.changed.extend(dependents);
        }
    }

    /// Whether [`ControlPlane::settle`] has something to do.
    #[must_use]
    pub fn has_news(&self) -> bool {
        let is_waiting = self.revisions.values().any(|revision| revision.next.is_some());
        is_waiting
            || !self.changed.is_empty()
            || !self.deleted.is_empty()
            || self.surroundings.has_changed()
    }

    /// Reads the configurations that have changed, and puts all news to use. Takes milliseconds for
    /// each revision.
    pub fn settle(&mut self) {
        for revision in mem::take(&mut self.deleted) {
            self.remove(revision);
        }
        for revision in mem::take(&mut self.changed) {
            if !self.revisions.contains_key(&revision) {
                continue;
            }
            match self.maps.texts(&revision) {
                // The rest of its ConfigMaps is still to be listed.
                None => _ = self.changed.insert(revision),
                Some(Err(problem)) => self.read(revision, Err(problem)),
                Some(Ok(texts)) => {
                    let read = self.settings.read(&revision, &texts);
                    self.notes.extend(self.settings.warnings(&revision, &read));
                    self.read(revision, read);
                }
            }
        }
        self.surround();
        self.install();
    }

    /// Removes a revision, unless its `ConfigMap` was created again meanwhile.
    fn remove(&mut self, revision: String) {
        if self.maps.has(&injector_name(&revision)) {
            return;
        }
        self.maps.remove_if_deleted(&mesh_name(&revision));
        self.changed.remove(&revision);
        self.revisions.remove(&revision);
        self.notes.push(Note::Removed { revision });
    }

    /// A configuration was read.
    fn read(&mut self, name: String, read: Result<Revision, String>) {
        let found = self.revisions.entry(name.clone()).or_default();
        match read {
            Ok(revision) => {
                found.problem = None;
                found.next = Some(revision);
            }
            Err(problem) => {
                found.problem = Some(problem.clone());
                let is_served = found.injector.is_some();
                self.notes.push(Note::Rejected { revision: name, is_served, problem });
            }
        }
    }

    /// Gives changed Nodes and `ProxyConfig`s to the injectors in use.
    fn surround(&mut self) {
        let (has_new_nodes, has_new_resources) = self.surroundings.take_changes();
        for revision in self.revisions.values() {
            let Some(injector) = &revision.injector else { continue };
            if has_new_resources {
                let mesh = injector.mesh();
                let resources = self.surroundings.resources(mesh.revision().release());
                injector.replace_mesh(mesh.with_resources(resources));
            }
            if has_new_nodes {
                injector.replace_mesh(injector.mesh().with_nodes(self.surroundings.nodes()));
            }
        }
    }

    /// Puts the configurations to use whose surroundings are known.
    fn install(&mut self) {
        for (name, revision) in &mut self.revisions {
            let is_surrounded = |next: &mut Revision| self.surroundings.is_known(next.asks_nodes());
            let Some(next) = revision.next.take_if(is_surrounded) else { continue };
            revision.generation += 1;
            let cluster = Cluster {
                names: self.settings.clusters.clone(),
                nodes: self.surroundings.nodes(),
                resources: self.surroundings.resources(next.release()),
            };
            let mesh = Istio::new(next, cluster, revision.generation);
            let injector = if let Some(injector) = &revision.injector {
                injector.replace_mesh(mesh);
                injector
            } else {
                let injector = IstioInjector::new(mesh, self.sources.clone());
                revision.injector.insert(Arc::new(injector))
            };
            self.notes.push(Note::Applied { revision: name.clone(), mesh: injector.mesh() });
        }
        self.publish();
    }

    fn publish(&self) {
        let (mut served, mut waiting) = (BTreeMap::new(), BTreeSet::new());
        for (name, revision) in &self.revisions {
            match &revision.injector {
                Some(injector) => _ = served.insert(name.clone(), Arc::clone(injector)),
                None => _ = waiting.insert(name.clone()),
            }
        }
        self.served.replace(served, waiting);
    }

    /// What the process must wait for before it is ready; `None` once every revision that is named,
    /// or any if no revision is, has a configuration in use.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let mut waits = Vec::new();
        let has = |is: fn(&WatchedRevision) -> bool| self.revisions.values().any(is);
        let is_any_served =
            has(|revision| revision.injector.is_some()) && !has(WatchedRevision::is_first_to_come);
        if self.settings.named.is_none() && is_any_served {
            return None;
        }
        for (name, revision) in &self.revisions {
            let reason = match revision {
                WatchedRevision { injector: Some(_), .. } => continue,
                WatchedRevision { problem: Some(problem), .. } => problem.clone(),
                WatchedRevision { next: Some(next), .. } => {
                    self.surroundings.missing(next.asks_nodes())
                }
                _ => self.maps.unlisted(name),
            };
            waits.push(format!("revision {name}: {reason}"));
        }
        if self.revisions.is_empty() {
            waits.push(self.maps.no_revision());
        }
        (!waits.is_empty()).then(|| waits.join("\n"))
    }
}

impl WatchedRevision {
    /// Whether its first configuration waits.
    fn is_first_to_come(&self) -> bool {
        self.injector.is_none() && self.next.is_some()
    }
}

/// The reason for which objects cannot be read, in a message.
fn in_words(failure: &WatchFailure) -> &str {
    match failure {
        WatchFailure::Unknown => "the API server does not have the kind",
        WatchFailure::Forbidden(problem) | WatchFailure::Other(problem) => problem,
    }
}

#[cfg(test)]
mod tests;
