//! Golden cases. Each directory has `object.yaml`, the expected result `expected.yaml`, and where
//! needed `values.yaml` (merged into the built-in values) and `namespace.yaml` (the namespace's
//! annotations).
//!
//! A third-party library applies the patch; injecting the result again must be a skip. `BLESS=1`
//! rewrites the expected results; review the diff.

#![expect(clippy::disallowed_types, reason = "objects of any shape")]

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::FutureExt as _;
use injectd_core::{
    linkerd::{
        snapshot::{Config, Snapshot},
        values::DEFAULT_VALUES,
    },
    standalone::Standalone,
};
use injectd_testkit::Injector;
use serde_json::{Value, json};

const TRUST_ROOTS: &[u8] =
    b"-----BEGIN CERTIFICATE-----\nnot a real one\n-----END CERTIFICATE-----\n";

#[test]
fn cases_give_the_expected_objects() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"));
    let mut cases = 0;
    for entry in fs::read_dir(folder).expect("tests/golden must be readable") {
        check(&entry.expect("an entry must be readable").path());
        cases += 1;
    }
    assert!(cases > 0, "no case in {}", folder.display());
}

fn check(case: &Path) {
    let mut object = read(&case.join("object.yaml")).expect("a case must have an object");
    let injector = injector_of(case);
    let first = review(&injector, &object);
    apply(&mut object, &first);
    let expected = case.join("expected.yaml");
    if std::env::var_os("BLESS").is_some() {
        let yaml = serde_saphyr::to_string(&object).expect("a tree must become YAML");
        fs::write(&expected, yaml).expect("expected.yaml must be writable");
    }
    let found = read(&expected).expect("a case must have an expectation: run with BLESS=1");
    assert_eq!(object, found, "{}", case.display());
    if first["auditAnnotations"]["verdict"] == "injected" {
        let second = review(&injector, &object);
        let reasons = second["auditAnnotations"]["reasons"].as_str().unwrap_or_default();
        assert!(reasons.contains("sidecar_already_exists"), "{}: {second}", case.display());
        assert!(second.get("patch").is_none(), "{}", case.display());
    }
}

fn injector_of(case: &Path) -> Injector {
    let mut values = yaml(DEFAULT_VALUES);
    if let Some(change) = read(&case.join("values.yaml")) {
        injectd_testkit::merge(&mut values, change);
    }
    let annotations = read(&case.join("namespace.yaml")).unwrap_or_else(|| json!({}));
    let annotations = annotations.as_object().expect("annotations must be a map");
    let annotations = annotations.iter().map(|(key, value)| {
        (key.clone(), value.as_str().expect("an annotation must be a string").to_owned())
    });
    let config = Config {
        values: &values.to_string(),
        trust_roots: TRUST_ROOTS,
        control_plane_namespace: "linkerd",
        fallback_release: None,
    };
    let snapshot = Snapshot::new(config, 1).expect("the values must be readable");
    Injector::new(snapshot, Standalone::annotated(annotations))
}

/// The `response` of the answer.
fn review(injector: &Injector, object: &Value) -> Value {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("shop");
    let request = json!({"uid": "u", "namespace": namespace, "object": object});
    let body = json!({ "request": request }).to_string().into_bytes();
    let answer = injector.review(&body).now_or_never().expect("must not wait");
    let answer = answer.expect("a review must be answered");
    let answer: Value = serde_json::from_slice(&answer.body).expect("an answer must be JSON");
    answer["response"].clone()
}

fn apply(object: &mut Value, response: &Value) {
    if let Some(patch) = response["patch"].as_str() {
        let patch = STANDARD.decode(patch).expect("a patch must be base64");
        let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("must be a patch");
        json_patch::patch(object, &patch).expect("the patch must apply");
    }
}

fn read(path: &Path) -> Option<Value> {
    fs::read_to_string(path).ok().map(|text| yaml(&text))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("a case must be YAML")
}

#[test]
fn the_review_of_the_load_tests_is_a_case() {
    let review: Value = serde_json::from_str(include_str!("../../../loadtest/review-12k.json"))
        .expect("a review is JSON");
    let case =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/pod-of-12k/object.yaml"));
    assert_eq!(Some(&review["request"]["object"]), read(case).as_ref());
}

#[test]
fn twenty_containers_and_a_mebibyte_of_annotations_are_injected() {
    let containers: Vec<_> = (0..20)
        .map(|n| json!({"name": format!("c{n}"), "ports": [{"containerPort": 20_000 - n}]}))
        .collect();
    let mut object = json!({"kind": "Pod", "spec": {"containers": containers}, "metadata": {
        "name": "large", "annotations": {"linkerd.io/inject": "enabled",
        "example.com/notes": "\"\\ü\n".repeat(1 << 17)}}});
    let injector = injector_of(Path::new("no case"));
    let response = review(&injector, &object);
    apply(&mut object, &response);
    let proxy = &object["spec"]["initContainers"][1];
    let ports = proxy["env"]
        .as_array()
        .expect("must exist")
        .iter()
        .find(|var| var["name"] == "LINKERD2_PROXY_INBOUND_PORTS");
    let ports = ports.expect("must exist")["value"].as_str().expect("must be text");
    assert_eq!(ports.split(',').count(), 20);
    assert!(ports.starts_with("19981,") && ports.ends_with(",20000"), "{ports}");
}

#[test]
fn a_v1beta1_review_gets_a_v1beta1_answer() {
    let injector = injector_of(Path::new("no case"));
    let body = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1",
        "request": {"uid": "u", "namespace": "shop", "object": {"kind": "Pod"}}})
    .to_string()
    .into_bytes();
    let answer = injector.review(&body).now_or_never().expect("must not wait");
    let answer = answer.expect("must be answered");
    let answer: Value = serde_json::from_slice(&answer.body).expect("must be JSON");
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
}
