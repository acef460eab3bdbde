//! Pods that were let in while a webhook failed, from the audit log of the API server.

use serde::Serialize;
use serde_json::Value;

/// The API server adds an annotation with the webhook's name for each call that failed under the
/// failure policy Ignore (`apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go`).
pub const FAILED_OPEN_PREFIX: &str = "failed-open.mutation.webhook.admission.k8s.io";
/// How long webhooks took, if it was long.
const LATENCY: &str = "apiserver.latency.k8s.io/mutating-webhook";

/// A pod that was let in while a webhook failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedOpen {
    /// When the request came, as in the log.
    pub time: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod, or the prefix of its name.
    pub pod: String,
    /// The webhook that failed.
    pub webhook: String,
    /// What the log says of the cause.
    pub cause: String,
    /// Who created the pod.
    pub user: String,
}

/// The webhooks that failed while a pod was created, if the event is about that.
pub fn failed_open(event: &Value) -> impl Iterator<Item = FailedOpen> {
    let text = |field: &str| event.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
    let is_created = text("/verb") == "create"
        && text("/objectRef/resource") == "pods"
        && text("/objectRef/subresource").is_empty()
        && text("/stage") == "ResponseComplete"
        && (200..300).contains(&code);
    let annotations = event.get("annotations").and_then(Value::as_object).filter(|_| is_created);
    let failed = annotations.into_iter().flatten().filter(|(key, _)| {
        key.split_once('/').is_some_and(|(prefix, _)| prefix == FAILED_OPEN_PREFIX)
    });
    let cause = match annotations.and_then(|all| all.get(LATENCY)).and_then(Value::as_str) {
        Some(latency) => format!("the webhooks took {latency}: probably a timeout"),
        None => "the call failed at once: no connection, its certificate, or an error status; the \
                 log of the API server has the text"
            .to_owned(),
    };
    let names = [
        "/objectRef/name",
        "/responseObject/metadata/name",
        "/requestObject/metadata/generateName",
    ];
    let pod = names.into_iter().map(text).find(|name| !name.is_empty()).unwrap_or("?").to_owned();
    let found: Vec<_> = failed
        .map(|(_, webhook)| FailedOpen {
            time: text("/requestReceivedTimestamp").to_owned(),
            namespace: text("/objectRef/namespace").to_owned(),
            pod: pod.clone(),
            webhook: webhook.as_str().unwrap_or_default().to_owned(),
            cause: cause.clone(),
            user: text("/user/username").to_owned(),
        })
        .collect();
    found.into_iter()
}
