//! Requests for the Secret and the webhook configurations: without rules of what to write.

use std::time::Duration;

use injectd_cluster::creator;
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::timeout;

use super::{
    FIELD_MANAGER,
    state::State,
    view::{self, Configuration},
};

/// How long the API server may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// What the API server says of a JSON Patch whose `test` fails.
const TEST_FAILED: &str = "the server rejected our request due to an error in our request";

/// The objects of a Service's certificates.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) secrets: Api<Secret>,
    pub(super) webhooks: Api<MutatingWebhookConfiguration>,
    secret: String,
    /// Field manager of a Secret that is created: another replica's is not replaced.
    creator: String,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the API server rejected the request")]
    Api(#[from] kube::Error),
    #[error("the API server does not answer")]
    Timeout,
    #[error("the CA cannot sign")]
    Sign(#[from] rcgen::Error),
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

    pub(super) async fn read_secret(&self) -> Result<Option<Secret>, RequestError> {
        in_time(self.secrets.get_opt(&self.secret)).await
    }

    pub(super) async fn read_webhooks(
        &self,
        name: &str,
    ) -> Result<Option<MutatingWebhookConfiguration>, RequestError> {
        in_time(self.webhooks.get_opt(name)).await
    }

    /// Writes the state into the Secret as it was read, or creates it.
    pub(super) async fn write_secret(
        &self,
        read: Option<Secret>,
        state: &State,
    ) -> Result<Secret, RequestError> {
        let is_created = read.is_none();
        let mut secret = read.unwrap_or_default();
        let mut data = view::data(&secret);
        state.encode(&mut data)?;
        secret.data = Some(data.into_iter().map(|(key, value)| (key, ByteString(value))).collect());
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
    }

    /// Writes the `caBundle` of entries, if the configuration is still as it was read.
    pub(super) async fn write_bundles(
        &self,
        name: &str,
        read: &Configuration,
        indices: &[usize],
        pem: &str,
    ) -> Result<MutatingWebhookConfiguration, RequestError> {
        let version = &read.version;
        let mut patch =
            vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
        patch.extend(indices.iter().map(|index| {
            let pointer = format!("/webhooks/{index}/clientConfig/caBundle");
            json!({"op": "add", "path": pointer, "value": ByteString(pem.as_bytes().to_vec())})
        }));
        let patch = serde_json::from_value(json!(patch)).expect("the patch must be a JSON Patch");
        let manager = Some(FIELD_MANAGER.to_owned());
        let options = PatchParams { field_manager: manager, ..PatchParams::default() };
        in_time(self.webhooks.patch(name, &options, &Patch::Json::<()>(patch))).await
    }
}

impl RequestError {
    /// Whether the object has changed since it was read.
    pub(super) fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| match status.code {
            409 => true,
            422 => status.message == TEST_FAILED,
            _ => false,
        })
    }

    pub(super) fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }

    fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status),
            _ => None,
        }
    }
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, RequestError> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RequestError::Timeout),
    }
}
