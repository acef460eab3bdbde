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
    objections
        .iter()
        .map(|objection| format!("{}: {}", text(&objection["by"]), text(&objection["text"])))
        .collect()
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
    let exhausted =
        "ResourceQuota it: requests.cpu: the pod takes 1, 39500m is used, and the quota allows 40";
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
        [
            "LimitRange it: the pod: ephemeral-storage: no request is set, but the minimum of 10Mi needs \
             one"
        ]
    );
    let above =
        "config.linkerd.io/proxy-cpu-limit: 100m, config.linkerd.io/proxy-cpu-request: 500m";
    let pod = input(&[], above, APP);
    // linkerd-init has the resources of the proxy.
    let text = |container| {
        format!("container {container}: the cpu request of 500m is above the limit of 100m")
    };
    let both = ["linkerd-init", "linkerd-proxy"];
    assert_eq!(
        linkerd(&pod),
        both.map(|problem| format!("the validation of pods: {}", text(problem)))
    );
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
    let windows = format!("os: {{name: windows}}, securityContext: {{runAsNonRoot: true}}, {APP}");
    let restricted = "pod-security.kubernetes.io/enforce: restricted";
    assert_eq!(linkerd(&labelled(restricted, &windows)), NOTHING);
}

#[test]
fn a_release_that_is_not_one_is_a_wrong_flag() {
    for version in ["latest", "1.36.nonsense", "1.x", "1.36.", ""] {
        let output = injectd(&["explain", "-", "--kubernetes-version", version], "");
        assert_eq!(output.status.code(), Some(64), "{version}");
        let error = text(&output.stderr);
        let parts = ["--kubernetes-version", "not a release of Kubernetes: write 1.36, 1.36.3"];
        assert!(parts.iter().all(|part| error.contains(part)), "{version}: {error}");
    }
}

#[test]
fn a_note_says_as_which_release_a_pod_is_judged() {
    for (version, judged) in [("1.40", "1.37"), ("1.25", "1.34"), ("1.0", "1.34")] {
        let items = explained(&["-", "--kubernetes-version", version], &input(&[], "", APP));
        let note = format!(
            "the checks of Kubernetes {version} are not known, only those of 1.34 to 1.37: what objects to \
             the pod is that of {judged}"
        );
        let notes = items[0]["notes"].as_array().expect("notes");
        assert!(notes.contains(&note.as_str().into()), "{notes:?}");
    }
    let known = explained(&["-", "--kubernetes-version", "v1.36.3"], &input(&[], "", APP));
    assert!(!known[0].to_string().contains("are not known, only"), "{known:?}");
}

