//! The revisions of Istio that a process serves, by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arc_swap::ArcSwap;
use injectd_core::text::first_names;
use injectd_istio::path::Webhook;

use super::{IstioInjector, NoWebhook};

/// The revision that `/inject` prefers, and the name of the one without a name.
pub const DEFAULT_REVISION: &str = "default";

/// Names of revisions in a message; more are counted.
// The message goes to the person who creates a pod. Few clusters have more revisions than two
// during an upgrade.
const MAX_LISTED: usize = 10;

/// Injectors by revision. All are replaced together when a revision comes or goes.
#[derive(Debug, Default)]
pub struct Revisions(ArcSwap<Known>);

#[derive(Debug, Default)]
struct Known {
    served: BTreeMap<String, Arc<IstioInjector>>,
    /// Revisions without a configuration that can be used yet.
    waiting: BTreeSet<String>,
}

impl Revisions {
    /// These revisions.
    #[must_use]
    pub fn new(revisions: impl IntoIterator<Item = (String, Arc<IstioInjector>)>) -> Self {
        let served = revisions.into_iter().collect();
        Self(ArcSwap::from_pointee(Known { served, waiting: BTreeSet::new() }))
    }

    /// Replaces all revisions, and the names of those that are not loaded yet; reviews in flight keep
    /// theirs.
    pub fn replace(&self, served: BTreeMap<String, Arc<IstioInjector>>, waiting: BTreeSet<String>) {
        self.0.store(Arc::new(Known { served, waiting }));
    }

    /// The injector of a revision.
    #[must_use]
    pub fn get(&self, revision: &str) -> Option<Arc<IstioInjector>> {
        self.0.load().served.get(revision).cloned()
    }

    /// The injector of `/inject`: the revision `default`, else the only one.
    #[must_use]
    pub fn of_inject(&self) -> Option<Arc<IstioInjector>> {
        let known = self.0.load();
        let is_only = known.served.len() == 1 && known.waiting.is_empty();
        let only = || known.served.values().next().filter(|_| is_only);
        known.served.get(DEFAULT_REVISION).or_else(only).cloned()
    }

    /// The names of all revisions, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.load().served.keys().cloned().collect()
    }

    /// How many answers all revisions keep.
    pub(super) fn answer_count(&self) -> u64 {
        self.0.load().served.values().map(|injector| injector.mesh().answer_count()).sum()
    }

    /// Why there is no injector for a webhook, and which ones there are.
    pub(super) fn missing(&self, webhook: &Webhook) -> NoWebhook {
        let names = self.names();
        let wanted = match webhook {
            Webhook::Revision(revision) => revision,
            Webhook::Default | Webhook::Other => DEFAULT_REVISION,
        };
        if names.is_empty() || self.0.load().waiting.contains(wanted) {
            return NoWebhook::NotLoaded;
        }
        let listed = first_names(names.iter().map(String::as_str), names.len(), MAX_LISTED);
        let missing = match webhook {
            Webhook::Revision(_) => "this revision is not served",
            Webhook::Default | Webhook::Other => "the revision default is not served",
        };
        let elsewhere = "the webhook is at /istio/REVISION/inject";
        NoWebhook::Revision(format!("{missing}; {elsewhere}; revisions: {listed}"))
    }
}
