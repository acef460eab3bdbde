//! Watches of the Secret and of the webhook configurations, and requests for them: without rules of what to
//! write.

use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::{BoxFuture, join, join_all};
use injectd_cluster::{
    creator,
    watch::{KindMetrics, Watched, follow},
};
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{sync::mpsc, time::timeout};

use super::{
    FIELD_MANAGER,
    rim::{Answer, Bundle, RequestError, Rim},
    state::Data,
    view::Found,
};

/// How long the API server may take.
// A leader that cannot renew its Lease for as long stops: a later write would come from a replica
// which leads no more.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The objects of a Service's certificates, at an API server.
pub(super) struct Objects {
    secrets: Api<Secret>,
    webhooks: Api<MutatingWebhookConfiguration>,
    secret: String,
    /// Field manager of a Secret that is created: another replica's is not replaced.
    creator: String,
}

impl Objects {
    pub(super) fn new(client: Client, namespace: &str, secret: &str, identity: &str) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            webhooks: Api::all(client),
            secret: secret.to_owned(),
            creator: creator(identity),
        }
    }
}

impl Rim for Objects {
    fn now(&self) -> i64 {
        let since = UNIX_EPOCH.elapsed().unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }

    fn watch(
        &self,
        configurations: &[String],
        metrics: &KindMetrics,
        sender: &mpsc::Sender<Found>,
    ) -> BoxFuture<'static, ()> {
        let named = |name: &str| Watched {
            name: Some(name.to_owned()),
            page_size: 1,
            ..Watched::default()
        };
        let (secrets, watched) = (self.secrets.clone(), named(&self.secret));
        let secret = follow(secrets, watched, metrics.clone(), sender.clone(), Found::Secret);
        let configurations = configurations.iter().map(|name| {
            let of = name.clone();
            let change = move |update| Found::Webhooks(of.clone(), update);
            follow(self.webhooks.clone(), named(name), metrics.clone(), sender.clone(), change)
        });
        let configurations = join_all(configurations);
        Box::pin(async move {
            join(secret, configurations).await;
        })
    }

    fn read_secret(&self) -> Answer<'_, Option<Secret>> {
        Box::pin(in_time(self.secrets.get_opt(&self.secret)))
    }

    fn read_webhooks<'a>(
        &'a self,
        name: &'a str,
    ) -> Answer<'a, Option<MutatingWebhookConfiguration>> {
        Box::pin(in_time(self.webhooks.get_opt(name)))
    }

    fn write_secret(&self, read: Option<Secret>, data: Data) -> Answer<'_, Secret> {
        let is_created = read.is_none();
        let mut secret = read.unwrap_or_default();
        secret.data = Some(data.into_iter().map(|(key, value)| (key, ByteString(value))).collect());
        Box::pin(async move {
            if is_created {
                // An apply, since a role may allow to create this name only. Not forced: a Secret that
                // another replica created in the meantime stays.
                secret.metadata.name = Some(self.secret.clone());
                let params = PatchParams::apply(&self.creator);
                return in_time(self.secrets.patch(&self.secret, &params, &Patch::Apply(&secret)))
                    .await;
            }
            let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), dry_run: false };
            in_time(self.secrets.replace(&self.secret, &params, &secret)).await
        })
    }

    fn write_bundle<'a>(&'a self, bundle: Bundle<'a>) -> Answer<'a, MutatingWebhookConfiguration> {
        let Bundle { name, version, indices, pem } = bundle;
        let mut patch =
            vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
        patch.extend(indices.iter().map(|index| {
            let pointer = format!("/webhooks/{index}/clientConfig/caBundle");
            json!({"op": "add", "path": pointer, "value": ByteString(pem.as_bytes().to_vec())})
        }));
        let patch = serde_json::from_value(json!(patch)).expect("the patch must be a JSON Patch");
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let options = PatchParams { field_manager, ..PatchParams::default() };
        Box::pin(async move {
            in_time(self.webhooks.patch(name, &options, &Patch::Json::<()>(patch))).await
        })
    }
}

/// The answer, unless it takes too long.
pub(crate) async fn in_time<T>(
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestError> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RequestError::Timeout),
    }
}
