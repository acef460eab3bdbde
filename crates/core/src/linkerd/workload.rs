//! The root owner of a pod. Its name becomes a label of the pod, and its kind a label of Linkerd's
//! counters (`metadata_api.go`, `GetOwnerKindAndName`).

use std::{borrow::Cow, time::Instant};

use injectd_k8s::workload::deployment_of;
use tracing::warn;

use crate::{
    causes::with_causes,
    lookups::{LookupError, Lookups, ObjectError, OwnerObject, Reference},
    object::OwnerReference,
    outcome::Workload,
};

/// A pod's owner, with the facts that identify its root.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'o, 'a> {
    /// The pod's namespace.
    pub namespace: &'o str,
    /// The pod's reference to it.
    pub reference: &'o OwnerReference<'a>,
    /// The pod's label `pod-template-hash`.
    pub pod_template_hash: Option<&'o str>,
}

impl<'o, 'a> Owner<'o, 'a> {
    /// Resolves the owner to its root.
    ///
    /// A `ReplicaSet` or `Job` without a known owner is its own root. If no answer comes by `deadline`, the
    /// Deployment of a `ReplicaSet` is derived from the pod template's hash.
    ///
    /// # Errors
    /// When too many reviews wait for the API server.
    pub async fn resolve(
        self,
        lookups: &impl Lookups,
        deadline: Option<Instant>,
    ) -> Result<Workload<'a>, ObjectError> {
        let Self { namespace, reference, .. } = self;
        let found = if may_have_owner(&reference.kind) {
            lookups.owner(namespace, reference, deadline).await
        } else {
            Ok(None)
        };
        let root = match found {
            Ok(object) => object.and_then(|object| root_of(reference, &object).cloned()).map(
                |Reference { kind, name, object_uid, .. }| Workload {
                    kind: Cow::Owned(kind),
                    name: Cow::Owned(name),
                    object_uid: Cow::Owned(object_uid),
                },
            ),
            // The caller retries. A derived owner would make the pod's label depend on the load.
            Err(source @ LookupError::TooMany) => {
                let name = reference.name.to_string();
                return Err(ObjectError { what: "owner", name, source });
            }
            Err(error) => {
                self.log(&error);
                // If the API server answers with an error, the owner is its own root, as upstream.
                self.derived().filter(|_| error.is_silence())
            }
        };
        let mut workload = root.unwrap_or_else(|| Workload {
            kind: reference.kind.0.clone(),
            name: reference.name.0.clone(),
            object_uid: reference.owner_uid.0.clone(),
        });
        // Most kinds are in lower case already, and need no copy.
        if workload.kind.bytes().any(|byte| byte.is_ascii_uppercase()) {
            workload.kind.to_mut().make_ascii_lowercase();
        }
        Ok(workload)
    }

    /// The kind of the root without a request to the API server: from memory, else derived from the
    /// pod template's hash, else the owner's own kind.
    pub async fn known_kind(self, lookups: &impl Lookups) -> Cow<'o, str> {
        let Self { namespace, reference, .. } = self;
        let own = Cow::Borrowed(&*reference.kind.0);
        if !may_have_owner(&reference.kind) {
            return own;
        }
        match lookups.owner_in_memory(namespace, reference).await {
            Ok(object) => {
                let object = object.as_deref();
                let root = object.and_then(|object| root_of(reference, object));
                root.map_or(own, |root| Cow::Owned(root.kind.clone()))
            }
            Err(_) => self.derived().map_or(own, |_| Cow::Borrowed("deployment")),
        }
    }

    /// The Deployment of a `ReplicaSet` that is named after the Deployment and the pod template's
    /// hash.
    fn derived(self) -> Option<Workload<'a>> {
        let Self { reference, pod_template_hash, .. } = self;
        let hash = pod_template_hash.filter(|_| *reference.kind == *"ReplicaSet")?;
        // A part of the text of the review needs no copy.
        let length = deployment_of(&reference.name, hash)?.len();
        let name = match &reference.name.0 {
            Cow::Borrowed(name) => Cow::Borrowed(&name[..length]),
            Cow::Owned(name) => Cow::Owned(name[..length].to_owned()),
        };
        Some(Workload { kind: Cow::Borrowed("deployment"), name, object_uid: Cow::Borrowed("") })
    }

    fn log(self, error: &LookupError) {
        if matches!(error, LookupError::NotInMemory) {
            return;
        }
        let (kind, name) = (&*self.reference.kind, &*self.reference.name);
        let (error, namespace) = (with_causes(error), self.namespace);
        warn!(error, kind, name, namespace, "cannot look up the owner");
    }
}

/// Whether objects of a kind are looked up; its spelling matters
/// (`docs/spec/linkerd/injection.md` §7-9).
#[must_use]
pub fn may_have_owner(kind: &str) -> bool {
    matches!(kind, "ReplicaSet" | "Job")
}

/// The only owner of an owner; for a `ReplicaSet` only if its kind is known.
fn root_of<'o>(owner: &OwnerReference<'_>, object: &'o OwnerObject) -> Option<&'o Reference> {
    const REPLICA_SET_OWNERS: [&str; 4] = ["Job", "StatefulSet", "DaemonSet", "Deployment"];
    let [root] = object.owners.as_slice() else {
        return None;
    };
    let is_known = |known: &&str| known.eq_ignore_ascii_case(&root.kind);
    let counts = *owner.kind == *"Job" || REPLICA_SET_OWNERS.iter().any(is_known);
    (object.has_claimed_uid(owner) && counts).then_some(root)
}
