//! Writes events to the API server: each is created once, then only its count is updated.
//!
//! Upstream's role allows creating and patching events of `core/v1`, not of `events.k8s.io`.

#![expect(clippy::disallowed_types, reason = "events are sent outside of reviews")]

use std::time::{Duration, UNIX_EPOCH};

use injectd_core::outcome::InvolvedObject;
use injectd_k8s::names::is_dns_subdomain;
use k8s_openapi::{
    api::core::v1::Event,
    jiff::{Timestamp, Unit},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams, TypeMeta},
    core::{GroupVersionKind, ObjectMeta},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::digest::digest;

/// The component that recorded events name.
const COMPONENT: &str = "injectd";
/// Maximum length of the object's name in an event's name: a digest has room behind it.
// Names of objects have at most 253 characters: a dot and the 32 digits of a digest remain.
const MAX_NAME: usize = 220;
/// How long the API server may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The events of a cluster, and the objects they are about.
#[derive(Clone)]
pub struct Events {
    client: Client,
}

/// Why an event was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The involved object does not exist.
    #[error("the involved object does not exist")]
    NoObject,
    /// The event to update no longer exists.
    #[error("the event no longer exists")]
    NoEvent,
    /// The API server rejected the event; a retry would fail, too.
    #[error("the API server rejected the event")]
    Rejected(#[source] Box<kube::Error>),
    /// The request failed or timed out; a retry may succeed.
    #[error("the request to the API server failed or timed out")]
    Failed(#[source] Option<Box<kube::Error>>),
}

impl Events {
    /// Events of the cluster of `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Looks up the uid of an event's involved object.
    ///
    /// # Errors
    /// When the object does not exist or has another uid than expected, or the request fails.
    pub async fn object_uid(
        &self,
        namespace: &str,
        object: &InvolvedObject<'_>,
    ) -> Result<String, WriteError> {
        // Both are a caller's texts, which become parts of a request's path.
        if !is_dns_subdomain(namespace) || !is_dns_subdomain(&object.name) {
            return Err(WriteError::NoObject);
        }
        let (group, version) = object.api_version.split_once('/').unwrap_or(("", "v1"));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, object.kind));
        let objects =
            Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource);
        let found = in_time(objects.get_metadata_opt(&object.name)).await?;
        let is_expected = |uid: &String| object.object_uid.is_empty() || *object.object_uid == *uid;
        found.and_then(|found| found.metadata.uid).filter(is_expected).ok_or(WriteError::NoObject)
    }

    /// Creates an event of that name, or updates the count of the existing one.
    ///
    /// # Errors
    /// When the API server rejects the event, or the request fails.
    pub async fn create(
        &self,
        namespace: &str,
        name: &str,
        event: Value,
    ) -> Result<(), WriteError> {
        let count = event["count"].as_u64().and_then(|count| count.try_into().ok());
        let event = DynamicObject {
            types: Some(TypeMeta::resource::<Event>()),
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            data: event,
        };
        match in_time(self.api(namespace).create(&PostParams::default(), &event)).await {
            // An earlier attempt succeeded, but its answer was lost.
            Err(WriteError::Rejected(error)) if is_status(&error, 409) => {
                self.count_up(namespace, name, count.unwrap_or(1)).await
            }
            created => created.map(drop),
        }
    }

    /// Creates an event that is not counted, on an object of [`about`].
    ///
    /// # Errors
    /// When the API server rejects the event, or the request fails.
    pub async fn record(
        &self,
        object: &Value,
        is_warning: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), WriteError> {
        let since = UNIX_EPOCH.elapsed().unwrap_or_default();
        let event = event(object, is_warning, reason, message);
        // As in client-go, a time makes the name an event's own.
        self.write(object, &format!("{:x}", since.as_nanos()), event).await
    }

    /// The same for an event that several processes record: the first one creates it, and the others
    /// renew its time.
    ///
    /// # Errors
    /// When the API server rejects the event, or the request fails.
    pub async fn record_shared(
        &self,
        object: &Value,
        is_warning: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), WriteError> {
        let event = event(object, is_warning, reason, message);
        self.write(object, &digest([reason, message]), event).await
    }

    /// Creates an event on an object, with this end of its name.
    async fn write(&self, object: &Value, end: &str, event: Value) -> Result<(), WriteError> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let name = text("name");
        let prefix = name[..name.floor_char_boundary(MAX_NAME)].trim_end_matches(['-', '.']);
        self.create(text("namespace"), &format!("{prefix}.{end}"), event).await
    }

    /// Updates the count of an event.
    ///
    /// # Errors
    /// When the API server rejects the event, or the request fails.
    pub async fn count_up(
        &self,
        namespace: &str,
        name: &str,
        count: u32,
    ) -> Result<(), WriteError> {
        let patch = Patch::Merge(json!({"count": count, "lastTimestamp": now()}));
        match in_time(self.api(namespace).patch(name, &PatchParams::default(), &patch)).await {
            Err(WriteError::Rejected(error)) if is_status(&error, 404) => Err(WriteError::NoEvent),
            patched => patched.map(drop),
        }
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<Event>(&());
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }
}

/// An event that is not counted.
fn event(object: &Value, is_warning: bool, reason: &str, message: &str) -> Value {
    let at = now();
    json!({
        "involvedObject": object,
        "type": if is_warning { "Warning" } else { "Normal" },
        "reason": reason,
        "message": message,
        "source": {"component": COMPONENT},
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    })
}

/// The object of an event.
#[must_use]
pub fn about(
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
    uid: Option<&str>,
) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid,
    })
}

/// The current time in the format of events, in whole seconds.
#[must_use]
pub fn now() -> String {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now).to_string()
}

async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, WriteError> {
    match timeout(TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if is_final(&error) => Err(WriteError::Rejected(Box::new(error))),
        Ok(Err(error)) => Err(WriteError::Failed(Some(Box::new(error)))),
        Err(_) => Err(WriteError::Failed(None)),
    }
}

/// Whether a retry would fail with the same error.
fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status)
        // A token is renewed, and a timeout or a limit of the rate passes.
        if (400..500).contains(&status.code) && !matches!(status.code, 401 | 408 | 429))
}

fn is_status(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
