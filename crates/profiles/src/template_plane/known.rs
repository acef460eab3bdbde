//! What a replica knows of the templates of its cluster, for all who ask.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use injectd_cluster::digest::digest;
use injectd_templates::{Problem, Template, object::Identity};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::core::DynamicObject;

use super::objects::remove_copies;

/// Labels of a `ControllerRevision`: the kind of its template, its namespace (none for a
/// `ClusterSidecarTemplate`), its name, its uid, and the hash of the revision.
pub const KIND_LABEL: &str = "injectd.dev/template-kind";
/// See [`KIND_LABEL`].
pub const NAMESPACE_LABEL: &str = "injectd.dev/template-namespace";
/// See [`KIND_LABEL`].
pub const NAME_LABEL: &str = "injectd.dev/template-name";
/// See [`KIND_LABEL`].
pub const UID_LABEL: &str = "injectd.dev/template-uid";
/// See [`KIND_LABEL`].
pub const HASH_LABEL: &str = "injectd.dev/template-hash";

/// What a replica knows of the templates of its cluster, and what it serves.
#[derive(Debug, Clone, Default)]
pub struct KnownTemplates {
    /// Templates by their name. Those whose object is gone are not there, but for orphans.
    pub templates: BTreeMap<Identity, KnownTemplate>,
    /// Revisions that `ControllerRevision`s keep, in no order.
    pub revisions: Vec<Arc<KeptRevision>>,
    /// Whether templates of both kinds and revisions were listed at least once.
    pub is_listed: bool,
}

/// A revision that a `ControllerRevision` keeps. A template may have many, and their data are large: a tree
/// of them takes ten times the memory of the text.
#[derive(Debug, Clone)]
pub struct KeptRevision {
    /// The object without its data.
    object: ControllerRevision,
    /// Its data in JSON, with sorted keys; empty if it has none.
    pub data: Box<str>,
}

impl KeptRevision {
    /// What is kept of an object.
    #[must_use]
    pub fn new(mut object: ControllerRevision) -> Self {
        remove_copies(&mut object.metadata);
        let data = object.data.take().map(|data| {
            let mut data = data.0;
            // Revisions are compared as texts, and the order of an object's members depends on the
            // program that wrote it.
            data.sort_all_objects();
            data.to_string().into()
        });
        Self { object, data: data.unwrap_or_default() }
    }
}

impl Deref for KeptRevision {
    type Target = ControllerRevision;

    /// The object without its data.
    fn deref(&self) -> &ControllerRevision {
        &self.object
    }
}

/// A template of a cluster.
#[derive(Debug, Clone)]
pub struct KnownTemplate {
    /// The object, with its status.
    pub object: Arc<DynamicObject>,
    /// The object as it is read: a template in order, or everything that is wrong with it.
    pub read: Result<Arc<Template>, Arc<[Problem]>>,
    /// The revision that this replica serves: the newest one in order; `None` if there is none.
    pub served: Option<Arc<Template>>,
    /// Whether the object is gone because its definition was deleted: it is served on, and has no status.
    pub is_orphan: bool,
    /// Whether `read` is about the object; else it is read again.
    pub(super) is_read: bool,
}

impl KnownTemplate {
    /// What is known of an object.
    #[must_use]
    pub fn new(
        object: Arc<DynamicObject>,
        read: Result<Arc<Template>, Arc<[Problem]>>,
        served: Option<Arc<Template>>,
    ) -> Self {
        Self { object, read, served, is_orphan: false, is_read: true }
    }
}

impl KnownTemplates {
    /// The revisions that are served, in no order.
    pub fn served(&self) -> impl Iterator<Item = &Arc<Template>> {
        self.templates.values().filter_map(|template| template.served.as_ref())
    }

    /// A digest of what is served: replicas with the same digest serve the same revisions.
    #[must_use]
    pub fn digest(&self) -> String {
        let served = self.templates.iter().filter_map(|(identity, template)| {
            Some(format!("{identity}={}", template.served.as_ref()?.hash))
        });
        let served: Vec<_> = served.collect();
        digest(served.iter().map(String::as_str))
    }
}
