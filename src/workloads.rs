//! Lookup of the workload behind a pod's owner: the other place where a review may wait.

use std::{borrow::Cow, sync::Arc};

use tokio::time::Instant;
use tracing::warn;

use crate::{
    cluster::{LookupError, Owners},
    log,
    objects::{Objects, Owned, Reference},
    outcome::Workload,
    pod::OwnerReference,
};

/// The source of owners.
#[derive(Debug, Clone, Default)]
pub enum Workloads {
    /// Standalone: no source.
    #[default]
    Unknown,
    /// Standalone: the owners of a file.
    Listed(Arc<Objects>),
    /// Standalone: the owners of an incomplete file. The roots of missing owners are derived, as
    /// when the API server does not answer.
    ListedInPart(Arc<Objects>),
    /// The owners of a cluster, looked up when a pod names them.
    Asked(Arc<Owners>),
}

impl Workloads {
    /// Resolves a pod's owner to its root (`metadata_api.go`, `GetOwnerKindAndName`).
    ///
    /// A `ReplicaSet` or `Job` without a known owner is its own root. If nothing is known by
    /// `deadline`, `pod_template_hash` (the pod's label of that name) identifies the `ReplicaSet`
    /// of a Deployment.
    ///
    /// # Errors
    /// When too many reviews wait for the API server.
    pub async fn resolve<'a>(
        &'a self,
        namespace: &str,
        owner: &OwnerReference<'a>,
        pod_template_hash: Option<&str>,
        deadline: Option<Instant>,
    ) -> Result<Workload<'a>, LookupError> {
        let root = match self {
            Self::Unknown => derived(owner, pod_template_hash),
            Self::ListedInPart(objects) if is_missing(objects, namespace, owner) => {
                derived(owner, pod_template_hash)
            }
            Self::Listed(objects) | Self::ListedInPart(objects) => listed_root(
                objects, namespace, owner,
            )
            .map(|Reference { kind, name, object_uid }| Workload {
                kind: Cow::Borrowed(kind),
                name: Cow::Borrowed(name),
                object_uid: Cow::Borrowed(object_uid),
            }),
            Self::Asked(owners) if may_have_owner(&owner.kind) => {
                match owners.lookup(namespace, owner, deadline).await {
                    Ok(object) => object.and_then(|object| root_of(owner, &object).cloned()).map(
                        |Reference { kind, name, object_uid }| Workload {
                            kind: Cow::Owned(kind),
                            name: Cow::Owned(name),
                            object_uid: Cow::Owned(object_uid),
                        },
                    ),
                    Err(error @ LookupError::TooMany) => return Err(error),
                    Err(error) => {
                        let (kind, name) = (&*owner.kind, &*owner.name);
                        let causes = log::with_causes(&error);
                        warn!(error = causes, kind, name, namespace, "cannot look up the owner");
                        // If the API server answers with an error, the owner is its own root, as
                        // upstream.
                        derived(owner, pod_template_hash).filter(|_| error.is_silence())
                    }
                }
            }
            Self::Asked(_) => None,
        };
        let mut workload = root.unwrap_or_else(|| Workload {
            kind: owner.kind.0.clone(),
            name: owner.name.0.clone(),
            object_uid: owner.owner_uid.0.clone(),
        });
        if workload.kind.bytes().any(|byte| byte.is_ascii_uppercase()) {
            workload.kind.to_mut().make_ascii_lowercase();
        }
        Ok(workload)
    }

    /// The kind of a pod's root owner without a request to the API server: from the cache, else
    /// derived from `pod_template_hash`, else the owner's own kind.
    pub async fn known_kind<'a>(
        &'a self,
        namespace: &str,
        owner: &'a OwnerReference<'_>,
        pod_template_hash: Option<&str>,
    ) -> Cow<'a, str> {
        let derived = || derived(owner, pod_template_hash).map(|workload| workload.kind);
        let root = match self {
            _ if !may_have_owner(&owner.kind) => None,
            Self::Unknown => derived(),
            Self::ListedInPart(objects) if is_missing(objects, namespace, owner) => derived(),
            Self::Listed(objects) | Self::ListedInPart(objects) => {
                listed_root(objects, namespace, owner).map(|root| Cow::Borrowed(root.kind.as_str()))
            }
            Self::Asked(owners) => match owners.known(namespace, owner).await {
                Some(object) => root_of(owner, &object).map(|root| Cow::Owned(root.kind.clone())),
                None => derived(),
            },
        };
        root.unwrap_or(Cow::Borrowed(&owner.kind))
    }

    /// Whether an involved object exists; `true` if the source cannot answer that.
    #[must_use]
    pub fn has(&self, namespace: &str, kind: &str, name: &str) -> bool {
        match self {
            Self::Unknown | Self::ListedInPart(_) | Self::Asked(_) => true,
            Self::Listed(objects) => objects.owner(namespace, kind, name).is_some(),
        }
    }
}

