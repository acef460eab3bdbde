//! What `explain` says of settings in the wrong place, of workloads that Kubernetes does not know, of
//! Jobs, and of what it did not look at.

use serde_json::{Value, json};

use super::{example, explained, injectd, text};
use crate::istio::{Files, args};

/// Namespace `shop`, which asks for both meshes.
const SHOP: &str = "apiVersion: v1
kind: Namespace
metadata:
  name: shop
  annotations: {linkerd.io/inject: enabled}
  labels: {istio-injection: enabled}
---
";

/// A pod of it with this metadata.
fn pod(metadata: &str) -> String {
    format!(
        "{SHOP}apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: shop, {metadata}}}\n\
         spec:\n  containers: [{{name: app, image: example.com/app:1}}]\n"
    )
}

/// A workload with a pod template at `spec.template`.
fn workload(kind: &str, metadata: &str, template: &str) -> String {
    format!(
        "{SHOP}{kind}\nmetadata: {{name: web, namespace: shop, {metadata}}}\nspec:\n  template:\n    \
         metadata: {{{template}}}\n    spec:\n      containers: [{{name: app, image: example.com/app:1}}]\n"
    )
}

/// What is said of keys: `layer key: text`.
fn said(item: &Value) -> Vec<String> {
    let ignored = item["ignored"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |ignored: &Value| {
        format!("{} {}: {}", text(&ignored["layer"]), text(&ignored["key"]), text(&ignored["text"]))
    };
    ignored.iter().map(line).collect()
}

/// The only item, explained with Linkerd.
fn linkerd(input: &str) -> Value {
    let items = explained(&["-"], input);
    assert_eq!(items.len(), 1);
    items[0].clone()
}

/// The only item, explained with a small configuration of Istio.
fn istio(input: &str) -> Value {
    let files = Files::valid();
    let items = explained(&args(&["-"], files.paths()), input);
    assert_eq!(items.len(), 1);
    items[0].clone()
}

fn notes(item: &Value) -> Vec<&str> {
    let notes = item["notes"].as_array().into_iter().flatten();
    notes.filter_map(Value::as_str).collect()
}

#[test]
fn annotations_of_the_workload_itself_are_named_with_their_place() {
    let metadata =
        "annotations: {linkerd.io/inject: disabled, config.linkerd.io/proxy-cpu-request: 100m}";
    let found = linkerd(&workload("apiVersion: apps/v1\nkind: Deployment", metadata, "labels: {}"));
    let text = "nothing reads it in metadata.annotations; it belongs into \
                spec.template.metadata.annotations";
    assert_eq!(
        said(&found),
        [
            format!("workload linkerd.io/inject: {text}"),
            format!("workload config.linkerd.io/proxy-cpu-request: {text}"),
        ]
    );
    let metadata = "annotations: {sidecar.istio.io/inject: \"false\"}, labels: {istio.io/rev: a}";
    let found = istio(&workload("apiVersion: apps/v1\nkind: Deployment", metadata, "labels: {}"));
    let text = |map: &str| {
        format!("nothing reads it in metadata.{map}; it belongs into spec.template.metadata.labels")
    };
    assert_eq!(
        said(&found),
        [
            format!("workload sidecar.istio.io/inject: {}", text("annotations")),
            format!("workload istio.io/rev: {}", text("labels")),
        ]
    );
}

#[test]
fn annotations_above_the_template_of_a_cronjob_are_named() {
    let input = format!(
        "{SHOP}apiVersion: batch/v1\nkind: CronJob\n\
         metadata: {{name: c, namespace: shop, annotations: {{linkerd.io/inject: disabled}}}}\n\
         spec:\n  schedule: \"0 * * * *\"\n  jobTemplate:\n    \
         metadata: {{annotations: {{linkerd.io/inject: disabled}}}}\n    spec:\n      template:\n        \
         spec:\n          restartPolicy: Never\n          \
         containers: [{{name: app, image: example.com/app:1}}]\n"
    );
    let text = |path: &str| {
        format!(
            "workload linkerd.io/inject: nothing reads it in {path}; it belongs into \
             spec.jobTemplate.spec.template.metadata.annotations"
        )
    };
    let expected = ["metadata.annotations", "spec.jobTemplate.metadata.annotations"].map(text);
    assert_eq!(said(&linkerd(&input)), expected);
}

#[test]
fn labels_and_annotations_of_namespaces_that_are_mixed_up_are_named() {
    let input = pod("labels: {}").replace(
        "  annotations: {linkerd.io/inject: enabled}\n  labels: {istio-injection: enabled}\n",
        "  labels: {linkerd.io/inject: enabled, istio-injecton: enabled}\n  \
         annotations: {istio-injection: enabled}\n",
    );
    let found = linkerd(&input);
    let expected = "namespace linkerd.io/inject: is a label; Linkerd reads the annotation";
    assert_eq!(said(&found), [expected]);
    assert_eq!(found["verdict"], "skipped");
    assert_eq!(
        said(&istio(&input)),
        [
            "namespace istio-injection: is an annotation; the webhooks read the label",
            "namespace istio-injecton: nothing reads it; did you mean istio-injection?",
        ]
    );
}

#[test]
fn keys_with_a_wrong_prefix_are_named() {
    let found = linkerd(&pod(
        "annotations: {linkerd.io/skip-outbound-ports: \"443\", linkerd/inject: enabled}",
    ));
    let expected = [
        "pod linkerd.io/skip-outbound-ports: nothing reads it; did you mean \
         config.linkerd.io/skip-outbound-ports?",
        "pod linkerd/inject: nothing reads it; did you mean linkerd.io/inject?",
    ];
    assert_eq!(said(&found), expected);
    let found = istio(&pod("labels: {istio.io/inject: \"true\"}"));
    let expected = "pod istio.io/inject: nothing reads it; did you mean sidecar.istio.io/inject?";
    assert_eq!(said(&found), [expected]);
}

#[test]
fn a_running_pod_of_istio_is_explained_without_what_the_injector_wrote() {
    let input = pod("annotations: {sidecar.istio.io/proxyImage: example.com/proxy:1}");
    let files = Files::valid();
    let injected = injectd(&args(&["inject", "-"], files.paths()), &input);
    let running = text(&injected.stdout);
    assert!(running.contains("sidecar.istio.io/status"), "{running}");
    let (mut before, mut after) = (istio(&input), istio(running));
    let notes = after["notes"].as_array_mut().expect("notes");
    assert_eq!(notes.remove(0), "the pod has its sidecar; this is how it would be injected now");
    assert_eq!(after.take(), before.take());
}

#[test]
fn pods_of_kinds_that_kubernetes_does_not_know_are_explained() {
    for (kind, name) in [
        ("apiVersion: argoproj.io/v1alpha1\nkind: Rollout", "Rollout"),
        ("apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet", "CloneSet"),
        ("apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet", "StatefulSet"),
        ("apiVersion: serving.knative.dev/v1\nkind: Service", "Service"),
        ("apiVersion: example.com/v1\nkind: Widget", "Widget"),
    ] {
        let found =
            linkerd(&workload(kind, "labels: {}", "annotations: {linkerd.io/inject: enabled}"));
        assert_eq!(
            (&found["object"]["kind"], &found["verdict"]),
            (&json!(name), &json!("injected"))
        );
        let expected = format!(
            "the pod is made from spec.template of {name}/web, which looks like a pod template; what \
             the controller of {name} adds to its pods is not known"
        );
        assert_eq!(notes(&found)[0], expected);
    }
}

/// A proxy that is not native keeps a Job from its end.
#[test]
fn a_pod_that_never_completes_is_named() {
    let native = "config.linkerd.io/proxy-enable-native-sidecar";
    let job = |flag: &str| {
        let annotations = format!("annotations: {{{native}: \"{flag}\"}}");
        let job = workload("apiVersion: batch/v1\nkind: Job", "labels: {}", &annotations);
        job.replace("      containers", "      restartPolicy: Never\n      containers")
    };
    let found = linkerd(&job("false"));
    let said =
        notes(&found).iter().any(|note| note.contains("container linkerd-proxy does not end"));
    assert!(said, "{found}");
    let advice = found["advice"].as_str().expect("advice");
    assert!(advice.contains(native), "{advice}");
    let found = linkerd(&job("true"));
    assert!(!notes(&found).iter().any(|note| note.contains("does not end")), "{found}");
    assert_eq!(found["advice"], "");
    let found = istio(&job("false"));
    let advice = found["advice"].as_str().expect("advice");
    assert!(advice.contains("ENABLE_NATIVE_SIDECARS=true"), "{advice}");
    // And so does inject.
    let files = Files::valid();
    let of_istio = args(&["inject", "-"], files.paths());
    for (command, flag, warns) in [
        (&["inject", "-"][..], "false", true),
        (&["inject", "-"], "true", false),
        (&of_istio, "", true),
    ] {
        let output = injectd(command, &job(flag));
        let stderr = text(&output.stderr);
        assert_eq!(stderr.contains("warning: the pod runs to completion"), warns, "{stderr}");
    }
}

#[test]
fn inject_and_explain_say_the_same_of_the_example() {
    let injected = injectd(&["inject", &example("deployment.yaml")], "");
    assert!(text(&injected.stderr).contains("deployment/web injected"));
    let found = explained(&[&example("deployment.yaml")], "");
    assert_eq!(found[0]["verdict"], "injected");
    assert_eq!(
        notes(&found[0])[1..],
        [
            "Namespace shop is not in the input: its labels are not known; it counts as annotated \
             linkerd.io/inject: enabled, as in inject",
            "no webhook configuration is in the input: whether one is called was not looked at",
        ]
    );
    // What the input has decides.
    let input = std::fs::read_to_string(example("deployment.yaml")).expect("the example");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n";
    assert_eq!(linkerd(&format!("{namespace}{input}"))["verdict"], "annotated");
}

#[test]
fn what_was_not_looked_at_is_said_for_istio() {
    let input = pod("labels: {}").replace("name: shop", "name: other");
    assert_eq!(
        notes(&istio(&input)),
        [
            "Namespace shop is not in the input: its labels and annotations are not known",
            "no webhook configuration is in the input: whether one is called was not looked at",
        ]
    );
    let complete = std::fs::read_to_string(example("explain.yaml")).expect("the example");
    let items = explained(&["-"], &complete);
    assert_eq!(notes(&items[0]), ["the pod is made from the template of Deployment/web"]);
}

/// The text has escapes for what is not printable, and so has JSON.
#[test]
fn keys_of_others_do_not_reach_the_terminal_raw() {
    let input = workload(
        "apiVersion: apps/v1\nkind: Deployment",
        r#"annotations: {"config.linkerd.io/\e[31mproxy\u202e": "\e[31m", linkerd.io/inject: "\e[2J"}"#,
        "labels: {}",
    );
    for format in ["text", "json", "yaml"] {
        let output = injectd(&["explain", "-o", format, "-"], &input);
        let shown = text(&output.stdout);
        assert!(shown.contains("proxy"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }
}
