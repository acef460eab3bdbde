//! The differences between two answers of Istio's injectors: between the pods that they make.
//!
//! Not for Linkerd, whose patches are compared themselves. Istio patches lists by index, so that two patches with the same effect may have no operation in
//! common.

use injectd_merge::normal;
use injectd_templates_tree::mark;
use serde_json::Value;

use super::meaning::{Difference, Meaning, walk};

/// The differences between two answers to a request; empty if they have the same effect.
pub(super) fn differences(theirs: &Meaning, ours: &Meaning, request: &Value) -> Vec<Difference> {
    let object = &request["object"];
    let skipped = Some(ours).filter(|ours| **ours == Meaning::Allowed(Vec::new()));
    let row_of_skip = skipped.and_then(|_| row_of_request(request));
    let mut found = Vec::new();
    match (theirs, ours) {
        (Meaning::Denied(_), Meaning::Denied(_)) => {}
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) if row_of_skip.is_some() => {
            found.push(Difference::of_answers(theirs, ours, row_of_skip));
        }
        (Meaning::Allowed(their_patch), Meaning::Allowed(our_patch)) => {
            match (patched(object, their_patch), patched(object, our_patch)) {
                (Some(theirs), Some(ours)) => {
                    walk("", &normal(&theirs), &normal(&ours), explain, &mut found);
                }
                (None, _) => {
                    let row = Some("patch-does-not-apply");
                    found.push(Difference::of_answers(theirs, ours, row));
                }
                (_, None) => found.push(Difference::of_answers(theirs, ours, None)),
            }
        }
        (theirs, ours) => {
            let row = matches!(theirs, Meaning::NoAnswer).then_some("no-panic");
            found.push(Difference::of_answers(theirs, ours, row));
        }
    }
    found
}

/// The same for answers of sidecar templates, without what is no part of a result. No row explains a
/// difference: what the other injector does is not known.
pub(super) fn of_templates(theirs: &Meaning, ours: &Meaning, request: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    match (theirs, ours) {
        (Meaning::Denied(_), Meaning::Denied(_)) => {}
        (Meaning::Allowed(their_patch), Meaning::Allowed(our_patch)) => {
            let object = &request["object"];
            match (patched(object, their_patch), patched(object, our_patch)) {
                (Some(theirs), Some(ours)) => {
                    walk("", &result(&theirs), &result(&ours), |_, _, _| None, &mut found);
                }
                _ => found.push(Difference::of_answers(theirs, ours, None)),
            }
        }
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) => found.push(Difference::of_answers(theirs, ours, None)),
    }
    found
}

/// A pod without the mark of templates, and with its volumes and mounts in one order.
fn result(pod: &Value) -> Value {
    let mut pod = normal(&mark::removed(pod));
    let sort = |list: Option<&mut Value>, field: &str| {
        if let Some(items) = list.and_then(Value::as_array_mut) {
            items.sort_by_cached_key(|item| item[field].to_string());
        }
    };
    let Some(spec) = pod.get_mut("spec") else { return pod };
    sort(spec.get_mut("volumes"), "name");
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            sort(container.get_mut("volumeMounts"), "mountPath");
        }
    }
    pod
}

/// The row about requests that injectd allows without a patch.
fn row_of_request(request: &Value) -> Option<&'static str> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &request["object"];
    let has_subresource = !text(&request["subResource"]).is_empty();
    if object.is_null() || has_subresource || text(&request["operation"]) == "DELETE" {
        return Some("no-object");
    }
    (!matches!(&*text(&object["kind"]), "" | "Pod")).then_some("other-kinds")
}

/// The object with a patch; `None` if the patch does not apply.
fn patched(object: &Value, patch: &[Value]) -> Option<Value> {
    let patch: json_patch::Patch = serde_json::from_value(Value::Array(patch.to_vec())).ok()?;
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).ok()?;
    Some(object)
}

/// Integers that Istio rounded.
fn explain(_: &str, theirs: &Value, ours: &Value) -> Option<&'static str> {
    let bits = |value: &Value| value.as_f64().map(f64::to_bits);
    (bits(theirs).is_some() && bits(theirs) == bits(ours)).then_some("exact-integers")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed(patch: Value) -> Meaning {
        Meaning::Allowed(serde_json::from_value(patch).expect("must be a list"))
    }

    #[test]
    fn patches_are_compared_by_their_pods() {
        let request = json!({"object": {"spec": {"containers": [{"name": "web"}]}}});
        let proxy = json!({"name": "istio-proxy"});
        let add = allowed(json!([{"op": "add", "path": "/spec/containers/0", "value": proxy}]));
        let whole = allowed(json!([
            {"op": "replace", "path": "/spec/containers/0/name", "value": "istio-proxy"},
            {"op": "add", "path": "/spec/containers/-", "value": {"name": "web"}},
        ]));
        assert_eq!(differences(&add, &whole, &request).len(), 0);
        let none = allowed(json!([]));
        let found = differences(&add, &none, &request);
        assert_eq!(found[0].place, "/spec/containers");
    }

    #[test]
    fn known_differences_have_the_name_of_their_row() {
        let request = json!({"object": {"spec": {}}});
        let uid = |uid: u64| {
            let path = "/spec/securityContext";
            allowed(json!([{"op": "add", "path": path, "value": {"runAsUser": uid}}]))
        };
        let found = differences(&uid(9_007_199_254_740_992), &uid(9_007_199_254_740_993), &request);
        assert_eq!(found[0].row, Some("exact-integers"));
        let broken = allowed(json!([{"op": "add", "path": "/metadata/labels", "value": {}}]));
        let found = differences(&broken, &allowed(json!([])), &request);
        assert_eq!(found[0].row, Some("patch-does-not-apply"));
        let found = differences(&Meaning::NoAnswer, &allowed(json!([])), &request);
        assert_eq!(found[0].row, Some("no-panic"));
        let denied = Meaning::Denied(String::new());
        assert_eq!(differences(&denied, &uid(1), &request)[0].row, None);
        let none = allowed(json!([]));
        for (request, row) in [
            (json!({}), "no-object"),
            (json!({"object": {}, "operation": "DELETE"}), "no-object"),
            (json!({"object": {"kind": "Deployment"}}), "other-kinds"),
        ] {
            assert_eq!(differences(&uid(1), &none, &request)[0].row, Some(row), "{request}");
        }
    }
}
