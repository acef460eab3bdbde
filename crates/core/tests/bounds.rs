//! Denials, warnings, names in the log and events in the queue are limited in size for any review.

#![expect(clippy::disallowed_types, reason = "answers are looked into as trees")]

use std::sync::Arc;

use futures_util::FutureExt as _;
use injectd_core::{
    injector::Answer,
    linkerd::{
        snapshot::{Config, Snapshot},
        values::DEFAULT_VALUES,
    },
    objects::Objects,
    outcome::{MAX_DENIAL_BYTES, MAX_WARNINGS},
    standalone::Standalone,
};
use injectd_k8s::names::MAX_SUBDOMAIN_BYTES;
use injectd_testkit::Injector;
use serde_json::{Value, json};

/// Largest request of an API server.
const LARGE: usize = 3 << 20;

fn injector() -> Injector {
    let config = Config {
        values: DEFAULT_VALUES,
        trust_roots: b"roots",
        control_plane_namespace: "linkerd",
        fallback_release: None,
    };
    let snapshot = Snapshot::new(config, 1).expect("the built-in values must be read");
    let objects = "kind: Namespace\nmetadata: {name: shop}\n";
    let objects = Arc::new(Objects::parse(objects).expect("objects"));
    Injector::new(snapshot, Standalone::ListedInPart(objects))
}

/// A review of a pod in a namespace, as JSON.
fn review(namespace: &str, metadata: &Value) -> Vec<u8> {
    let spec = json!({"containers": [{"name": "web"}]});
    let object = json!({"kind": "Pod", "metadata": metadata, "spec": spec});
    let request = json!({"uid": "u", "namespace": namespace, "object": object});
    json!({"request": request}).to_string().into_bytes()
}

fn answer<'a>(injector: &'a Injector, body: &'a [u8]) -> (Answer<'a>, Value) {
    let answer = injector.review(body).now_or_never().expect("must not wait");
    let answer = answer.expect("a review must be answered");
    let response: Value = serde_json::from_slice(&answer.body).expect("an answer must be JSON");
    (answer, response["response"].clone())
}

fn annotated(annotation: &str, value: &str) -> Value {
    json!({"name": "web", "annotations": {"linkerd.io/inject": "enabled", annotation: value}})
}

#[test]
fn a_denial_quotes_a_kibibyte_at_most() {
    let key = format!("{}.linkerd.io/x", "k".repeat(1 << 20));
    let injector = injector();
    for body in [
        review(&"n".repeat(LARGE), &json!({"name": "web"})),
        review("shop", &json!({"name": "web", "annotations": {key: 7}})),
    ] {
        let (_, response) = answer(&injector, &body);
        assert_eq!(response["allowed"], false);
        let reason = response["status"]["message"].as_str().expect("a reason");
        assert!((1..=MAX_DENIAL_BYTES).contains(&reason.len()), "{}", reason.len());
        assert!(reason.contains('…'), "{reason}");
        assert!(response.to_string().len() < 2 * MAX_DENIAL_BYTES);
    }
}

#[test]
fn a_million_mistakes_lead_to_ten_warnings_and_a_count() {
    let injector = injector();
    let body = review("shop", &annotated("config.linkerd.io/opaque-ports", &",".repeat(1_000_000)));
    let (found, response) = answer(&injector, &body);
    let warnings = response["warnings"].as_array().expect("warnings");
    assert_eq!(warnings.len(), MAX_WARNINGS + 1);
    assert_eq!(warnings[MAX_WARNINGS], "and 999990 more warnings");
    assert_eq!(found.outcome.warnings.total(), 1_000_000);
    assert!(found.body.len() < 50_000, "{}", found.body.len());
}

#[test]
fn an_invalid_list_of_variables_is_not_quoted() {
    const SECRET: &str = "S3CRETVALUE";
    let injector = injector();
    for list in [
        r#"[{"name":"T","value":"S3CRETVALUE"},"#,
        r#"[{"name":"T","value":"S3CRETVALUE","valueFrom":1}]"#,
        r#"[{"name":"T","value":["S3CRETVALUE"]}]"#,
        r#""S3CRETVALUE""#,
    ] {
        let body = review("shop", &annotated("config.linkerd.io/proxy-additional-env", list));
        let (found, response) = answer(&injector, &body);
        assert_eq!(response["warnings"].as_array().map_or(0, Vec::len), 1, "{list}");
        assert!(!String::from_utf8_lossy(&found.body).contains(SECRET), "{list}");
        // The text of the log line.
        assert!(found.outcome.warnings.lines().all(|line| !line.contains(SECRET)), "{list}");
    }
}

#[test]
fn names_in_the_log_are_limited_to_the_length_of_valid_names() {
    let injector = injector();
    let body = review(&"n".repeat(LARGE), &json!({"generateName": "ä".repeat(LARGE)}));
    let (found, _) = answer(&injector, &body);
    assert!(found.outcome.name.len() <= MAX_SUBDOMAIN_BYTES);
    assert!(found.outcome.namespace.len() <= MAX_SUBDOMAIN_BYTES);
}

#[test]
fn an_owner_that_cannot_exist_gets_no_event() {
    let injector = injector();
    for inject in ["enabled", "disabled"] {
        let event = |kind: &str, name: &str, uid: &str| {
            let owner = json!({"kind": kind, "name": name, "uid": uid});
            let annotations = json!({"linkerd.io/inject": inject});
            let body = review(
                "shop",
                &json!({"name": "web", "annotations": annotations, "ownerReferences": [owner]}),
            );
            answer(&injector, &body).0.outcome.event.is_some()
        };
        let (name, long) = ("n".repeat(MAX_SUBDOMAIN_BYTES), "n".repeat(LARGE));
        assert!(event("StatefulSet", &name, "u"), "{inject}");
        assert!(!event("StatefulSet", &long, "u"), "{inject}");
        assert!(!event("StatefulSet", "n", &long), "{inject}");
        assert!(!event(&long, "n", "u"), "{inject}");
    }
}
