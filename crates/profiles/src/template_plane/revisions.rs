//! Revisions of templates that `ControllerRevision`s keep.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use injectd_cluster::watch::{Update, WatchFailure};
use injectd_templates::{Template, ceiling::Ceiling};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::core::DynamicObject;

use super::{
    known::{HASH_LABEL, KeptRevision, UID_LABEL},
    objects::waiting,
};

/// The revisions of all templates, by the name of their object.
#[derive(Debug, Default)]
pub(super) struct Revisions {
    objects: BTreeMap<String, Arc<KeptRevision>>,
    /// Whether they were listed once, or cannot be listed here.
    is_listed: bool,
    failure: Option<WatchFailure>,
}

impl Revisions {
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn all(&self) -> Vec<Arc<KeptRevision>> {
        self.objects.values().cloned().collect()
    }

    pub(super) fn waits_for(&self) -> Option<String> {
        let what = "the revisions of sidecar templates";
        (!self.is_listed).then(|| waiting(what, self.failure.as_ref()))
    }

    /// Takes news in. The result is a warning.
    pub(super) fn apply(&mut self, update: Update<ControllerRevision>) -> Option<String> {
        let kept = |object: ControllerRevision| {
            let name = object.metadata.name.clone().unwrap_or_default();
            (name, Arc::new(KeptRevision::new(object)))
        };
        match update {
            Update::Listed(all) => {
                let all = all.into_iter().map(kept);
                (self.objects, self.is_listed, self.failure) = (all.collect(), true, None);
            }
            Update::Applied(object) => {
                let (name, object) = kept(object);
                self.objects.insert(name, object);
            }
            Update::Deleted(object) => {
                self.objects.remove(object.metadata.name.as_deref().unwrap_or_default());
            }
            Update::Failed(failure) => {
                let is_new = !self.failure.as_ref().is_some_and(|last| last.is_like(&failure));
                let warning = match &failure {
                    WatchFailure::Unknown => "there are none".to_owned(),
                    WatchFailure::Forbidden(text) | WatchFailure::Other(text) => text.clone(),
                };
                // Any failure that passes may hide the revision that is to be served.
                self.is_listed |= !matches!(failure, WatchFailure::Other(_));
                self.failure = Some(failure);
                return is_new.then(|| {
                    format!(
                        "the ControllerRevisions of sidecar templates cannot be read ({warning}): a template \
                         that is not in order has no last good revision after a start"
                    )
                });
            }
        }
        None
    }

    /// The newest revision of a template that is in order, of those that an object with its uid had: all
    /// replicas serve the same one. What was served last stays until a revision keeps it.
    pub(super) fn last_good(
        &self,
        object: &DynamicObject,
        ceiling: Ceiling,
        last: Option<&Arc<Template>>,
    ) -> Option<Arc<Template>> {
        let uid = object.metadata.uid.as_ref();
        let label = |revision: &ControllerRevision, name: &str| {
            revision.metadata.labels.as_ref()?.get(name).cloned()
        };
        let of_object = |revision: &&Arc<KeptRevision>| {
            uid.is_some() && label(revision, UID_LABEL).as_ref() == uid
        };
        let mut revisions: Vec<_> = self.objects.values().filter(of_object).collect();
        let is_last = |revision: &ControllerRevision| {
            last.is_some_and(|last| label(revision, HASH_LABEL).as_ref() == Some(&last.hash))
        };
        // The leader has not written it yet. An older revision now, and this one again after the
        // write, would be two changes of what pods get.
        if last.is_some() && !revisions.iter().any(|revision| is_last(revision)) {
            return last.cloned();
        }
        // Two writers may have given one number twice: then the revision that is served already is
        // the better one, as nothing changes.
        revisions.sort_by_key(|revision| (Reverse(revision.revision), !is_last(revision)));
        let good = revisions.into_iter().find_map(|revision| {
            if is_last(revision) {
                return last.cloned();
            }
            let data = serde_json::from_str(&revision.data).ok()?;
            let template = Template::read(&data).ok()?;
            let name = (object.metadata.namespace.as_deref(), object.metadata.name.as_deref());
            let identity = &template.identity;
            // The objects are not only injectd's to write: a revision counts only if its content is
            // the template that its labels promise, and is still allowed.
            let is_its = (identity.namespace.as_deref(), Some(&*identity.name)) == name;
            let is_whole = label(revision, HASH_LABEL).as_ref() == Some(&template.hash);
            let is_good = is_its && is_whole && ceiling.problems(&template).is_empty();
            is_good.then(|| Arc::new(template))
        });
        good.or_else(|| last.cloned())
    }
}
