use super::*;

const FIRST: &str = "patch.webhook.admission.k8s.io/round_0_index_0";

/// The annotation of a call.
fn call(webhook: &str, patch: &Value) -> Value {
    json!({"webhook": webhook, "patch": patch, "patchType": "JSONPatch"}).to_string().into()
}

fn event() -> Value {
    let patch = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/linkerd.io~1created-by", "value": "x"},
        {"op": "add", "path": "/spec/initContainers", "value": []},
        {"op": "add", "path": "/spec/volumes/-", "value": {"name": "linkerd-identity-token"}},
        {"op": "add", "path": "/spec/initContainers/0", "value": {"name": "linkerd-init"}},
    ]);
    json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": "a1", "verb": "create",
        "stage": "ResponseComplete", "responseStatus": {"code": 201},
        "objectRef": {"resource": "pods", "namespace": "shop"},
        "annotations": {FIRST: call(DEFAULT_WEBHOOK, &patch)},
        "responseObject": {
            "metadata": {"name": "web", "annotations": {"linkerd.io/created-by": "x"}},
            "spec": {
                "volumes": [{"name": "token"}, {"name": "linkerd-identity-token"}, {"name": "later"}],
                "initContainers": [{"name": "linkerd-init"}],
            },
        },
    })
}

fn read(event: &Value) -> Result<Event, String> {
    AuditLog::new(DEFAULT_WEBHOOK).read(event)
}

fn recorded(event: &Value) -> Recorded {
    match read(event) {
        Ok(Event::Answered(recorded)) => recorded,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_injectors_own_patch_is_reverted() {
    let recorded = recorded(&event());
    let object = &recorded.review["request"]["object"];
    let expected = json!({"metadata": {"name": "web"},
        "spec": {"volumes": [{"name": "token"}, {"name": "later"}]}});
    assert_eq!(*object, expected);
    assert_eq!(recorded.patch.len(), 5);
}

#[test]
fn patches_of_later_webhooks_are_reverted_first() {
    let mut event = event();
    let add = |path: &str, name: &str| json!({"op": "add", "path": path, "value": {"name": name}});
    event["annotations"]["patch.webhook.admission.k8s.io/round_0_index_2"] =
        call("a", &json!([add("/spec/volumes/2", "later"), add("/spec/containers/1", "agent")]));
    // Calls are ordered by index, not by key.
    event["annotations"]["patch.webhook.admission.k8s.io/round_0_index_10"] = call(
        "b",
        &json!([
            add("/spec/containers/1/env", ""),
            {"op": "add", "path": "/spec/securityContext/fsGroup", "value": 1},
            {"op": "replace", "path": "/spec/containers/0/image", "value": "mirror/c"},
        ]),
    );
    event["annotations"]["patch.webhook.admission.k8s.io/round_1_index_0"] =
        call("a", &json!([add("/spec/volumes/0", "first")]));
    let spec = &mut event["responseObject"]["spec"];
    spec["securityContext"] = json!({"fsGroup": 1});
    spec["containers"] = json!([{"name": "c", "image": "mirror/c"}, {"name": "agent", "env": []}]);
    spec["volumes"].as_array_mut().expect("must be a list").insert(0, json!({"name": "first"}));
    let expected = json!({"containers": [{"name": "c", "image": "mirror/c"}],
        "securityContext": {}, "volumes": [{"name": "token"}]});
    assert_eq!(recorded(&event).review["request"]["object"]["spec"], expected);
}

#[test]
fn patches_of_earlier_webhooks_stay() {
    let mut event = event();
    let annotations = event["annotations"].as_object_mut().expect("must be a map");
    let own = annotations.remove(FIRST).expect("must exist");
    let patch = json!([{"op": "add", "path": "/spec/volumes/1", "value": {"name": "later"}}]);
    annotations.insert(FIRST.to_owned(), call("a", &patch));
    annotations.insert("patch.webhook.admission.k8s.io/round_0_index_1".to_owned(), own);
    let recorded = recorded(&event);
    let volumes = &recorded.review["request"]["object"]["spec"]["volumes"];
    assert_eq!(*volumes, json!([{"name": "token"}, {"name": "later"}]));
    assert_eq!(recorded.patch.len(), 5);
}

#[test]
fn an_overwritten_only_key_is_kept() {
    let mut event = event();
    let add =
        |key: &str| json!({"op": "add", "path": format!("/metadata/labels/{key}"), "value": ""});
    event["annotations"][FIRST] = call(DEFAULT_WEBHOOK, &json!([add("overwritten"), add("new")]));
    event["responseObject"]["metadata"]["labels"] = json!({"overwritten": "", "new": ""});
    let labels = &recorded(&event).review["request"]["object"]["metadata"]["labels"];
    assert_eq!(*labels, json!({"overwritten": ""}));
}

#[test]
fn events_without_an_answer_of_the_injector_are_ignored() {
    for (pointer, value) in [
        ("/verb", json!("get")),
        ("/stage", json!("RequestReceived")),
        ("/objectRef/resource", json!("configmaps")),
        ("/responseStatus/code", json!(409)),
        ("/annotations", Value::Null),
        ("/annotations", json!({FIRST: call("another", &Value::Null)})),
    ] {
        let mut event = event();
        *event.pointer_mut(pointer).expect("must exist") = value;
        assert!(matches!(read(&event), Ok(Event::Ignored)), "{pointer}");
    }
}

#[test]
fn a_failed_call_is_not_an_answer() {
    let mut event = event();
    let failed = "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0";
    let called = call(DEFAULT_WEBHOOK, &Value::Null);
    event["annotations"] = json!({failed: DEFAULT_WEBHOOK,
        "mutation.webhook.admission.k8s.io/round_0_index_0": called});
    assert!(matches!(read(&event), Ok(Event::FailedOpen)));
    event["annotations"]["mutation.webhook.admission.k8s.io/round_1_index_0"] = called;
    assert!(recorded(&event).patch.is_empty());
}

#[test]
fn an_event_without_response_object_is_an_error() {
    let mut event = event();
    event["responseObject"] = Value::Null;
    assert!(read(&event).expect_err("must be rejected").contains("RequestResponse"));
}
