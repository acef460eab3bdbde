//! Reads reviews from an API server's audit log.
//!
//! The request object of an event lacks defaults and the token volume, so it is not the object that
//! the webhook received. This module reverts patches on the response object instead: those of later
//! webhooks, then the injector's own. The log contains all of them.

use std::collections::{BTreeMap, BTreeSet};

use injectd_controllers::audit::audit_log::FAILED_OPEN_PREFIX;
use serde_json::{Value, json};

use super::meaning::REASONS;

/// The webhook of Linkerd's injector.
pub(super) const DEFAULT_WEBHOOK: &str = "linkerd-proxy-injector.linkerd.io";

// An API server reports each call of a webhook in annotations PREFIX/round_R_index_I.
const CALL_PREFIX: &str = "mutation.webhook.admission.k8s.io";
const PATCH_PREFIX: &str = "patch.webhook.admission.k8s.io";

/// The state of reading an audit log.
#[derive(Debug)]
pub(super) struct AuditLog {
    /// Name of the injector's webhook.
    webhook: String,
    is_empty: bool,
    /// Names of all webhooks that were called.
    called: BTreeSet<String>,
}

/// The content of an audit event.
#[derive(Debug)]
pub(super) enum Event {
    /// The injector answered.
    Answered(Recorded),
    /// The webhook failed, and the API server admitted the object.
    FailedOpen,
    /// The event has no answer of the injector.
    Ignored,
}

/// A review as the webhook received it, and the answer.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The `AdmissionReview`; its uid is the event's auditID.
    pub(super) review: Value,
    /// The operations of the injector's patch; empty without a patch.
    pub(super) patch: Vec<Value>,
    /// The reason for a skip, if the injector reports it.
    pub(super) reason: Option<String>,
}

/// A call of a webhook.
#[derive(Debug, Default)]
struct Call {
    webhook: String,
    patch: Vec<Value>,
    has_failed: bool,
}

/// The audit events of a document; `None` for other documents, such as reviews.
pub(super) fn events(document: &Value) -> Option<&[Value]> {
    let version = document["apiVersion"].as_str()?;
    match document["kind"].as_str()? {
        _ if !version.starts_with("audit.k8s.io/") => None,
        "Event" => Some(std::slice::from_ref(document)),
        "EventList" => document["items"].as_array().map(Vec::as_slice),
        _ => None,
    }
}

impl AuditLog {
    pub(super) fn new(webhook: &str) -> Self {
        Self { webhook: webhook.to_owned(), is_empty: true, called: BTreeSet::new() }
    }

    /// Reads an event. Ignores requests without a call of the webhook, and requests other than the
    /// creation of a pod or service: other verbs and kinds, other stages, subresources, failures.
    ///
    /// # Errors
    /// An event with an answer of the injector is incomplete or invalid.
    pub(super) fn read(&mut self, event: &Value) -> Result<Event, String> {
        let mut calls = calls(event)?;
        self.is_empty = false;
        // Before anything is ignored: any call shows whether the audit policy logs calls at all.
        self.called.extend(calls.iter().map(|call| call.webhook.clone()));
        let is_own = |call: &Call| call.webhook == self.webhook;
        if !is_creation(event) || !calls.iter().any(is_own) {
            return Ok(Event::Ignored);
        }
        let has_answered = |call: &Call| is_own(call) && !call.has_failed;
        let has_patched = |call: &Call| has_answered(call) && !call.patch.is_empty();
        // An API server may call a webhook again after others. The call with the patch is the
        // injection.
        let patched = calls.iter().position(has_patched);
        let Some(own) = patched.or_else(|| calls.iter().rposition(has_answered)) else {
            return Ok(Event::FailedOpen);
        };
        let mut object = event["responseObject"].clone();
        if object["metadata"].is_null() {
            return Err(
                "no responseObject: set level RequestResponse in the audit policy".to_owned()
            );
        }
        // The log has the object as it was stored: the injector saw it before its own patch and
        // the patches of the webhooks after it.
        for call in calls[own..].iter().rev() {
            revert(&mut object, &call.patch)?;
        }
        Ok(Event::Answered(Recorded {
            review: review_of(event, &object),
            patch: calls.swap_remove(own).patch,
            reason: event["annotations"][format!("{}/{REASONS}", self.webhook)]
                .as_str()
                .map(str::to_owned),
        }))
    }

