//! The objects of one kind of template.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use injectd_cluster::watch::{Update, WatchFailure};
use injectd_templates::{object::Identity, schema};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{Definition, Kind};

/// How many templates are served at most. A compiled template takes some times its text.
// The API server bounds neither number. A namespace may have few of a kind, so that the users of
// one namespace cannot take the places of all others.
pub(super) const AT_MOST: Maximum = Maximum { of_kind: 1_000, of_namespace: 50 };

/// Maximum numbers of templates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maximum {
    /// Of each kind.
    of_kind: usize,
    /// Of each namespace.
    of_namespace: usize,
}

impl fmt::Display for Maximum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of_kind, of_namespace } = self;
        write!(
            f,
            "there are too many templates: the oldest {of_kind} of each kind and {of_namespace} of each \
             namespace are served; delete templates that are not used"
        )
    }
}

/// The objects of one kind.
#[derive(Debug, Default)]
pub(super) struct Objects {
    by_name: BTreeMap<Identity, Arc<DynamicObject>>,
    /// Whether they were listed once, or the API server does not have the kind.
    is_listed: bool,
    /// Why they cannot be read now.
    failure: Option<WatchFailure>,
    /// The uid of the definition.
    definition: Option<String>,
}

/// What a change is about.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) there: Vec<Identity>,
    pub(super) gone: Vec<Identity>,
}

impl Objects {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn get(&self, identity: &Identity) -> Option<Arc<DynamicObject>> {
        self.by_name.get(identity).cloned()
    }

    /// Whether the API server does not have the kind.
    pub(super) fn is_unknown(&self) -> bool {
        self.failure == Some(WatchFailure::Unknown)
    }

    pub(super) fn waits_for(&self, kind: &str) -> Option<String> {
        let what = format!("the objects of kind {kind}");
        (!self.is_listed).then(|| waiting(&what, self.failure.as_ref()))
    }

    /// Whether a definition is the one from before.
    pub(super) fn is_defined_by(&mut self, definition: &Definition) -> bool {
        // The uid stays while the definition is gone: only by it a definition that is back is known
        // as another one.
        let Definition::There(uid) = definition else { return false };
        let before = self.definition.replace(uid.clone());
        // A definition that was not known before is taken for the same one: the first deletion of a
        // template after a start is a deletion.
        before.is_none_or(|before| before == *uid)
    }

    pub(super) fn apply(&mut self, kind: Kind, update: Update<DynamicObject>) -> News {
        let mut news = News::default();
        match update {
            Update::Listed(all) => {
                // A list is the whole truth: what it leaves out was deleted while the watch was
                // broken.
                (self.is_listed, self.failure) = (true, None);
                let mut before: BTreeSet<_> = self.by_name.keys().cloned().collect();
                for object in all {
                    let identity = identity(kind, &object);
                    before.remove(&identity);
                    self.put(identity, object, &mut news);
                }
                self.by_name.retain(|identity, _| !before.contains(identity));
                news.gone.extend(before);
            }
            Update::Applied(object) => self.put(identity(kind, &object), object, &mut news),
            Update::Deleted(object) => {
                let identity = identity(kind, &object);
                if self.by_name.remove(&identity).is_some() {
                    news.gone.push(identity);
                }
            }
            Update::Failed(failure) => {
                // A cluster without the definition has no such template, and a server that waited
                // for them would never become ready. Any other failure may hide templates, so
                // readiness waits.
                self.is_listed |= failure == WatchFailure::Unknown;
                if failure == WatchFailure::Unknown {
                    news.gone.extend(std::mem::take(&mut self.by_name).into_keys());
                }
                self.failure = Some(failure);
            }
        }
        news
    }

    fn put(&mut self, identity: Identity, mut object: DynamicObject, news: &mut News) {
        remove_copies(&mut object.metadata);
        news.there.push(identity.clone());
        self.by_name.insert(identity, Arc::new(object));
    }

    /// Templates beyond the maximum, the youngest.
    pub(super) fn beyond(&self) -> Vec<Identity> {
        let Maximum { of_kind, of_namespace } = AT_MOST;
        // The limit of a namespace is the lower one, so fewer templates than that cannot be beyond
        // either. Most clusters leave here, without a sort at each change.
        if self.by_name.len() <= of_namespace {
            return Vec::new();
        }
        let mut all: Vec<_> = self.by_name.iter().collect();
        // The oldest ones are served: a template that was just created cannot push out one whose
        // pods run. The name decides among equal times, so that all replicas choose the same ones.
        all.sort_by_key(|(identity, object)| {
            (object.metadata.creation_timestamp.as_ref().map(|time| time.0), *identity)
        });
        let mut of_each: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        let mut served = 0;
        let mut beyond = Vec::new();
        for (identity, _) in all {
            let namespace = identity.namespace.as_deref();
            let of_this = of_each.entry(namespace).or_default();
            if served == of_kind || (namespace.is_some() && *of_this == of_namespace) {
                beyond.push(identity.clone());
                continue;
            }
            served += 1;
            *of_this += 1;
        }
        beyond
    }
}

/// Why objects that were not listed yet are waited for.
pub(super) fn waiting(what: &str, failure: Option<&WatchFailure>) -> String {
    match failure {
        Some(WatchFailure::Forbidden(text) | WatchFailure::Other(text)) => {
            format!("{what} cannot be read: {text}")
        }
        Some(WatchFailure::Unknown) | None => format!("waiting for {what}"),
    }
}

/// The annotation in which kubectl keeps the object as it was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Removes what nothing here reads and what grows with the object: who wrote which field, and kubectl's copy.
pub(super) fn remove_copies(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    metadata.annotations.as_mut().and_then(|annotations| annotations.remove(LAST_APPLIED));
}

fn identity(kind: Kind, object: &DynamicObject) -> Identity {
    // An identity without a namespace is one of a cluster's template; a namespace in such an object
    // would mix up the kinds.
    let namespace = object.metadata.namespace.clone().filter(|_| kind == Kind::Namespaced);
    Identity { namespace, name: object.metadata.name.clone().unwrap_or_default() }
}

/// A template as its author wrote it: without what the API server and injectd add.
pub(super) fn as_written(object: &DynamicObject) -> Value {
    let kind = if object.metadata.namespace.is_none() { Kind::Cluster } else { Kind::Namespaced };
    let metadata = match &object.metadata.namespace {
        Some(namespace) => json!({"name": object.metadata.name, "namespace": namespace}),
        None => json!({"name": object.metadata.name}),
    };
    json!({
        "apiVersion": schema::API_VERSION,
        "kind": kind.as_str(),
        "metadata": metadata,
        "spec": object.data.get("spec"),
    })
}
