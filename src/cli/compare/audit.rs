//! Reviews out of an API server's audit log.
//!
//! What the webhook saw is not the request object, which lacks defaults and the token volume, but
//! the response object with the injector's own patch taken back. The log holds that patch too.

#![expect(clippy::disallowed_types, reason = "audit events are trees")]

use serde_json::{Value, json};

/// Annotation of an audit event that holds the patch of a webhook, by round and index.
const PATCH_ANNOTATION: &str = "patch.webhook.admission.k8s.io/";
/// The webhook of Linkerd's injector.
const WEBHOOK: &str = "linkerd-proxy-injector.linkerd.io";

/// A review as the webhook saw it, and what it answered.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The `AdmissionReview`.
    pub(super) review: Value,
    /// The operations of the injector's patch; empty if it made none.
    pub(super) patch: Vec<Value>,
}

/// Whether the text is an audit event rather than a review.
pub(super) fn is_event(value: &Value) -> bool {
    let version = value["apiVersion"].as_str().unwrap_or_default();
    value["kind"] == "Event" && version.starts_with("audit.k8s.io/")
}

/// Reads an event. `None` for what no injector is asked about: other verbs and kinds, other stages,
/// subresources, failed requests.
///
/// # Errors
/// Why an event that matters cannot be used.
pub(super) fn read(event: &Value) -> Result<Option<Recorded>, String> {
    let about = &event["objectRef"];
    let resource = about["resource"].as_str().unwrap_or_default();
    let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
    let is_asked = event["verb"] == "create"
        && event["stage"] == "ResponseComplete"
        && matches!(resource, "pods" | "services")
        && about["subresource"].as_str().is_none_or(str::is_empty)
        && (200..300).contains(&code);
    if !is_asked {
        return Ok(None);
    }
    let mut object = event["responseObject"].clone();
    if object["metadata"].is_null() {
        return Err("no responseObject: the audit policy needs level RequestResponse".to_owned());
    }
    let patch = patch_of(event)?;
    take_back(&mut object, &patch)?;
    let kind = if resource == "pods" { "Pod" } else { "Service" };
    let dry_run = event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun="));
    let request = json!({
        "uid": event["auditID"],
        "kind": {"group": "", "version": "v1", "kind": kind},
        "namespace": about["namespace"],
        "operation": "CREATE",
        "dryRun": dry_run,
        "object": object,
    });
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": request,
    });
    Ok(Some(Recorded { review, patch }))
}

/// The patch of Linkerd's webhook, if it made one.
fn patch_of(event: &Value) -> Result<Vec<Value>, String> {
    let annotations = event["annotations"].as_object();
    for (key, value) in annotations.into_iter().flatten() {
        if !key.starts_with(PATCH_ANNOTATION) {
            continue;
        }
        let value: Value = serde_json::from_str(value.as_str().unwrap_or_default())
            .map_err(|error| format!("annotation {key}: {error}"))?;
        if value["webhook"] == WEBHOOK {
            return Ok(value["patch"].as_array().cloned().unwrap_or_default());
        }
    }
    Ok(Vec::new())
}

/// Undoes `add` operations, the last one first. What an operation overwrote is not known.
fn take_back(object: &mut Value, patch: &[Value]) -> Result<(), String> {
    for operation in patch.iter().rev() {
        let pointer = operation["path"].as_str().unwrap_or_default();
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        let key = key.replace("~1", "/").replace("~0", "~");
        match object.pointer_mut(parent) {
            Some(Value::Object(map)) => {
                map.shift_remove(&key);
            }
            Some(Value::Array(list)) => take_out(list, &key, &operation["value"]),
            _ => return Err(format!("the object has no {parent} that the patch added to")),
        }
    }
    Ok(())
}

/// Removes a list item: by its name, because what came later may have moved it.
fn take_out(list: &mut Vec<Value>, key: &str, added: &Value) {
    let named =
        list.iter().rposition(|item| !item["name"].is_null() && item["name"] == added["name"]);
    let numbered = key.parse().ok().filter(|&at| at < list.len());
    if let Some(at) = named.or(numbered).or(list.len().checked_sub(1)) {
        list.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Value {
        let patch = json!([
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/linkerd.io~1created-by", "value": "x"},
            {"op": "add", "path": "/spec/initContainers", "value": []},
            {"op": "add", "path": "/spec/volumes/-", "value": {"name": "linkerd-identity-token"}},
            {"op": "add", "path": "/spec/initContainers/0", "value": {"name": "linkerd-init"}},
        ]);
        let patch = json!({"webhook": WEBHOOK, "patch": patch, "patchType": "JSONPatch"});
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": "a1", "verb": "create",
            "stage": "ResponseComplete", "responseStatus": {"code": 201},
            "objectRef": {"resource": "pods", "namespace": "shop"},
            "annotations": {"patch.webhook.admission.k8s.io/round_0_index_0": patch.to_string()},
            "responseObject": {
                "metadata": {"name": "web", "annotations": {"linkerd.io/created-by": "x"}},
                "spec": {
                    "volumes": [{"name": "token"}, {"name": "linkerd-identity-token"}, {"name": "later"}],
                    "initContainers": [{"name": "linkerd-init"}],
                },
            },
        })
    }

    #[test]
    fn the_injectors_own_patch_is_taken_back() {
        let recorded = read(&event()).expect("must be usable").expect("must matter");
        let object = &recorded.review["request"]["object"];
        let expected = json!({"metadata": {"name": "web"},
            "spec": {"volumes": [{"name": "token"}, {"name": "later"}]}});
        assert_eq!(*object, expected);
        assert_eq!(recorded.patch.len(), 5);
    }

    #[test]
    fn events_that_no_injector_is_asked_about_are_passed_over() {
        for (pointer, value) in [
            ("/verb", json!("get")),
            ("/stage", json!("RequestReceived")),
            ("/objectRef/resource", json!("configmaps")),
            ("/responseStatus/code", json!(409)),
        ] {
            let mut event = event();
            *event.pointer_mut(pointer).expect("must be there") = value;
            assert!(read(&event).expect("must be readable").is_none(), "{pointer}");
        }
    }

    #[test]
    fn an_event_without_its_object_says_what_is_missing() {
        let mut event = event();
        event["responseObject"] = Value::Null;
        assert!(read(&event).expect_err("must be told").contains("RequestResponse"));
    }
}
