//! The owner of the pod under review: injected pods have it in a label, Linkerd's counters in a
//! metric label.

use std::borrow::Cow;

use tokio::time::Instant;

use super::{Injector, ReviewError};
use crate::{
    outcome::Workload,
    pod::{Kind, Object, POD_TEMPLATE_HASH},
    review::Request,
};

impl Injector {
    /// The workload for the labels of an injected pod.
    pub(super) async fn workload_of<'a>(
        &'a self,
        request: &Request<'a>,
        object: &Object<'a>,
        deadline: Option<Instant>,
    ) -> Result<Option<Workload<'a>>, ReviewError> {
        if request.kind != Kind::Pod {
            let kind = Cow::Borrowed(request.kind.as_str());
            let name = object.metadata.name.0.clone();
            return Ok(Some(Workload { kind, name, object_uid: Cow::Borrowed("") }));
        }
        let Some(owner) = object.metadata.owner() else { return Ok(None) };
        let hash = object.metadata.labels.get(POD_TEMPLATE_HASH);
        let workload = self.workloads.resolve(&request.namespace, owner, hash, deadline).await;
        workload.map(Some).map_err(|error| ReviewError::Owner(owner.name.to_string(), error))
    }

    /// The owner's kind in the counters for a pod that is not injected, without a request to the
    /// API server.
    pub(super) async fn kind_of_skipped_owner<'a>(
        &'a self,
        request: &Request<'a>,
        object: &Object<'a>,
        known: Option<&Workload<'a>>,
    ) -> &'static str {
        if let Some(workload) = known {
            return owner_kind(&workload.kind);
        }
        let Some(owner) = object.metadata.owner() else { return Kind::Pod.as_str() };
        let hash = object.metadata.labels.get(POD_TEMPLATE_HASH);
        owner_kind(&self.workloads.known_kind(&request.namespace, owner, hash).await)
    }
}

/// The kind of an owner if that kind owns pods, else an empty text.
pub(super) fn owner_kind(kind: &str) -> &'static str {
    match Kind::of(kind) {
        kind @ (Kind::Workload(_) | Kind::CronJob) => kind.as_str(),
        Kind::Pod | Kind::Service | Kind::Other => "",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use crate::{
        injector::{CallerFacts, Injector},
        linkerd::{
            snapshot::{Config, Snapshot},
            values::DEFAULT_VALUES,
        },
        namespaces::Namespaces,
        objects::Objects,
        outcome::{Verdict, Workload},
        review,
        workloads::Workloads,
    };

    const OBJECTS: &str = "
kind: Job
metadata: {name: sweep-1, namespace: a, ownerReferences: [{kind: CronJob, name: sweep}]}
---
kind: ReplicaSet
metadata: {name: web-1, namespace: a, ownerReferences: [{kind: Deployment, name: web}]}
";

    fn counted(workloads: Workloads, owners: &str, known: Option<&'static str>) -> &'static str {
        let config = Config {
            values: DEFAULT_VALUES,
            trust_roots: b"roots",
            control_plane_namespace: "linkerd",
            fallback_release: None,
        };
        let snapshot = Snapshot::new(config, 1).expect("values");
        let injector = Injector::new(snapshot, Namespaces::Every([].into()), workloads);
        let body = format!(
            r#"{{"request":{{"uid":"u","namespace":"a","object":{{"kind":"Pod","metadata":{{
            "labels":{{"pod-template-hash":"1"}},"ownerReferences":[{owners}]}},"spec":{{}}}}}}}}"#
        );
        let request = review::decode(body.as_bytes()).expect("a review");
        let workload = known.map(|kind| Workload {
            kind: kind.into(),
            name: "x".into(),
            object_uid: "".into(),
        });
        let facts = CallerFacts { workload, ..CallerFacts::default() };
        let mut patch = review::patch_buffer();
        let outcome = injector.answer(&request, facts, &mut patch).now_or_never();
        let outcome = outcome.expect("must not wait").expect("an outcome");
        assert_eq!(outcome.verdict, Verdict::Skipped);
        outcome.owner_kind
    }

    #[test]
    fn a_skipped_pod_counts_for_its_root_owner() {
        let listed = || Workloads::Listed(Arc::new(Objects::parse(OBJECTS).expect("objects")));
        let job = r#"{"kind":"Job","name":"sweep-1"}"#;
        let replica_set = r#"{"kind":"ReplicaSet","name":"web-1"}"#;
        for (workloads, owners, kind) in [
            (listed(), job, "cronjob"),
            (listed(), replica_set, "deployment"),
            (Workloads::Unknown, replica_set, "deployment"),
            (Workloads::Unknown, job, "job"),
            (Workloads::Unknown, r#"{"kind":"DaemonSet","name":"d"}"#, "daemonset"),
            (Workloads::Unknown, r#"{"kind":"Rollout","name":"r"}"#, ""),
            (Workloads::Unknown, &format!("{job},{replica_set}"), "pod"),
            (Workloads::Unknown, "", "pod"),
        ] {
            assert_eq!(counted(workloads, owners, None), kind, "{owners}");
        }
        assert_eq!(counted(Workloads::Unknown, job, Some("cronjob")), "cronjob");
    }
}