/// Whether a file lacks the object that names the root of an owner.
#[must_use]
pub fn is_missing(objects: &Objects, namespace: &str, owner: &OwnerReference<'_>) -> bool {
    may_have_owner(&owner.kind) && listed(objects, namespace, owner).is_none()
}

/// The listed object of an owner that may have an owner itself.
fn listed<'o>(
    objects: &'o Objects,
    namespace: &str,
    owner: &OwnerReference<'_>,
) -> Option<&'o Owned> {
    if !may_have_owner(&owner.kind) {
        return None;
    }
    objects.owner(namespace, &owner.kind, &owner.name).filter(|object| is_same(object, owner))
}

/// The Deployment of a `ReplicaSet` that is named after the Deployment and the pod template's hash.
fn derived<'a>(
    owner: &OwnerReference<'a>,
    pod_template_hash: Option<&str>,
) -> Option<Workload<'a>> {
    let stem =
        owner.name.strip_suffix(pod_template_hash.filter(|_| *owner.kind == *"ReplicaSet")?)?;
    let length = stem.strip_suffix('-').filter(|name| !name.is_empty())?.len();
    let name = match &owner.name.0 {
        Cow::Borrowed(name) => Cow::Borrowed(&name[..length]),
        Cow::Owned(name) => Cow::Owned(name[..length].to_owned()),
    };
    Some(Workload { kind: Cow::Borrowed("deployment"), name, object_uid: Cow::Borrowed("") })
}

/// The kinds whose objects are looked up; their spelling matters
/// (`docs/linkerd/injection.md` §7-9).
fn may_have_owner(kind: &str) -> bool {
    matches!(kind, "ReplicaSet" | "Job")
}

/// The root of a listed owner.
fn listed_root<'o>(
    objects: &'o Objects,
    namespace: &str,
    owner: &OwnerReference<'_>,
) -> Option<&'o Reference> {
    listed(objects, namespace, owner).and_then(|object| root_of(owner, object))
}

/// Whether the object has the claimed uid: the author of a pod may write any uid.
fn is_same(object: &Owned, owner: &OwnerReference<'_>) -> bool {
    object.object_uid.is_empty() || object.object_uid == *owner.owner_uid
}

