//! What restarts read from the API server and write to it.

use std::sync::Arc;

use injectd_cluster::Pages;
use injectd_k8s::workload::Workload;
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1, core::v1::Namespace};
use kube::{
    Api, Client, Resource,
    api::{ObjectMeta, PartialObjectMeta, Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    budget::{self, Budget},
    decision::time,
    finding::{MAX_REPLICA_SETS, ReplicaSet},
    namespace::NamespaceSettings,
    rim::{Answer, MAX_BUDGETS, Mark, RequestError, Rim, TIMEOUT},
    workload::{
        self, FIELD_MANAGER, Observed, RESTARTED_AT_ANNOTATION, RESTARTED_FOR_ANNOTATION,
        RolloutKind,
    },
};

/// The API server of a cluster.
pub(super) struct ApiServer {
    client: Client,
}

impl ApiServer {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    fn api(&self, kind: RolloutKind, namespace: &str) -> Api<workload::Object> {
        Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
    }
}

impl Rim for ApiServer {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn settings<'a>(&'a self, namespace: &'a str) -> Answer<'a, NamespaceSettings> {
        Box::pin(async move {
            let api: Api<Namespace> = Api::all(self.client.clone());
            let found = in_time(api.get_metadata_opt(namespace)).await?;
            let annotations =
                found.and_then(|namespace| namespace.metadata.annotations).unwrap_or_default();
            Ok(NamespaceSettings::new(&annotations))
        })
    }

    fn budgets<'a>(&'a self, namespace: &'a str) -> Answer<'a, Arc<[Budget]>> {
        Box::pin(async move {
            let api: Api<budget::Object> =
                Api::namespaced_with(self.client.clone(), namespace, &Budget::resource());
            let mut budgets = Vec::new();
            pages(&self.client, &api, |object| {
                budgets.push(Budget::of(object));
                if budgets.len() > MAX_BUDGETS { Err(RequestError::TooMany) } else { Ok(()) }
            })
            .await?;
            Ok(budgets.into())
        })
    }

    fn workload<'a>(&'a self, workload: &'a Workload) -> Answer<'a, Option<Observed>> {
        Box::pin(async move {
            let Some(kind) = RolloutKind::of(workload) else { return Ok(None) };
            let api = self.api(kind, &workload.namespace);
            let found = in_time(api.get_opt(&workload.name)).await?;
            Ok(found.map(|object| Observed::new(kind, object)))
        })
    }

    fn is_owner<'a>(
        &'a self,
        workload: &'a Workload,
        uid: &'a str,
        named: &'a [ReplicaSet],
    ) -> Answer<'a, bool> {
        Box::pin(async move {
            let api: Api<v1::ReplicaSet> =
                Api::namespaced(self.client.clone(), &workload.namespace);
            for ReplicaSet { name, uid: own_uid } in named.iter().take(MAX_REPLICA_SETS) {
                let found = in_time(api.get_metadata_opt(name)).await?;
                let is_of_workload = |replica_set: &PartialObjectMeta<v1::ReplicaSet>| {
                    replica_set.metadata.uid.as_ref() == Some(own_uid)
                        && is_controlled(&replica_set.metadata, workload, uid)
                };
                if found.as_ref().is_some_and(is_of_workload) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn unfinished(&self, since: Timestamp) -> Answer<'_, Vec<(Workload, Observed)>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for kind in RolloutKind::ALL {
                let api = Api::all_with(self.client.clone(), &kind.resource());
                pages(&self.client, &api, |object: workload::Object| {
                    let workload = Workload {
                        api_version: RolloutKind::API_VERSION.to_owned(),
                        kind: kind.as_str().to_owned(),
                        namespace: object.metadata.namespace.clone().unwrap_or_default(),
                        name: object.metadata.name.clone().unwrap_or_default(),
                        uid: object.metadata.uid.clone(),
                    };
                    let observed = Observed::new(kind, object);
                    if observed.unfinished_since(since).is_some() {
                        found.push((workload, observed));
                    }
                    Ok(())
                })
                .await?;
            }
            Ok(found)
        })
    }

    fn restart<'a>(&'a self, workload: &'a Workload, mark: Mark<'a>) -> Answer<'a, ()> {
        Box::pin(async move {
            let Some(kind) = RolloutKind::of(workload) else { return Err(RequestError::Changed) };
            let patch = Patch::Merge(restart_patch(mark));
            let field_manager = Some(FIELD_MANAGER.to_owned());
            let params = PatchParams { field_manager, ..PatchParams::default() };
            let api = self.api(kind, &workload.namespace);
            match in_time(api.patch_metadata(&workload.name, &params, &patch)).await {
                Err(RequestError::Failed(error)) if matches!(&*error, kube::Error::Api(status) if matches!(status.code, 404 | 409)) => {
                    Err(RequestError::Changed)
                }
                answer => answer.map(drop),
            }
        })
    }
}

