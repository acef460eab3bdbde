//! The Nodes and `ProxyConfig`s of the cluster.

use std::{collections::BTreeMap, mem, sync::Arc};

use injectd_cluster::{
    objects::{Node, ProxyConfig},
    watch::{Update, WatchFailure},
};
use injectd_istio::{native::Nodes, proto::layers::Resources, release::Release};
use serde_json::{Value, json};

use super::in_words;

/// What is known of the Nodes and `ProxyConfig`s.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    nodes: Kind<Option<Arc<Nodes>>>,
    /// By namespace and name.
    proxy_configs: Kind<BTreeMap<(String, String), Value>>,
}

/// What is known of the objects of a kind.
#[derive(Debug, Default)]
struct Kind<T> {
    objects: T,
    is_listed: bool,
    /// They were listed, or cannot be.
    is_known: bool,
    has_changed: bool,
    /// Why they cannot be read, if they cannot.
    failure: Option<WatchFailure>,
}

impl Surroundings {
    pub(super) fn counts(&self) -> [usize; 2] {
        let nodes = self.nodes.objects.as_ref().map_or(0, |nodes| nodes.count().0);
        [nodes, self.proxy_configs.objects.len()]
    }

    /// Takes news of nodes in. Returns warnings.
    pub(super) fn apply_nodes(&mut self, update: Update<Node>) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut insert = |nodes: &mut Nodes, node: &Node| {
            warnings.extend(nodes.insert(name(node), node.kubelet_version()));
        };
        match update {
            Update::Listed(listed) => {
                let mut nodes = Nodes::default();
                for node in &listed {
                    insert(&mut nodes, node);
                }
                self.nodes.know(Some(Arc::new(nodes)));
            }
            Update::Applied(node) => {
                let nodes = self.nodes.objects.get_or_insert_default();
                if nodes.is_news(name(&node), node.kubelet_version()) {
                    insert(Arc::make_mut(nodes), &node);
                    self.nodes.has_changed = true;
                }
            }
            Update::Deleted(node) => {
                let nodes = self.nodes.objects.get_or_insert_default();
                Arc::make_mut(nodes).remove(name(&node));
                self.nodes.has_changed = true;
            }
            Update::Failed(failure) => {
                let without = "without a list of nodes, sidecars are not native where \
                               ENABLE_NATIVE_SIDECARS is auto";
                warnings.extend(self.nodes.fail(failure, "Nodes", without));
            }
        }
        warnings
    }

    /// Takes news of `ProxyConfig`s in. Returns warnings.
    pub(super) fn apply_proxy_configs(&mut self, update: Update<ProxyConfig>) -> Option<String> {
        let known = &mut self.proxy_configs;
        match update {
            Update::Listed(listed) => known.know(listed.into_iter().map(entry).collect()),
            Update::Applied(object) => {
                let (key, object) = entry(object);
                if known.objects.get(&key) != Some(&object) {
                    known.objects.insert(key, object);
                    known.has_changed = true;
                }
            }
            Update::Deleted(object) => {
                known.has_changed |= known.objects.remove(&entry(object).0).is_some();
            }
            // The CRD is not installed. If it was, its objects stay: an API server that starts does
            // not know the kind yet, and objects of a CRD are deleted before it.
            Update::Failed(WatchFailure::Unknown) => known.is_known = true,
            Update::Failed(failure) => {
                let without = "pods are injected without them";
                return known.fail(failure, "ProxyConfigs", without);
            }
        }
        None
    }

    pub(super) fn forget_nodes(&mut self) {
        self.nodes = Kind { has_changed: true, ..Kind::default() };
    }

    pub(super) fn has_changed(&self) -> bool {
        self.nodes.has_changed || self.proxy_configs.has_changed
    }

    /// Whether nodes and `ProxyConfig`s have changed since the last call.
    pub(super) fn take_changes(&mut self) -> (bool, bool) {
        let nodes = mem::take(&mut self.nodes.has_changed);
        (nodes, mem::take(&mut self.proxy_configs.has_changed))
    }

    /// The nodes; `None` if they cannot be read.
    pub(super) fn nodes(&self) -> Option<Arc<Nodes>> {
        self.nodes.objects.clone()
    }

    /// The `ProxyConfig`s, as a release reads them.
    pub(super) fn resources(&self, release: Release) -> Resources {
        Resources::new(self.proxy_configs.objects.values(), release)
    }

    /// Whether everything is known that a configuration needs.
    pub(super) fn is_known(&self, needs_nodes: bool) -> bool {
        self.proxy_configs.is_known && (self.nodes.is_known || !needs_nodes)
    }

    /// What of it is not known.
    pub(super) fn missing(&self, needs_nodes: bool) -> String {
        let missing = |kind: &str, failure: &Option<WatchFailure>| match failure {
            Some(failure) => format!("cannot watch {kind}: {}", in_words(failure)),
            None => format!("{kind} are being listed"),
        };
        if self.proxy_configs.is_known && needs_nodes {
            missing("Nodes", &self.nodes.failure)
        } else {
            missing("ProxyConfigs", &self.proxy_configs.failure)
        }
    }
}

impl<T> Kind<T> {
    fn know(&mut self, objects: T) {
        *self = Self { objects, is_listed: true, is_known: true, has_changed: true, failure: None };
    }

    /// The objects cannot be read. Returns a warning for the first failure of a kind. Objects that
    /// were read before stay in use.
    fn fail(&mut self, failure: WatchFailure, kind: &str, without: &str) -> Option<String> {
        let is_reported = self.failure.as_ref().is_some_and(|known| known.is_like(&failure));
        // Other failures may pass.
        let is_final = !matches!(failure, WatchFailure::Other(_));
        let text = in_words(&failure);
        let effect = if self.is_listed { "the last ones stay in use" } else { without };
        let warning = format!("cannot watch {kind}: {text}; {effect}");
        self.is_known |= is_final;
        self.failure = Some(failure);
        (!is_reported).then_some(warning)
    }
}

fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// A `ProxyConfig` with the fields that [`Resources`] reads.
fn entry(object: ProxyConfig) -> ((String, String), Value) {
    let ProxyConfig { metadata, spec } = object;
    let [namespace, name] = [metadata.namespace, metadata.name].map(Option::unwrap_or_default);
    let created = json!(metadata.creation_timestamp);
    let read = json!({"namespace": namespace, "name": name, "creationTimestamp": created});
    ((namespace, name), json!({"metadata": read, "spec": spec}))
}