    /// Checks that the log contains calls of the injector's webhook.
    ///
    /// # Errors
    /// The log contains events, but none with a call of the webhook; the text names a remedy.
    pub(super) fn result(&self) -> Result<(), String> {
        if self.is_empty || self.called.contains(&self.webhook) {
            return Ok(());
        }
        let called = self.called.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let remedy = if called.is_empty() {
            "or of any other webhook: set level RequestResponse for pods in the audit policy"
                .to_owned()
        } else {
            format!("only of {called}: set --webhook to the injector's webhook")
        };
        Err(format!("the audit log contains no call of {}, {remedy}", self.webhook))
    }
}

/// Whether the event is the response to a successful creation of a pod or service.
fn is_creation(event: &Value) -> bool {
    let about = &event["objectRef"];
    let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
    event["verb"] == "create"
        && event["stage"] == "ResponseComplete"
        && (about["resource"] == "pods" || about["resource"] == "services")
        && about["subresource"].as_str().is_none_or(str::is_empty)
        && (200..300).contains(&code)
}

/// The calls of webhooks, in call order.
fn calls(event: &Value) -> Result<Vec<Call>, String> {
    // Numbers, because as texts `index_10` would come before `index_2`.
    let mut calls = BTreeMap::<Vec<u32>, Call>::new();
    for (key, value) in event["annotations"].as_object().into_iter().flatten() {
        let (prefix, place) = key.split_once('/').unwrap_or_default();
        if ![CALL_PREFIX, PATCH_PREFIX, FAILED_OPEN_PREFIX].contains(&prefix) {
            continue;
        }
        let round_and_index = place.split('_').filter_map(|number| number.parse().ok()).collect();
        let call = calls.entry(round_and_index).or_default();
        let text = value.as_str().unwrap_or_default();
        if prefix == FAILED_OPEN_PREFIX {
            text.clone_into(&mut call.webhook);
            call.has_failed = true;
            continue;
        }
        let record: Value =
            serde_json::from_str(text).map_err(|error| format!("annotation {key}: {error}"))?;
        record["webhook"].as_str().unwrap_or_default().clone_into(&mut call.webhook);
        if let Some(patch) = record["patch"].as_array() {
            call.patch.clone_from(patch);
        }
    }
    Ok(calls.into_values().collect())
}

fn review_of(event: &Value, object: &Value) -> Value {
    let about = &event["objectRef"];
    let kind = if about["resource"] == "pods" { "Pod" } else { "Service" };
    let dry_run = event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun="));
    let request = json!({
        "uid": event["auditID"],
        "kind": {"group": "", "version": "v1", "kind": kind},
        "namespace": about["namespace"],
        "operation": "CREATE",
        "dryRun": dry_run,
        "object": object,
    });
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
}

/// Reverts `add` operations, the last one first. The log does not have the old values of replaced
/// or removed fields.
fn revert(object: &mut Value, patch: &[Value]) -> Result<(), String> {
    for (at, operation) in patch.iter().enumerate().rev() {
        if operation["op"] != "add" {
            continue;
        }
        let pointer = operation["path"].as_str().unwrap_or_default();
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        let key = key.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(parent) {
            Some(Value::Object(map)) => {
                // API servers omit empty maps: if no operation created the map, its only key is
                // older than the patch, which overwrote it.
                let is_overwritten = parent.starts_with("/metadata/")
                    && map.len() == 1
                    && patch[..at].iter().all(|earlier| earlier["path"] != parent);
                if !is_overwritten {
                    map.shift_remove(&key);
                }
            }
            Some(Value::Array(list)) => remove_item(list, &key, &operation["value"]),
            _ => return Err(format!("responseObject has no {parent}, to which a patch added")),
        }
    }
    Ok(())
}

/// Removes the item that a patch added at `key`. If a later webhook moved it, the item is found by
/// its name.
fn remove_item(list: &mut Vec<Value>, key: &str, added: &Value) {
    let is_added = |item: &Value| item["name"] == added["name"];
    let at_key = key.parse().ok().filter(|&at: &usize| list.get(at).is_some_and(is_added));
    if let Some(at) = at_key.or_else(|| list.iter().rposition(is_added)) {
        list.remove(at);
    }
}

#[cfg(test)]
mod tests;
