//! `review --templates` and `compare --templates`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{AGENT, Ran, run, with_agent};
use crate::file;

/// A review of a pod with these annotations.
fn review(uid: &str, namespace: &str, annotations: &Value) -> String {
    let pod = json!({"kind": "Pod", "metadata": {"name": "web", "annotations": annotations},
        "spec": {"containers": [{"name": "app"}], "volumes": [{"name": "z", "emptyDir": {}}]}});
    let request = json!({"uid": uid, "kind": {"kind": "Pod"}, "namespace": namespace,
        "operation": "CREATE", "object": pod});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        .to_string()
}

fn answers(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines();
    lines.map(|line| serde_json::from_str(line).expect("a line must be JSON")).collect()
}

fn patch(answer: &Value) -> Vec<Value> {
    let patch = answer["response"]["patch"].as_str().expect("a patch");
    serde_json::from_slice(&STANDARD.decode(patch).expect("base64")).expect("JSON")
}

#[test]
fn reviews_are_answered_with_a_patch_a_reason_or_a_denial() {
    let asks = json!({"example.com/agent": "enabled"});
    let loud = json!({"example.com/agent": "enabled", "example.com/level": "debug"});
    let reviews = [
        review("u1", "shop", &asks),
        review("u2", "shop", &json!({})),
        review("u3", "vault", &asks),
        review("u4", "shop", &loud),
        r#"{"request":{"uid":"u5","kind":{"kind":"Pod"},"object":{"spec":5}}}"#.to_owned(),
        r#"{"request":{"uid":"u6","kind":{"kind":"ConfigMap"},"object":{"data":{}}}}"#.to_owned(),
        r#"{"request":{"uid":"u7","kind":{"kind":"Pod"},"operation":"DELETE","object":null}}"#
            .to_owned(),
    ];
    let ran = with_agent("review", &[], &reviews.join("\n"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answers = answers(&ran);
    let uids: Vec<_> = answers.iter().map(|answer| &answer["response"]["uid"]).collect();
    assert_eq!(uids, ["u1", "u2", "u3", "u4", "u5", "u6", "u7"]);
    // The lists of the pod are not written again.
    let patch = patch(&answers[0]);
    let paths: Vec<_> =
        patch.iter().map(|operation| operation["path"].as_str().unwrap_or_default()).collect();
    assert!(paths.contains(&"/spec/containers/-"), "{paths:?}");
    assert!(paths.contains(&"/spec/volumes/-"), "{paths:?}");
    assert!(patch.iter().all(|operation| operation["op"] == "add"), "{patch:?}");
    assert_eq!(answers[0]["response"]["auditAnnotations"]["verdict"], "injected");
    let skipped = json!({"verdict": "skipped", "reasons": "disabled"});
    assert_eq!(answers[1]["response"]["auditAnnotations"], skipped);
    let denied = &answers[2]["response"];
    assert_eq!(denied["allowed"], false);
    assert_eq!(denied["status"]["message"], "template agent: no agent beside the vault");
    assert_eq!(answers[3]["response"]["warnings"], json!(["template agent: debug is loud"]));
    for answer in &answers[4..] {
        assert_eq!(
            (&answer["response"]["allowed"], answer["response"].get("patch")),
            (&true.into(), None)
        );
    }
}

#[test]
fn namespaces_and_owners_of_reviews_come_from_objects() {
    let objects = file(
        "objects",
        "kind: Namespace\nmetadata: {name: shop, labels: {team: one, example.com/agent: enabled}}\n---\n\
         kind: ReplicaSet\nmetadata: {name: web-1, namespace: shop, ownerReferences: \
         [{kind: Deployment, name: web, controller: true}]}\n",
    );
    let pod = review("u1", "shop", &json!({}));
    let pod = pod.replace(r#""metadata":{"#, r#""metadata":{"ownerReferences":[{"kind":"ReplicaSet","name":"web-1","controller":true}],"#);
    let ran = with_agent("review", &["--objects", objects.path()], &pod);
    let text = Value::from(patch(&answers(&ran)[0])).to_string();
    assert!(text.contains("Deployment/web") && text.contains(r#""one""#), "{text}");
    let elsewhere = review("u1", "elsewhere", &json!({}));
    let ran = with_agent("review", &["--objects", objects.path()], &elsewhere);
    assert!(ran.stdout.contains("namespaces \\\"elsewhere\\\" not found"), "{}", ran.stdout);
}

#[test]
fn what_is_no_review_is_an_error_and_events_need_linkerd() {
    let ran = with_agent("review", &[], "no review");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.starts_with("{\"error\":"), "{}", ran.stdout);
    let ran = with_agent("review", &["--events"], "");
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains("--events does not work with --templates"), "{}", ran.stderr);
}

#[test]
fn compare_applies_both_patches_and_names_the_place_of_a_difference() {
    let asks = json!({"example.com/agent": "enabled"});
    let text = review("u1", "shop", &asks);
    let reviews = file("reviews", &text);
    let ran = with_agent("review", &[], &text);
    let answer = answers(&ran).remove(0);
    // Without the mark, in another order, as another injector writes it.
    let mut theirs: Vec<_> = patch(&answer);
    theirs.retain(|operation| !operation.to_string().contains("injectd.dev"));
    let whole = json!({"op": "replace", "path": "/spec/volumes",
        "value": [{"name": "run", "emptyDir": {}}, {"name": "z", "emptyDir": {}}]});
    theirs.retain(|operation| operation["path"] != "/spec/volumes/-");
    theirs.push(whole);
    let with = |patch: &[Value]| {
        let patch = STANDARD.encode(Value::from(patch).to_string());
        let answer = json!({"response": {"uid": "u1", "allowed": true, "patch": patch}});
        file("answers", answer.to_string())
    };
    let (same, args) = (with(&theirs), [reviews.path(), "--answers"]);
    let ran = with_agent("compare", &[&args[..], &[same.path()]].concat(), "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("compared 1 review: 1 identical"), "{}", ran.stdout);
    let older = Value::from(theirs).to_string().replace("agent:1.20", "agent:1.19");
    let older: Vec<Value> = serde_json::from_str(&older).expect("JSON");
    let differs = with(&older);
    // The namespace and the owner of the pod are not known, and the template reads them.
    let ran = with_agent("compare", &[&args[..], &[differs.path()]].concat(), "");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("missing Namespace shop"), "{}", ran.stdout);
    let objects = file("objects", "kind: Namespace\nmetadata: {name: shop}\n");
    let args = [&args[..], &[differs.path(), "--objects", objects.path()]].concat();
    let ran = with_agent("compare", &args, "");
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("DIFFERS: /spec/containers/agent/image, in 1 review"),
        "{}",
        ran.stdout
    );
}

#[test]
fn compare_needs_answers_and_denials_are_equal() {
    let ran = with_agent("compare", &[], "");
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains("compare --templates needs --url or --answers"), "{}", ran.stderr);
    let template = file("agent", AGENT);
    let reviews = file("reviews", review("u1", "vault", &json!({"example.com/agent": "true"})));
    let answer = r#"{"response":{"uid":"u1","allowed":false,"status":{"message":"not here"}}}"#;
    let answers = file("answers", answer);
    let args =
        ["compare", "--templates", template.path(), reviews.path(), "--answers", answers.path()];
    let ran = run(&args, "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}
