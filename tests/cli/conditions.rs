//! Match conditions that are long, deep or costly, in files.

use serde_json::{Value, json};

use super::{injectd, text};

/// A pod of 400 containers, and a webhook with a condition for it.
fn input(expression: &str, policy: &str) -> String {
    let containers: Vec<_> =
        (0..400).map(|index| json!({"name": format!("c{index}"), "image": "a"})).collect();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": containers},
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "injector"},
        "webhooks": [{
            "name": "injector.example.com",
            "clientConfig": {"url": "https://injector.example.com/inject"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}],
            "failurePolicy": policy,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "matchConditions": [{"name": "one", "expression": expression}],
        }],
    });
    format!("---\n{pod}\n---\n{configuration}\n")
}

fn explained(expression: &str, policy: &str) -> (String, String) {
    let output = injectd(&["explain", "-o", "json", "-"], &input(expression, policy));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{expression:.60}");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let step = &list["items"][0]["webhooks"][0];
    let field = |name: &str| step[name].as_str().expect("a text").to_owned();
    (field("verdict"), field("reason"))
}

fn checked(expression: &str) -> (Option<i32>, String) {
    let output = injectd(&["manifest", "check", "-"], &input(expression, "Ignore"));
    (output.status.code(), text(&output.stdout).to_owned())
}

/// The API server does not store them.
#[test]
fn conditions_that_are_too_deep_are_named() {
    for expression in [
        format!("object{} == 1", ".a".repeat(20_000)),
        format!("1{} == 1", "-1".repeat(20_000)),
        format!("'x'{} == 'x'", "+'x'".repeat(10_000)),
        format!("{}true", "(".repeat(100_000)),
    ] {
        let (verdict, reason) = explained(&expression, "Fail");
        assert_eq!(verdict, "unknown");
        assert!(reason.len() < 300, "{reason}");
        let (code, findings) = checked(&expression);
        assert_eq!(code, Some(3));
        assert!(findings.contains("one: it does not compile: it "), "{findings}");
    }
}

#[test]
fn a_long_condition_is_evaluated() {
    let expression = format!("{}true", "true || ".repeat(12_000));
    assert_eq!(explained(&expression, "Fail").0, "called");
    assert_eq!(checked(&expression).0, Some(0));
    let (code, findings) = checked(&"true || ".repeat(100_000));
    assert_eq!(code, Some(3));
    assert!(findings.contains("it has 800000 code points; 100000 are allowed"), "{findings}");
}

#[test]
fn the_failure_policy_decides_about_conditions_that_cost_too_much() {
    let list = "object.spec.containers";
    let costly = format!("{list}.all(a, {list}.all(b, {list}.all(c, a.name != '' || b == c)))");
    for (policy, verdict) in [("Fail", "rejected"), ("Ignore", "notCalled")] {
        let (found, reason) = explained(&costly, policy);
        assert_eq!(found, verdict);
        let text =
            "matchConditions: one fails: it costs more than 1000000, the limit of an API server";
        assert_eq!(reason, text);
    }
    assert_eq!(checked(&costly).0, Some(0));
}

#[test]
fn work_that_an_api_server_takes_for_cheap_is_bounded() {
    let doubled = (0..40).fold("[[1]]".to_owned(), |list, _| list + ".map(x, x + x)");
    let long = "x".repeat(1000);
    let replaced = format!("'{long}'.replace('x', '{long}').replace('x', '{long}')");
    for expression in [format!("{doubled}.size() == 1"), format!("{replaced} == ''")] {
        let (verdict, reason) = explained(&expression, "Fail");
        assert_eq!(verdict, "unknown", "{reason}");
        assert!(reason.ends_with("it reads and writes more than 128 MiB"), "{reason}");
    }
}