/// The only owner of an owner; for a `ReplicaSet` only if its kind is known.
fn root_of<'o>(owner: &OwnerReference<'_>, object: &'o Owned) -> Option<&'o Reference> {
    const REPLICA_SET_OWNERS: [&str; 4] = ["Job", "StatefulSet", "DaemonSet", "Deployment"];
    let [root] = object.owners.as_slice() else {
        return None;
    };
    let is_known = |known: &&str| known.eq_ignore_ascii_case(&root.kind);
    let counts = *owner.kind == *"Job" || REPLICA_SET_OWNERS.iter().any(is_known);
    (is_same(object, owner) && counts).then_some(root)
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::ready,
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use bytes::Bytes;
    use http_body_util::Full;
    use hyper::{Request, Response};
    use kube::{Client, client::Body};

    use super::*;
    use crate::{cluster::Lookups, metrics::CacheMetrics};

    fn resolved(workloads: &Workloads, owner: &str, hash: Option<&str>) -> (String, String) {
        let owner: OwnerReference<'_> = crate::json::read(owner).expect("reference");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("runtime");
        let workload = runtime.block_on(workloads.resolve("a", &owner, hash, None));
        let workload = workload.expect("no review waits");
        (workload.kind.into_owned(), workload.name.into_owned())
    }

    fn listed(yaml: &str) -> Workloads {
        Workloads::Listed(Arc::new(Objects::parse(yaml).expect("objects")))
    }

    #[test]
    fn without_a_source_the_hash_identifies_a_deployment() {
        let owner = r#"{"kind":"ReplicaSet","name":"web-5f4"}"#;
        let of = |hash| resolved(&Workloads::Unknown, owner, hash);
        assert_eq!(of(Some("5f4")), ("deployment".to_owned(), "web".to_owned()));
        assert_eq!(of(Some("other")), ("replicaset".to_owned(), "web-5f4".to_owned()));
        assert_eq!(of(None), ("replicaset".to_owned(), "web-5f4".to_owned()));
        let job = r#"{"kind":"Job","name":"web-5f4"}"#;
        assert_eq!(resolved(&Workloads::Unknown, job, Some("5f4")).0, "job");
    }

    #[test]
    fn an_object_with_another_uid_is_not_the_owner() {
        let workloads = listed(
            "kind: ReplicaSet\nmetadata: {name: web-1, namespace: a, uid: right, \
             ownerReferences: [{kind: Deployment, name: web}]}",
        );
        let owner = |uid| format!(r#"{{"kind":"ReplicaSet","name":"web-1","uid":"{uid}"}}"#);
        assert_eq!(resolved(&workloads, &owner("right"), None).0, "deployment");
        assert_eq!(resolved(&workloads, &owner("forged"), None).0, "replicaset");
    }

    #[test]
    fn an_owner_that_a_file_in_part_lacks_is_derived() {
        let objects = Objects::parse(
            "kind: ReplicaSet\nmetadata: {name: web-1, namespace: a, uid: u}\n---\n\
             kind: Job\nmetadata: {name: j, namespace: a}\n",
        );
        let workloads = Workloads::ListedInPart(Arc::new(objects.expect("objects")));
        let of = |owner: &str, hash| resolved(&workloads, owner, hash);
        let is = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
        let listed = r#"{"kind":"ReplicaSet","name":"web-1","uid":"u"}"#;
        let recreated = r#"{"kind":"ReplicaSet","name":"web-1","uid":"older"}"#;
        let missing = r#"{"kind":"ReplicaSet","name":"web-2"}"#;
        assert_eq!(of(listed, Some("1")), is("replicaset", "web-1"));
        assert_eq!(of(recreated, Some("1")), is("deployment", "web"));
        assert_eq!(of(missing, Some("2")), is("deployment", "web"));
        assert_eq!(of(missing, None), is("replicaset", "web-2"));
        assert_eq!(of(r#"{"kind":"Job","name":"other"}"#, None), is("job", "other"));
    }

    #[test]
    fn a_replica_set_has_roots_of_known_kinds_and_a_job_of_any() {
        let workloads = listed(
            "kind: ReplicaSet\nmetadata: {name: r, namespace: a, ownerReferences: [{kind: Rollout, name: x}]}\n\
             ---\nkind: Job\nmetadata: {name: j, namespace: a, ownerReferences: [{kind: CronJob, name: c}]}\n",
        );
        let of = |kind, name| {
            resolved(&workloads, &format!(r#"{{"kind":"{kind}","name":"{name}"}}"#), None)
        };
        assert_eq!(of("ReplicaSet", "r"), ("replicaset".to_owned(), "r".to_owned()));
        assert_eq!(of("Job", "j"), ("cronjob".to_owned(), "c".to_owned()));
        assert_eq!(of("job", "j"), ("job".to_owned(), "j".to_owned()));
    }

    /// Owners of a cluster in which a `CronJob` owns every Job, and the number of requests to it.
    fn cluster() -> (Workloads, Arc<AtomicUsize>) {
        let requests = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&requests);
        let service = tower::service_fn(move |_: Request<Body>| {
            counter.fetch_add(1, Ordering::Relaxed);
            let job = r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{
                "name":"sweep-1","uid":"j","ownerReferences":[{"apiVersion":"batch/v1",
                "kind":"CronJob","name":"sweep","uid":"c"}]}}"#;
            ready(Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(job)))))
        });
        let lookups = Arc::new(Lookups::new(1000, Duration::from_secs(30)));
        let owners = Owners::new(Client::new(service, "a"), lookups, CacheMetrics::default());
        (Workloads::Asked(Arc::new(owners)), requests)
    }

    #[tokio::test]
    async fn the_known_kind_comes_from_the_cache_or_the_label_without_a_request() {
        let (workloads, requests) = cluster();
        let read = |text| -> OwnerReference<'_> { crate::json::read(text).expect("reference") };
        let job = read(r#"{"kind":"Job","name":"sweep-1","uid":"j"}"#);
        let replica_set = read(r#"{"kind":"ReplicaSet","name":"web-5f4","uid":"r"}"#);
        assert_eq!(workloads.known_kind("a", &job, None).await, "Job");
        assert_eq!(workloads.known_kind("a", &replica_set, Some("5f4")).await, "deployment");
        assert_eq!(workloads.known_kind("a", &replica_set, None).await, "ReplicaSet");
        assert_eq!(requests.load(Ordering::Relaxed), 0);
        let resolved = workloads.resolve("a", &job, None, None).await.expect("no review waits");
        assert_eq!((&*resolved.kind, requests.load(Ordering::Relaxed)), ("cronjob", 1));
        assert_eq!(workloads.known_kind("a", &job, None).await, "CronJob");
        assert_eq!(workloads.known_kind("b", &job, None).await, "Job");
        assert_eq!(requests.load(Ordering::Relaxed), 1);
    }
}
