//! What a replica of the model knows and serves: it follows the watches of templates and of revisions, which
//! may be late.

use std::time::Instant;

use injectd_cluster::watch::{Update, WatchFailure};
use injectd_profiles::template_plane::{
    Kind, KnownTemplate, KnownTemplates, TemplateChange, TemplatePlane,
};
use injectd_templates::ceiling::Ceiling;

use super::store::Store;

/// What a replica knows.
pub(crate) struct Plane {
    state: TemplatePlane,
    is_begun: bool,
    known: KnownTemplates,
}

impl Default for Plane {
    fn default() -> Self {
        let state = TemplatePlane::new(Ceiling::Privileged);
        Self { state, is_begun: false, known: KnownTemplates::default() }
    }
}

impl Plane {
    pub(crate) fn see_templates(&mut self, store: &Store, now: Instant) {
        for kind in Kind::ALL {
            let update = match store.templates(kind) {
                Some(templates) => Update::Listed(templates),
                None => Update::Failed(WatchFailure::Unknown),
            };
            self.state.apply(TemplateChange::Templates(kind, update));
        }
        self.settle(store, now);
    }

    pub(crate) fn see_revisions(&mut self, store: &Store, now: Instant) {
        self.state.apply(TemplateChange::Revisions(Update::Listed(store.revisions())));
        self.settle(store, now);
    }

    pub(crate) fn known(&self) -> &KnownTemplates {
        &self.known
    }

    fn settle(&mut self, store: &Store, now: Instant) {
        let asked = if self.is_begun { self.state.asks_definitions() } else { Kind::ALL.to_vec() };
        self.is_begun = true;
        for kind in asked {
            self.state.define(kind, &store.definition(kind), now);
        }
        self.state.settle(now);
        drop(self.state.take_notes());
        self.known = KnownTemplates::clone(&self.state.known());
    }
}

/// The uid of a template.
pub(crate) fn uid(template: &KnownTemplate) -> String {
    template.object.metadata.uid.clone().unwrap_or_default()
}
