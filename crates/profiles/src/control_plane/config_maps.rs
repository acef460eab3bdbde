//! The `ConfigMap`s of the control plane, and the texts of a revision in them.

use std::collections::{BTreeMap, BTreeSet};

use injectd_cluster::{
    objects::{ConfigMap, ConfigMapData},
    watch::WatchFailure,
};
use injectd_istio::detect::{OPERATOR_VERSION_LABEL, VERSION_LABEL};

use super::{
    in_words,
    names::{INJECTOR, MESH, injector_name, mesh_name, revision_of},
    settings::{Settings, Texts},
};

/// The `ConfigMap`s with Istio's keys.
#[derive(Debug, Default)]
pub(super) struct ConfigMaps {
    namespace: String,
    shared_mesh: Option<String>,
    maps: BTreeMap<String, Map>,
    /// The watches, by the name of the only `ConfigMap` of one.
    watches: BTreeMap<Option<String>, Watch>,
}

#[derive(Debug, Default)]
struct Watch {
    is_listed: bool,
    /// Why it fails, if it does.
    failure: Option<WatchFailure>,
}

#[derive(Debug, Default)]
struct Map {
    /// Those that name the release.
    labels: BTreeMap<String, String>,
    data: ConfigMapData,
    is_deleted: bool,
}

impl ConfigMaps {
    pub(super) fn of(settings: &Settings) -> Self {
        let names = settings.named.as_ref().map(|revisions| {
            let own = revisions
                .iter()
                .flat_map(|revision| [injector_name(revision), mesh_name(revision)]);
            own.chain(settings.shared_mesh.clone()).map(Some).collect::<BTreeSet<_>>()
        });
        let scopes = names.unwrap_or_else(|| [None].into());
        Self {
            namespace: settings.namespace.clone(),
            shared_mesh: settings.shared_mesh.clone(),
            maps: BTreeMap::new(),
            watches: scopes.into_iter().map(|scope| (scope, Watch::default())).collect(),
        }
    }

    pub(super) fn scopes(&self) -> Vec<Option<String>> {
        self.watches.keys().cloned().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.maps.len()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.maps.contains_key(name)
    }

    /// Whether a `ConfigMap` configures Istio. Without its mesh config, one with a name like `istio-…`
    /// may be any other one.
    pub(super) fn configures_istio(&self, object: &ConfigMap) -> bool {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let has_mesh = object.data.as_ref().is_some_and(|data| data.mesh.is_some());
        let is_shared = self.shared_mesh.as_deref() == Some(name);
        revision_of(name).is_some() || has_mesh && (is_shared || name.starts_with(MESH))
    }

    /// Keeps a `ConfigMap` of Istio. Returns its name if its texts are new.
    pub(super) fn store(&mut self, object: ConfigMap) -> Option<String> {
        let name = object.metadata.name.unwrap_or_default();
        let data = object.data.unwrap_or_default();
        let mut labels = object.metadata.labels.unwrap_or_default();
        // Other labels say nothing about the configuration: a change of them must not make it a new
        // one.
        labels.retain(|label, _| label == VERSION_LABEL || label == OPERATOR_VERSION_LABEL);
        let known = self.maps.entry(name.clone());
        let is_new = matches!(known, std::collections::btree_map::Entry::Vacant(_));
        let known = known.or_default();
        known.is_deleted = false;
        if !is_new && known.labels == labels && known.data == data {
            return None;
        }
        (known.labels, known.data) = (labels, data);
        Some(name)
    }

    /// The names that a watch has listed before and does not list now.
    pub(super) fn missing_in(&self, scope: Option<&str>, objects: &[ConfigMap]) -> Vec<String> {
        let listed: BTreeSet<_> =
            objects.iter().filter_map(|object| object.metadata.name.as_deref()).collect();
        let is_missing = |name: &&String| {
            scope.is_none_or(|scope| scope == name.as_str()) && !listed.contains(name.as_str())
        };
        self.maps.keys().filter(is_missing).cloned().collect()
    }

    /// A watch has listed its objects. Returns whether this is its first list.
    pub(super) fn listed(&mut self, scope: Option<&str>) -> bool {
        let watch = self.watches.entry(scope.map(str::to_owned)).or_default();
        watch.failure = None;
        !std::mem::replace(&mut watch.is_listed, true)
    }

