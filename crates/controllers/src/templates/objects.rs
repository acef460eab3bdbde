//! Requests for the objects of the keeper, without rules of what to write.

use std::{collections::BTreeSet, time::Duration};

use injectd_cluster::Pages;
use injectd_templates::{
    object::Identity,
    schema::{API_VERSION, GROUP, VERSION},
};
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::ControllerRevision, coordination::v1::Lease};
use kube::{
    Api, Client,
    api::{
        ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
        Preconditions,
    },
    core::GroupVersionKind,
};
use serde_json::json;
use tokio::time::timeout;

use super::{
    FIELD_MANAGER,
    pods::{Pod, PodCounts, selector},
    replicas::{REPLICA, REPLICA_LABEL},
    rim::{Answer, RequestError, Rim},
    write::{Found, Write, kind, plural},
};

/// How long the API server may take; for a page of a list as well.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of replicas that are read.
// A release has a few. Others may give Leases the same label, and must not fill the memory.
const MAX_REPLICAS: u32 = 500;

/// The objects of the keeper, at an API server.
pub(super) struct Objects {
    client: Client,
    leases: Api<Lease>,
    revisions: Api<ControllerRevision>,
}

impl Objects {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), namespace),
            revisions: Api::namespaced(client.clone(), namespace),
            client,
        }
    }

    fn templates(&self, identity: &Identity) -> Api<DynamicObject> {
        let of = GroupVersionKind::gvk(GROUP, VERSION, kind(identity));
        let resource = ApiResource::from_gvk_with_plural(&of, plural(identity));
        match &identity.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn create(&self, revision: &ControllerRevision) -> Result<(), RequestError> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), dry_run: false };
        in_time(self.revisions.create(&params, revision)).await.map(drop)
    }

    async fn renumber(&self, of: &Found, revision: i64) -> Result<(), RequestError> {
        let patch = json!({
            "metadata": {"uid": of.object_uid, "resourceVersion": of.resource_version},
            "revision": revision,
        });
        let patch = Patch::Merge(&patch);
        in_time(self.revisions.patch(&of.name, &params(), &patch)).await.map(drop)
    }

    async fn status(&self, write: &Write) -> Result<(), RequestError> {
        let Write::Status { identity, version, status } = write else { return Ok(()) };
        let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        let (api, patch) = (self.templates(identity), Patch::Merge(&patch));
        in_time(api.patch_status(&identity.name, &params(), &patch)).await.map(drop)
    }
}

impl Rim for Objects {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn write<'a>(&'a self, write: &'a Write) -> Answer<'a, ()> {
        Box::pin(async move {
            match write {
                Write::CreateRevision(revision) => self.create(revision).await,
                Write::RenumberRevision { of, revision } => self.renumber(of, *revision).await,
                Write::DeleteRevision(of) => {
                    in_time(self.revisions.delete(&of.name, &only(of))).await.map(drop)
                }
                Write::Status { .. } => self.status(write).await,
                Write::DeleteLease(of) => {
                    in_time(self.leases.delete(&of.name, &only(of))).await.map(drop)
                }
            }
        })
    }

    fn leases(&self) -> Answer<'_, Vec<Lease>> {
        let of_replicas = format!("{REPLICA_LABEL}={REPLICA}");
        let params = ListParams::default().labels(&of_replicas).limit(MAX_REPLICAS);
        Box::pin(async move { Ok(in_time(self.leases.list(&params)).await?.items) })
    }

    fn write_lease<'a>(&'a self, lease: &'a Lease) -> Answer<'a, ()> {
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        // The Lease is this replica's own: what others write into its fields does not count.
        let params = PatchParams::apply(FIELD_MANAGER).force();
        Box::pin(async move {
            in_time(self.leases.patch(name, &params, &Patch::Apply(lease))).await.map(drop)
        })
    }

    fn remove_lease<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            in_time(self.leases.delete(name, &DeleteParams::default())).await.map(drop)
        })
    }

    fn count_pods(&self, known: BTreeSet<Identity>) -> Answer<'static, PodCounts> {
        let client = self.client.clone();
        Box::pin(async move {
            let mut counts = PodCounts::default();
            let mut pages = Pages::new(&client, "/api/v1/pods").selected_by(&selector());
            while let Some(page) = in_time(pages.next::<Pod>()).await? {
                counts.add(&known, &page.items);
            }
            Ok(counts)
        })
    }

    fn kinds(&self) -> Answer<'_, BTreeSet<String>> {
        Box::pin(async move {
            match in_time(self.client.list_api_group_resources(API_VERSION)).await {
                Ok(list) => Ok(list.resources.into_iter().map(|resource| resource.kind).collect()),
                Err(error) if error.is_gone() => Ok(BTreeSet::new()),
                Err(error) => Err(error),
            }
        })
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Removes an object only as it was read.
fn only(of: &Found) -> DeleteParams {
    let preconditions = Preconditions {
        uid: Some(of.object_uid.clone()),
        resource_version: Some(of.resource_version.clone()),
    };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, RequestError> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RequestError::Timeout),
    }
}
