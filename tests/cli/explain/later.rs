//! What objects to pods after the webhooks, as public reports had it wrong.

use serde_json::Value;

use super::{explained, injectd, text};
use crate::istio::{Files, args};

/// A namespace `shop` that asks for both meshes, with these objects, and a pod with these fields.
fn input(objects: &[(&str, &str)], annotations: &str, spec: &str) -> String {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {istio-injection: \
                     enabled}, annotations: {linkerd.io/inject: enabled}}\n";
    let object = |(kind, fields): &(&str, &str)| {
        format!(
            "---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: it, namespace: shop}}\n{fields}\n"
        )
    };
    let objects: String = objects.iter().map(object).collect();
    format!(
        "{namespace}{objects}---\napiVersion: v1\nkind: Pod\n\
         metadata: {{name: p, namespace: shop, annotations: {{{annotations}}}}}\nspec: {{{spec}}}\n"
    )
}

const APP: &str = "containers: [{name: app, image: example.com/app:1}]";

/// What objects: who and what.
fn later(item: &Value) -> Vec<String> {
    let objections = item["later"].as_array().expect("objections");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    objections.iter().map(|it| format!("{}: {}", text(&it["by"]), text(&it["text"]))).collect()
}

fn linkerd(input: &str) -> Vec<String> {
    let items = explained(&["-"], input);
    assert_eq!(items.len(), 1);
    later(&items[0])
}

/// Both meshes find the same.
fn both(input: &str) -> Vec<String> {
    let files = Files::valid();
    let items = explained(&args(&["-"], files.paths()), input);
    assert_eq!(items.len(), 1);
    let found = linkerd(input);
    assert_eq!(later(&items[0]), found);
    found
}

const NOTHING: [&str; 0] = [];

#[test]
fn defaults_of_a_limit_range_apply_to_the_sidecar() {
    let limits = "spec: {limits: [{type: Container, max: {cpu: \"2\"}, default: {cpu: 500m}, \
                  defaultRequest: {cpu: 100m}}]}";
    assert_eq!(linkerd(&input(&[("LimitRange", limits)], "", APP)), NOTHING);
    let limits = "spec: {limits: [{type: Container, default: {cpu: \"1\", memory: 1Gi}}]}";
    let quota = "spec: {hard: {limits.cpu: \"40\", limits.memory: 20Gi}}";
    let objects = [("LimitRange", limits), ("ResourceQuota", quota)];
    assert_eq!(linkerd(&input(&objects, "", APP)), NOTHING);
}

#[test]
fn limits_are_requests_for_a_quota() {
    let app = "containers: [{name: app, image: example.com/app:1, resources: {limits: {cpu: \"1\", \
               memory: 1Gi}}}]";
    let spec = "spec: {hard: {requests.cpu: \"40\", requests.memory: 20Gi}}";
    let disabled = "linkerd.io/inject: disabled";
    assert_eq!(linkerd(&input(&[("ResourceQuota", spec)], disabled, app)), NOTHING);
    let status = "status: {hard: {requests.cpu: \"40\", requests.memory: 20Gi}, used: \
                  {requests.cpu: 39500m, requests.memory: 1Gi}}";
    let quota = format!("{spec}\n{status}");
    let exhausted = "ResourceQuota it: requests.cpu is exhausted: 39500m of 40 are used, and the pod \
                     takes 1";
    assert_eq!(linkerd(&input(&[("ResourceQuota", &quota)], disabled, app)), [exhausted]);
}

#[test]
fn a_limit_range_of_a_file_is_completed() {
    let limits = "spec: {limits: [{type: Container, max: {cpu: \"8\", memory: 8Gi}}]}";
    assert_eq!(both(&input(&[("LimitRange", limits)], "", APP)), NOTHING);
    let limits = "spec: {limits: [{type: Container, default: {cpu: \"1\", memory: 1Gi}}]}";
    let quota = "spec: {hard: {requests.cpu: \"40\", requests.memory: 20Gi}}";
    let objects = [("LimitRange", limits), ("ResourceQuota", quota)];
    assert_eq!(both(&input(&objects, "", APP)), NOTHING);
}

#[test]
fn a_pod_and_the_resources_of_its_sidecar_are_checked() {
    let limits = "spec: {limits: [{type: Pod, min: {ephemeral-storage: 10Mi}}]}";
    assert_eq!(
        linkerd(&input(&[("LimitRange", limits)], "", APP)),
        ["LimitRange it: the pod: ephemeral-storage: no request, but at least 10Mi is asked for"]
    );
    let above =
        "config.linkerd.io/proxy-cpu-limit: 100m, config.linkerd.io/proxy-cpu-request: 500m";
    let pod = input(&[], above, APP);
    // linkerd-init has the resources of the proxy.
    let text = |container| {
        format!("container {container}: the cpu request of 500m is above the limit of 100m")
    };
    let both = ["linkerd-init", "linkerd-proxy"];
    assert_eq!(linkerd(&pod), both.map(|it| format!("the validation of pods: {}", text(it))));
    let items = explained(&["-"], &pod);
    let advice = items[0]["advice"].as_str().expect("advice");
    assert_eq!(
        advice,
        format!(
            "Change the settings of the sidecar, with which the pod is not valid: {}.",
            text("linkerd-init")
        )
    );
}

#[test]
fn pod_security_is_that_of_the_version() {
    let labelled = |labels: &str, spec: &str| {
        input(&[], "linkerd.io/inject: disabled", spec).replace("istio-injection: enabled", labels)
    };
    let probe = "containers: [{name: app, image: example.com/app:1, livenessProbe: {httpGet: {host: \
                 10.0.0.1, port: 80}}}]";
    let baseline = "pod-security.kubernetes.io/enforce: baseline";
    let text = "PodSecurity baseline: container app has the host 10.0.0.1 in livenessProbe.httpGet";
    assert_eq!(linkerd(&labelled(baseline, probe)), [text]);
    let of_1_33 = format!("{baseline}, pod-security.kubernetes.io/enforce-version: v1.33");
    assert_eq!(linkerd(&labelled(&of_1_33, probe)), NOTHING);
    let passed_by = explained(&["-", "--kubernetes-version", "1.33"], &labelled(baseline, probe));
    assert_eq!(later(&passed_by[0]), NOTHING);
    let windows = format!("os: {{name: windows}}, securityContext: {{runAsNonRoot: true}}, {APP}");
    let restricted = "pod-security.kubernetes.io/enforce: restricted";
    assert_eq!(linkerd(&labelled(restricted, &windows)), NOTHING);
}

#[test]
fn a_release_that_is_not_one_is_a_wrong_flag() {
    let output = injectd(&["explain", "-", "--kubernetes-version", "latest"], "");
    assert_eq!(output.status.code(), Some(64));
    let error = text(&output.stderr);
    assert!(error.contains("not a release of Kubernetes such as 1.36"), "{error}");
}
