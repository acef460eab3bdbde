use std::sync::LazyLock;

use injectd_testkit::generator::typos;
use serde_json::{Value, json};

use super::*;
use crate::{
    explain::{Workload, places::texts},
    linkerd::{snapshot::Config, trust_roots::EXAMPLE_TRUST_ROOTS, values::DEFAULT_VALUES},
};

static SNAPSHOT: LazyLock<Snapshot> = LazyLock::new(|| {
    let config = Config {
        values: DEFAULT_VALUES,
        trust_roots: EXAMPLE_TRUST_ROOTS,
        control_plane_namespace: "linkerd",
        fallback_release: None,
    };
    Snapshot::new(config, 1).expect("the values must be valid")
});

/// What is said of the keys around a pod: `layer key: text`.
fn said(pod: &Value, workload: Option<Workload<'_>>, namespace: &Value) -> Vec<String> {
    let keys = keys(&SNAPSHOT);
    let namespace_annotations = texts(Some(namespace), "annotations");
    let places = Places::of(pod, workload, Some(namespace), namespace_annotations);
    let mut said = Vec::new();
    for at in places.iter() {
        for &(key, value) in &at.entries {
            if let Some(problem) = keys.problem(&places, at, key, value) {
                let text = keys.text(&places, at, key, &problem);
                said.push(format!("{} {key}: {text}", at.place.layer().as_str()));
            }
        }
    }
    said
}

fn of_pod(key: &str) -> Vec<String> {
    said(&json!({"metadata": {"annotations": {key: "x"}}}), None, &Value::Null)
}

#[test]
fn one_mistake_in_a_key_is_found() {
    let keys = keys(&SNAPSHOT);
    let known = Annotation::all().filter(|annotation| SNAPSHOT.supports(*annotation));
    let known: Vec<_> = known.map(Annotation::key).chain([WEBHOOKS_LABEL]).collect();
    for key in &known {
        for typo in typos::of_key(key).filter(|typo| !known.contains(&&**typo)) {
            let found = keys.suggestions(&typo);
            assert!(found.contains(key), "{typo}: {found:?}");
            let said = of_pod(&typo);
            assert!(said.iter().any(|text| text.contains(key)), "{typo}: {said:?}");
        }
    }
}

#[test]
fn a_setting_under_another_prefix_is_found() {
    let known = Annotation::all().filter(|annotation| SNAPSHOT.supports(*annotation));
    for key in known.map(Annotation::key) {
        let (_, name) = key.split_once('/').expect("a prefix");
        for prefix in ["linkerd", "linkerd.io", "config.linkerd.io", "linkerd.com", "l.linkerd.io"]
        {
            let wrong = format!("{prefix}/{name}");
            if Annotation::of(&wrong).is_none() {
                let said = of_pod(&wrong);
                assert!(said.iter().any(|text| text.contains(name)), "{wrong}: {said:?}");
            }
        }
    }
}

#[test]
fn the_name_behind_the_prefix_decides() {
    for (key, expected) in [
        (
            "config.linkerd.io/inject",
            "the injector does not know it; did you mean linkerd.io/inject?",
        ),
        ("config.linkerd.io/retries", "the injector does not know it"),
        ("config.linkerd.io/zzqqxx", "the injector does not know it"),
        ("config.linkerd.io/admission-webhooks", "is a label of Namespaces; nothing reads it here"),
        (
            "config.linkerd.io/admission-webhook",
            "the injector does not know it; did you mean config.linkerd.io/admission-webhooks in the \
             labels of the namespace?",
        ),
        (
            "linkerd.io/skip-outbound-ports",
            "nothing reads it; did you mean config.linkerd.io/skip-outbound-ports?",
        ),
        ("linkerd/inject", "nothing reads it; did you mean linkerd.io/inject?"),
        (
            "config.linkerd.io/proxy-id",
            "the injector does not know it; did you mean config.linkerd.io/proxy-gid or \
             config.linkerd.io/proxy-uid?",
        ),
    ] {
        assert_eq!(of_pod(key), [format!("pod {key}: {expected}")]);
    }
    // Keys of others, and those that Linkerd itself writes.
    for key in [
        "app",
        "inject",
        "sidecar.istio.io/inject",
        "sidecar.istio.io/proxyCPU",
        "dapr.io/enabled",
        "linkerd.io/control-plane-component",
        "linkerd.io/created-by",
        "linkerd.io/proxy-deployment",
        "linkerd.io/extension",
        "viz.linkerd.io/tap-enabled",
        "retry.linkerd.io/http",
    ] {
        assert_eq!(of_pod(key), [""; 0], "{key}");
    }
}

#[test]
fn a_key_that_is_elsewhere_is_named_with_its_place() {
    let inject = Annotation::Inject.key();
    let log_level = Annotation::LogLevel.key();
    let metadata = |map: &str, key: &str| json!({"metadata": {map: {key: "x"}}});
    let pod = json!({});
    let cronjob = json!({
        "metadata": {"annotations": {inject: "disabled"}},
        "spec": {"jobTemplate": metadata("labels", log_level)},
    });
    let workload = Workload { object: &cronjob, prefix: "/spec/jobTemplate/spec/template" };
    let namespace = metadata("labels", inject);
    let right = "spec.jobTemplate.spec.template.metadata.annotations";
    assert_eq!(
        said(&pod, Some(workload), &namespace),
        [
            format!(
                "workload {inject}: nothing reads it in metadata.annotations; it belongs into {right}"
            ),
            format!(
                "workload {log_level}: nothing reads it in spec.jobTemplate.metadata.labels; it \
                 belongs into {right}"
            ),
            format!("namespace {inject}: is a label; Linkerd reads the annotation"),
        ]
    );
    let namespace = metadata("annotations", WEBHOOKS_LABEL);
    let expected =
        format!("namespace {WEBHOOKS_LABEL}: is an annotation; the webhooks read the label");
    assert_eq!(said(&pod, None, &namespace), [expected]);
    // A copy of what is in the right place does not mislead.
    let pod = metadata("annotations", inject);
    let object = metadata("annotations", inject);
    let workload = Workload { object: &object, prefix: "/spec/template" };
    assert_eq!(said(&pod, Some(workload), &metadata("labels", inject)), [""; 0]);
}