/// Types are checked before the webhooks are called: no mesh gives such a pod a sidecar.
#[test]
fn a_pod_that_the_api_server_cannot_read_is_refused() {
    let files = Files::valid();
    let container = |fields: &str| format!("containers: [{{name: app, image: a:1, {fields}}}]");
    for (annotations, spec, path) in [
        ("", container("resources: []"), "spec.containers[0].resources"),
        ("", container("resources: {limits: \"5\"}"), "spec.containers[0].resources.limits"),
        ("", container("resources: {limits: [a]}"), "spec.containers[0].resources.limits"),
        ("", container("resources: {limits: {cpu: x}}"), "spec.containers[0].resources.limits.cpu"),
        (
            "",
            container("securityContext: {runAsUser: x}"),
            "spec.containers[0].securityContext.runAsUser",
        ),
        ("", container("ports: {}"), "spec.containers[0].ports"),
        ("", container("env: [{name: A, value: 5}]"), "spec.containers[0].env[0].value"),
        ("", container("volumeMounts: [5]"), "spec.containers[0].volumeMounts[0]"),
        ("", format!("overhead: {{cpu: x}}, {APP}"), "spec.overhead.cpu"),
        ("", format!("hostNetwork: \"true\", {APP}"), "spec.hostNetwork"),
        ("", format!("volumes: {{}}, {APP}"), "spec.volumes"),
        ("", format!("securityContext: [], {APP}"), "spec.securityContext"),
        ("", format!("initContainers: {{}}, {APP}"), "spec.initContainers"),
        ("", "containers: {}".to_owned(), "spec.containers"),
        ("", "containers: [5]".to_owned(), "spec.containers[0]"),
        ("a: 5", APP.to_owned(), "metadata.annotations.a"),
        ("linkerd.io/inject: true", APP.to_owned(), "metadata.annotations.linkerd.io/inject"),
    ] {
        let input = input(&[], annotations, &spec);
        for items in [explained(&["-"], &input), explained(&args(&["-"], files.paths()), &input)] {
            let later = later(&items[0]);
            let begin = format!("the decoding of pods: {path} is ");
            assert!(later.len() == 1 && later[0].starts_with(&begin), "{path}: {later:?}");
            assert_eq!(items[0]["isRejected"], true, "{path}");
            let advice = items[0]["advice"].as_str().expect("advice");
            let begin = ["Correct the type of the field: ", "Quote the value in the manifest: "];
            assert!(begin.iter().any(|begin| advice.starts_with(begin)), "{advice}");
        }
        let output = injectd(&["explain", "-"], &input);
        let shown = text(&output.stdout);
        assert!(shown.contains("\nBefore the webhooks\n"), "{shown}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let verdict = format!("Verdict: refused, by the decoding of pods: {path} is ");
        assert!(words.contains(&verdict), "{shown}");
    }
}

/// A workload of Kubernetes is refused itself; a custom resource is not.
#[test]
fn a_template_that_the_api_server_cannot_read_is_named_by_its_path() {
    let template = "template: {spec: {containers: [{name: app, image: a:1, ports: {}}]}}";
    let job = format!("jobTemplate: {{spec: {{{template}}}}}");
    for (kind, api, spec, place) in [
        ("Deployment", "apps/v1", template, "the decoding of Deployments: spec.template."),
        ("Job", "batch/v1", template, "the decoding of Jobs: spec.template."),
        ("CronJob", "batch/v1", &job, "the decoding of CronJobs: spec.jobTemplate.spec.template."),
        ("Rollout", "argoproj.io/v1alpha1", template, "the decoding of pods: spec.template."),
    ] {
        let input = format!(
            "apiVersion: {api}\nkind: {kind}\nmetadata: {{name: it, namespace: shop}}\nspec: {{{spec}}}\n"
        );
        let item = &explained(&["-"], &input)[0];
        let expected = format!("{place}spec.containers[0].ports is an object, but must be a list");
        assert_eq!(later(item), [expected]);
        let shown = text(&injectd(&["explain", "-"], &input).stdout).to_owned();
        assert!(!shown.contains("also without it"), "{shown}");
    }
}

#[test]
fn policies_that_kubernetes_cannot_read_are_an_error() {
    let quota = input(&[("ResourceQuota", "spec: {hard: {pods: many}}")], "", APP);
    let limits = input(&[("LimitRange", "spec: {limits: [{type: Pod, max: [5]}]}")], "", APP);
    let label = "pod-security.kubernetes.io/enforce-version: 1.25";
    let namespace = input(&[], "", APP).replace("istio-injection: enabled", label);
    for (input, problem) in [
        (quota, "cannot read ResourceQuota it: spec.hard.pods is \"many\""),
        (limits, "cannot read LimitRange it: spec.limits[0].max is a list"),
        (
            namespace,
            "cannot read Namespace shop: metadata.labels.pod-security.kubernetes.io/enforce-version is 1.25",
        ),
    ] {
        let output = injectd(&["explain", "-"], &input);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(problem), "{error}");
    }
}

/// What to do differs with what refuses the pod.
#[test]
fn the_advice_is_about_what_refuses_the_pod() {
    let disabled = "linkerd.io/inject: disabled";
    let app = "containers: [{name: app, image: a:1, resources: {requests: {cpu: \"2\"}}}]";
    let quota = |fields: &str| input(&[("ResourceQuota", fields)], disabled, app);
    let uncounted = quota("spec: {hard: {pods: \"5\"}}\nstatus: {hard: {pods: \"5\"}}");
    let exceeded = quota("spec: {hard: {cpu: \"1\"}}");
    let missing = quota("spec: {hard: {limits.cpu: \"1\"}}");
    let above = app.replace("requests", "limits: {cpu: 1}, requests");
    for (input, advice) in [
        (
            uncounted,
            "In a cluster, wait until Kubernetes has counted what is used for ResourceQuota it: it takes \
             seconds, unless kube-controller-manager does not run. In a file, remove status from \
             ResourceQuota it: then nothing counts as used.",
        ),
        (
            exceeded,
            "Reduce what the pod takes, or raise ResourceQuota it: cpu: the pod takes 2, 0 is used, and \
             the quota allows 1. It is refused without a sidecar as well.",
        ),
        (
            missing,
            "Change the pod as ResourceQuota it asks: limits.cpu: every container must have a cpu limit; \
             without one: app. It is refused without a sidecar as well.",
        ),
        (
            input(&[], disabled, &above),
            "Correct the pod: container app: the cpu request of 2 is above the limit of 1. It is refused \
             without a sidecar as well.",
        ),
    ] {
        assert_eq!(explained(&["-"], &input)[0]["advice"], advice);
    }
}