    /// A watch has failed. Returns a text for the first failure of a kind.
    pub(super) fn fail(&mut self, scope: Option<&str>, failure: WatchFailure) -> Option<String> {
        let watch = self.watches.entry(scope.map(str::to_owned)).or_default();
        let is_known = watch.failure.as_ref().is_some_and(|known| known.is_like(&failure));
        watch.failure = Some(failure);
        if is_known {
            return None;
        }
        let stay = if watch.is_listed { "; the last ones stay in use" } else { "" };
        Some(format!("{}{stay}", self.cannot_watch(scope, self.failure(scope)?)))
    }

    fn failure(&self, scope: Option<&str>) -> Option<&WatchFailure> {
        self.watches.get(&scope.map(str::to_owned))?.failure.as_ref()
    }

    fn cannot_watch(&self, scope: Option<&str>, failure: &WatchFailure) -> String {
        let (namespace, problem) = (&self.namespace, in_words(failure));
        match scope {
            Some(name) => format!("cannot watch the ConfigMap {namespace}/{name}: {problem}"),
            None => format!("cannot watch the ConfigMaps of the namespace {namespace}: {problem}"),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.maps.remove(name);
    }

    pub(super) fn remove_if_deleted(&mut self, name: &str) {
        if self.maps.get(name).is_some_and(|map| map.is_deleted) {
            self.remove(name);
        }
    }

    /// Marks a `ConfigMap` as deleted. Returns whether it was not.
    pub(super) fn mark_deleted(&mut self, name: &str) -> bool {
        self.maps.get_mut(name).is_some_and(|map| !std::mem::replace(&mut map.is_deleted, true))
    }

    /// The `ConfigMap`s of a revision that no watch has listed yet.
    fn unlisted_names(&self, revision: &str) -> impl Iterator<Item = (Option<String>, String)> {
        let names = [injector_name(revision), mesh_name(revision)];
        let names = names.into_iter().chain(self.shared_mesh.clone());
        names.filter_map(|name| {
            let scopes = [None, Some(name.clone())];
            let (scope, watch) = scopes
                .into_iter()
                .find_map(|scope| self.watches.get(&scope).map(|watch| (scope, watch)))?;
            (!watch.is_listed).then_some((scope, name))
        })
    }

    /// Why the texts of a revision are not known yet.
    pub(super) fn unlisted(&self, revision: &str) -> String {
        let mut unlisted = self.unlisted_names(revision);
        let Some((scope, name)) = unlisted.next() else {
            return "its configuration is being read".to_owned();
        };
        match self.failure(scope.as_deref()) {
            Some(failure) => self.cannot_watch(scope.as_deref(), failure),
            None => format!("the ConfigMap {}/{name} is being read", self.namespace),
        }
    }

    /// Why there is no revision at all.
    pub(super) fn no_revision(&self) -> String {
        let namespace = &self.namespace;
        match self.watches.get(&None) {
            Some(Watch { failure: Some(failure), .. }) => self.cannot_watch(None, failure),
            Some(Watch { is_listed: true, .. }) => format!(
                "the namespace {namespace} has no ConfigMap {INJECTOR} or {INJECTOR}-REVISION; set \
                 --istio-namespace to the namespace of istiod"
            ),
            _ => format!("the ConfigMaps of the namespace {namespace} are being listed"),
        }
    }

    /// The texts of a revision, or what is missing; `None` while they are not listed.
    pub(super) fn texts(&self, revision: &str) -> Option<Result<Texts<'_>, String>> {
        if self.unlisted_names(revision).next().is_some() {
            return None;
        }
        Some(self.listed_texts(revision))
    }

    fn listed_texts(&self, revision: &str) -> Result<Texts<'_>, String> {
        let (namespace, name) = (&self.namespace, injector_name(revision));
        let Some(Map { data, labels, .. }) = self.maps.get(&name) else {
            return Err(format!("the ConfigMap {namespace}/{name} is missing"));
        };
        let missing = |key: &str| format!("ConfigMap {namespace}/{name}: the key {key} is missing");
        let mesh = |name: &str| self.maps.get(name).and_then(|map| map.data.mesh.as_deref());
        Ok(Texts {
            config: data.config.as_deref().ok_or_else(|| missing("config"))?,
            values: data.values.as_deref().ok_or_else(|| missing("values"))?,
            // Without a mesh config istiod has its defaults, too.
            mesh: mesh(&mesh_name(revision)).unwrap_or_default(),
            shared_mesh: self.shared_mesh.as_deref().and_then(mesh).unwrap_or_default(),
            labels,
        })
    }
}
