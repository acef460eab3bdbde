//! The memory of many templates, counted in bytes that are allocated: without the memory of answers, which has
//! a limit of its own.

#![expect(clippy::disallowed_types, reason = "templates and pods are trees here")]

use std::sync::Arc;

use allocation_counter::measure;
use futures_util::FutureExt as _;
use injectd_core::{
    injector::Injector, objects::Objects, outcome::Verdict, standalone::Standalone,
};
use injectd_templates::Template;
use injectd_templates_mesh::Templates;
use serde_json::{Value, json};

const TEMPLATES: usize = 500;
const REVISIONS: usize = 2;
/// Bytes of a template as JSON, at least.
const TEMPLATE_BYTES: usize = 4 << 10;
const NAMESPACES: usize = 1_000;
const PODS: usize = 10_000;
/// What is held today; the goal is 64 MiB.
const MAX_BYTES: i64 = 192 << 20;

fn key(at: usize) -> String {
    format!("sidecar-{at}.example.com/inject")
}

/// A revision of a template with a label that switches it on.
fn template(at: usize, revision: usize) -> Value {
    let mut env: Vec<_> = (0..)
        .map(|number| json!({"name": format!("SETTING_{number}"), "value": "a value of some length"}))
        .take(64)
        .collect();
    env.push(json!({"name": "NAMESPACE", "value": "${object.metadata.namespace}"}));
    env.push(json!({"name": "LEVEL", "value": "${params.level}"}));
    let container = json!({"name": format!("agent-{at}"), "image": format!("agent:{revision}"),
        "env": env, "volumeMounts": [{"name": format!("data-{at}"), "mountPath": "/data"}]});
    let template = json!({
        "apiVersion": "injectd.dev/v1alpha1", "kind": "ClusterSidecarTemplate",
        "metadata": {"name": format!("agent-{at}")},
        "spec": {
            "enablement": {"key": key(at), "in": ["PodLabel", "NamespaceLabel"], "default": "Disabled"},
            "parameters": [{"name": "level", "type": "String", "default": "info",
                "from": [{"podAnnotation": format!("sidecar-{at}.example.com/level")}]}],
            "steps": [{"name": "agent", "overlay": {"spec": {"containers": [container],
                "volumes": [{"name": format!("data-{at}"), "emptyDir": {}}]}}}],
        },
    });
    assert!(template.to_string().len() >= TEMPLATE_BYTES, "{}", template.to_string().len());
    template
}

/// The templates of a revision.
fn templates(revision: usize) -> Templates {
    let read = |at| Template::read(&template(at, revision)).expect("the template must be right");
    Templates::new((0..TEMPLATES).map(read), None, 1).without_memory()
}

fn namespaces() -> Standalone {
    let mut objects = Objects::default();
    for at in 0..NAMESPACES {
        let metadata =
            json!({"name": format!("namespace-{at}"), "labels": {"team": format!("team-{at}")}});
        objects.add(&json!({"kind": "Namespace", "metadata": metadata})).expect("an object");
    }
    Standalone::Listed(Arc::new(objects))
}

/// A pod that asks for two templates.
fn review(at: usize) -> Vec<u8> {
    let labels = json!({key(at % TEMPLATES): "true", key(at / TEMPLATES): "true"});
    let pod = json!({"metadata": {"name": format!("pod-{at}"), "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "app"}]}});
    let namespace = format!("namespace-{}", at % NAMESPACES);
    let review = json!({"request": {"uid": "1", "kind": {"kind": "Pod"}, "namespace": namespace, "object": pod}});
    review.to_string().into_bytes()
}

#[test]
#[ignore = "takes minutes without optimization: just templates-memory"]
fn many_templates_take_little_memory() {
    let mut kept = Vec::new();
    let counted = measure(|| {
        let namespaces = namespaces();
        for revision in 0..REVISIONS {
            kept.push(Injector::new(templates(revision), namespaces.clone()));
        }
    });
    let read = counted.bytes_current;
    let counted = measure(|| {
        for at in 0..PODS {
            let injector = &kept[at % REVISIONS];
            let review = review(at);
            let answer = injector.review(&review).now_or_never().expect("nothing to wait for");
            assert_eq!(answer.expect("an answer").outcome.verdict, Verdict::Injected);
        }
    });
    let after = read + counted.bytes_current;
    let mib = |bytes: i64| bytes >> 20;
    print_line(&format!(
        "{TEMPLATES} templates with {REVISIONS} revisions: {} MiB, after {PODS} pods {} MiB ({after} bytes)",
        mib(read),
        mib(after),
    ));
    assert!(after <= MAX_BYTES, "{after}");
}

#[expect(clippy::print_stderr, reason = "a person reads what the test counted")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