fn restart_patch(mark: Mark<'_>) -> Value {
    let Mark { observed, at, digest } = mark;
    let mut annotations = json!({RESTARTED_AT_ANNOTATION: time(at).to_string()});
    if let Some(digest) = digest {
        annotations[RESTARTED_FOR_ANNOTATION] = digest.into();
    }
    json!({
        // With these two the API server refuses the patch if the workload has changed since it was
        // judged, or is another one of the same name.
        "metadata": {"uid": observed.uid, "resourceVersion": observed.resource_version},
        "spec": {"template": {"metadata": {"annotations": annotations}}},
    })
}

/// Whether an object is controlled by the workload with this uid.
fn is_controlled(metadata: &ObjectMeta, workload: &Workload, uid: &str) -> bool {
    let owners = metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.any(|owner| {
        (&owner.api_version, &owner.kind) == (&workload.api_version, &workload.kind)
            && (&*owner.name, &*owner.uid) == (&*workload.name, uid)
    })
}

/// Reads all pages of a list, until an object is an error.
async fn pages<K>(
    client: &Client,
    api: &Api<K>,
    mut each: impl FnMut(K) -> Result<(), RequestError>,
) -> Result<(), RequestError>
where
    K: Resource + Clone + DeserializeOwned,
{
    let mut pages = Pages::new(client, api.resource_url());
    while let Some(page) = in_time(pages.next()).await? {
        page.items.into_iter().try_for_each(&mut each)?;
    }
    Ok(())
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, RequestError> {
    match timeout(TIMEOUT, request).await {
        Ok(answer) => answer.map_err(|error| RequestError::Failed(Box::new(error))),
        Err(_) => Err(RequestError::Timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_changes_the_annotation_of_the_version_that_was_read() {
        let observed =
            Observed { uid: "u".into(), resource_version: "7".into(), ..Observed::default() };
        let at = "2026-11-29T12:00:00.25Z".parse().expect("a time");
        let patch = restart_patch(Mark { observed: &observed, at, digest: None }).to_string();
        let expected = concat!(
            r#"{"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"template":{"metadata":"#,
            r#"{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-29T12:00:00Z"}}}}}"#,
        );
        assert_eq!(patch, expected);
    }

    #[test]
    fn a_restart_says_what_it_is_for() {
        let at = "2026-11-29T12:00:00Z".parse().expect("a time");
        let observed = Observed::default();
        let patch = restart_patch(Mark { observed: &observed, at, digest: Some("d") });
        let annotations = &patch["spec"]["template"]["metadata"]["annotations"];
        let expected = json!({
            "kubectl.kubernetes.io/restartedAt": "2026-11-29T12:00:00Z",
            "injectd.dev/restarted-for": "d",
        });
        assert_eq!(annotations, &expected);
    }

    #[test]
    fn only_its_controller_with_the_same_uid_controls_an_object() {
        let of = |owner: Value| {
            let metadata = json!({"ownerReferences": [owner]});
            let metadata = serde_json::from_value(metadata).expect("metadata");
            let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "namespace": "shop", "name": "web"});
            is_controlled(&metadata, &serde_json::from_value(workload).expect("a workload"), "u")
        };
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
            "uid": "u", "controller": true});
        assert!(of(owner.clone()));
        for (field, value) in [
            ("apiVersion", json!("example.com/v1")),
            ("kind", json!("StatefulSet")),
            ("name", json!("db")),
            ("uid", json!("other")),
            ("controller", json!(false)),
        ] {
            let mut other = owner.clone();
            other[field] = value;
            assert!(!of(other), "{field}");
        }
    }
}
