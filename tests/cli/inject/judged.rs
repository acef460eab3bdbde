//! What `inject` says of input that it takes, refuses or doubts: settings without effect, templates, keys
//! that are written twice, results that an API server refuses, kinds and names that it does not read.

use injectd::yaml;
use injectd_testkit::istio::{CONFIG, MESH, VALUES};
use serde_json::{Value, json};

use super::super::{example, file, injectd, text};
use super::{POD, injected};

/// A pod with these annotations, and one container with these fields.
fn pod(annotations: &Value, container: &Value) -> String {
    let mut app = json!({"name": "app", "image": "example.com/app:1"});
    let fields = container.as_object().expect("fields").clone();
    app.as_object_mut().expect("a mapping").extend(fields);
    json!({"kind": "Pod", "metadata": {"name": "web", "annotations": annotations},
        "spec": {"containers": [app]}})
    .to_string()
}

/// The lines on stderr of a run with this exit code.
fn said(args: &[&str], stdin: &str, code: i32) -> String {
    let output = injectd(&[&["inject"], args].concat(), stdin);
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    text(&output.stderr).to_owned()
}

/// The documents as kubectl reads them.
fn read(manifests: &str) -> Vec<Value> {
    yaml::stream(manifests).map(|document| document.expect("YAML").value).collect()
}

#[test]
fn settings_without_effect_are_warned_of_and_injected_as_upstream_does() {
    let annotations = json!({"linkerd.io/inject": "enabled",
        "config.linkerd.io/skip-outbound-ports": "443,[4222]",
        "config.linkerd.io/skip-inbound-ports": "https"});
    let pod = pod(&annotations, &json!({}));
    let stderr = said(&[], &pod, 0);
    let end =
        "is not a port or a range of ports, such as 22 or 8100-8102; linkerd-init leaves it out";
    for (key, item) in [("skip-outbound-ports", "[4222]"), ("skip-inbound-ports", "https")] {
        let line = format!("  warning: config.linkerd.io/{key}: \"{item}\" {end}\n");
        assert!(stderr.contains(&line), "{stderr}");
    }
    assert!(!stderr.contains("\"443\""), "{stderr}");
    assert!(injected(&[], &pod).contains("443,[4222]"), "the proxy gets what upstream gives it");
    said(&["--fail-on", "warning"], &pod, 3);
    let output = injectd(&["explain", "-o", "json", "-"], &pod);
    assert!(text(&output.stdout).contains("linkerd-init leaves it out"), "{output:?}");
}

#[test]
fn flags_refuse_what_annotations_are_warned_of() {
    for (flag, key, value) in [
        ("--skip-inbound-ports", "skip-inbound-ports", "https"),
        ("--skip-subnets", "skip-subnets", "10.0.0.0"),
        ("--image-pull-policy", "image-pull-policy", "always"),
        ("--access-log", "access-log", "nginx"),
        ("--require-identity-on-inbound-ports", "proxy-require-identity-inbound-ports", "https"),
        ("--admin-port", "admin-port", "70000"),
        ("--proxy-log-format", "proxy-log-format", "xml"),
        ("--proxy-uid", "proxy-uid", "2147483648"),
        ("--proxy-version", "proxy-version", "v1 beta"),
        ("--proxy-cpu-request", "proxy-cpu-request", "-1"),
        ("--shutdown-grace-period", "shutdown-grace-period", "-1s"),
    ] {
        let stderr = said(&[&format!("{flag}={value}")], POD, 64);
        assert!(stderr.contains("expected "), "{flag}: {stderr}");
        let annotations = json!({format!("config.linkerd.io/{key}"): value});
        let stderr = said(&[], &pod(&annotations, &json!({})), 0);
        let begin = format!("  warning: config.linkerd.io/{key}: \"{value}\" is not ");
        assert_eq!(stderr.matches(&begin).count(), 1, "{stderr}");
    }
}

#[test]
fn a_template_is_named_as_one() {
    for template in [
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\nspec:\n  containers: []\n",
        "{{- if .Values.pod }}\nkind: Pod\n{{- end }}\n",
        "kind: Pod\nmetadata:\n  labels:\n    {{- include \"labels\" . | nindent 4 }}\n",
        "kind: Pod\nspec:\n  {{ toYaml .Values.spec }}\n",
    ] {
        let stderr = said(&[], template, 1);
        assert!(stderr.ends_with("; it looks like a template: render it first\n"), "{stderr}");
        let output = injectd(&["explain", "-"], template);
        assert!(text(&output.stderr).contains("render it first"), "{}", text(&output.stderr));
    }
    let stderr = said(&[], "kind: ConfigMap\ndata: {a: '{{ x }}'}\nb: [\n", 1);
    assert!(!stderr.contains("template"), "{stderr}");
}

#[test]
fn documents_that_are_not_edited_may_have_a_key_twice() {
    let volume = "kind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  storageClassName: slow\n  \
                  storageClassName: fast\n";
    let manifests = format!("{volume}---\n{POD}");
    let output = injectd(&["inject"], &manifests);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with(&format!("{volume}---\n")));
    assert!(text(&output.stdout).contains("linkerd-proxy"));
    assert!(!text(&output.stderr).contains("duplicate"), "{}", text(&output.stderr));
    let skipped = POD.replace("spec:\n", "spec:\n  hostNetwork: false\n  hostNetwork: true\n");
    assert_eq!(injected(&[], &skipped), skipped);
}

/// Pods with a key twice, and what a reader makes of each.
const TWICE: [(&str, &str, &str); 6] = [
    (
        "kind: Pod\nmetadata: {name: w}\nspec:\n  containers:\n  - name: a\n  containers:\n  - name: b\n",
        "kind: Pod\nmetadata: {name: w}\nspec:\n  containers:\n  - name: b\n",
        "line 6 column 3: duplicate mapping key: containers",
    ),
    (
        "kind: Pod\nspec: {containers: [{name: a}]}\nmetadata: {name: v}\nmetadata:\n  name: w\nspec:\n  containers:\n  - name: b\n",
        "kind: Pod\nmetadata:\n  name: w\nspec:\n  containers:\n  - name: b\n",
        "duplicate mapping key: metadata",
    ),
    (
        "kind: Pod\nmetadata: {name: v, name: w, annotations: {a: b}, annotations: {c: d}}\nspec: {containers: [{name: b}]}\n",
        "kind: Pod\nmetadata: {name: w, annotations: {c: d}}\nspec: {containers: [{name: b}]}\n",
        "duplicate mapping key: name",
    ),
    (
        r#"{"kind":"Pod","metadata":{"name":"w"},"spec":{"containers":[]},"spec":{"containers":[{"name":"b"}]}}"#,
        r#"{"kind":"Pod","metadata":{"name":"w"},"spec":{"containers":[{"name":"b"}]}}"#,
        "duplicate mapping key: spec",
    ),
    (
        "kind: List\nitems:\n- {kind: Secret}\nitems:\n- kind: Pod\n  metadata: {name: w}\n  spec:\n    containers:\n    - name: b\n",
        "kind: List\nitems:\n- kind: Pod\n  metadata: {name: w}\n  spec:\n    containers:\n    - name: b\n",
        "duplicate mapping key: items",
    ),
    (
        "kind: Pod\nmetadata: {name: w}\nspec:\n  volumes: []\n  containers:\n  - name: b\n    env: [{name: A, value: x}]\n    env: []\n  volumes:\n  - name: v\n    emptyDir: {}\n",
        "kind: Pod\nmetadata: {name: w}\nspec:\n  containers:\n  - name: b\n    env: []\n  volumes:\n  - name: v\n    emptyDir: {}\n",
        "duplicate mapping key: env",
    ),
];

#[test]
fn of_a_key_that_is_written_twice_the_last_counts_as_for_kubectl() {
    for (twice, once, warning) in TWICE {
        let output = injectd(&["inject"], twice);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert_eq!(read(text(&output.stdout)), read(&injected(&[], once)), "{twice}");
        let line = format!("{warning}; the last one counts\n");
        assert_eq!(stderr.matches(&line).count(), 1, "{stderr}");
        assert_eq!(read(&super::uninjected(text(&output.stdout))), read(once), "{twice}");
    }
}

#[test]
fn results_that_an_api_server_refuses_are_warned_of() {
    let twice = "kind: Pod\nmetadata: {name: w}\nspec:\n  containers:\n  - name: a\n  - name: a\n";
    let stderr = said(&[], twice, 0);
    let line = "  warning: the pod is not valid: two containers have the name \"a\"\n";
    assert!(stderr.contains(line), "{stderr}");
    let annotations = json!({"config.linkerd.io/proxy-memory-request": "1Gi",
        "config.linkerd.io/proxy-memory-limit": "1Mi"});
    let stderr = said(&[], &pod(&annotations, &json!({})), 0);
    let line = "the pod is not valid: container \"linkerd-proxy\": requests memory 1Gi, above its limit \
                of 1Mi\n";
    assert!(stderr.contains(line), "{stderr}");
    assert!(!said(&[], &pod(&json!({}), &json!({})), 0).contains("not valid"));
    // With --annotate, the webhook adds the sidecar later.
    assert!(!said(&["--annotate"], twice, 0).contains("not valid"));
}

#[test]
fn a_pod_of_istio_with_two_actions_or_two_proxies_is_not_valid() {
    let ports = "        ports:\n";
    let probe = "        readinessProbe: {httpGet: {path: /healthz/ready, port: 15021}}\n";
    let config = file("config", CONFIG.replacen(ports, &format!("{probe}{ports}"), 1));
    let (values, mesh) = (file("values", VALUES), file("mesh", MESH));
    let args = [
        "--mesh",
        "istio",
        "--injector-config",
        config.path(),
        "--values",
        values.path(),
        "--mesh-config",
        mesh.path(),
    ];
    let proxy = json!({"name": "istio-proxy", "image": "auto",
        "readinessProbe": {"exec": {"command": ["true"]}}});
    let of = |containers: Value| {
        json!({"kind": "Pod", "metadata": {"name": "w"}, "spec": {"containers": containers}})
            .to_string()
    };
    let app = json!({"name": "app", "image": "a:1"});
    let stderr = said(&args, &of(json!([app, proxy])), 0);
    let two = "the pod is not valid: container \"istio-proxy\": readinessProbe has both ";
    assert!(stderr.contains(two), "{stderr}");
    let mut twice: Value = serde_json::from_str(&of(json!([app]))).expect("JSON");
    twice["spec"]["initContainers"] = json!([{"name": "istio-proxy", "image": "auto"}]);
    let stderr = said(&args, &twice.to_string(), 0);
    assert!(stderr.contains("two containers have the name \"istio-proxy\"\n"), "{stderr}");
    assert!(!said(&args, &of(json!([app])), 0).contains("not valid"));
}

#[test]
fn a_whole_config_map_and_torn_pem_are_named_in_words() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: linkerd-config}\ndata:\n  values: |\n    a: b\n";
    for whole in [map.to_owned(), read(map)[0].to_string()] {
        let whole = file("whole", whole);
        let stderr = said(&["--values", whole.path()], POD, 1);
        let problem = "expected the key values of the ConfigMap linkerd-config, found a whole ConfigMap; \
                       write only the text of the key into the file\n";
        assert!(stderr.ends_with(problem), "{stderr}");
        let stderr = said(&["--trust-roots", whole.path()], POD, 1);
        assert!(stderr.contains("found a whole ConfigMap") || stderr.contains("no certificate"));
    }
    let torn = file("torn", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    let stderr = said(&["--trust-roots", torn.path()], POD, 1);
    let problem = "the section \"CERTIFICATE\" has no end\n";
    assert!(stderr.ends_with(problem), "{stderr}");
}

#[test]
fn a_kind_of_another_group_is_named_with_its_group() {
    let stateful_set = "apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  \
                        template:\n    spec:\n      containers: []\n";
    let stderr = said(&[], stateful_set, 0);
    let begin = "statefulset/db skipped: Linkerd's injector does not know the kind StatefulSet of \
                 apps.kruise.io; ";
    assert!(stderr.contains(begin), "{stderr}");
}

#[test]
fn names_that_are_not_texts_and_kinds_in_another_case_are_rejected_by_inject_and_explain() {
    let deployment = |metadata: &str| {
        format!(
            "kind: Deployment\nmetadata: {metadata}\nspec:\n  template:\n    spec:\n      containers: []\n"
        )
    };
    for (manifest, problem) in [
        (
            POD.replace("web}", "web, namespace: n}"),
            "metadata.namespace must be a text, but it is a boolean",
        ),
        (
            deployment("{name: w, namespace: 5}"),
            "metadata.namespace must be a text, but it is a number",
        ),
        (deployment("{name: 5}"), "metadata.name must be a text, but it is a number; quote it"),
        (
            POD.replace("{name: web}", "{generateName: [a]}"),
            "metadata.generateName must be a text, but",
        ),
        (POD.replace("kind: Pod", "kind: pod"), "kind pod is not known to Kubernetes; write Pod"),
        (
            deployment("{name: w}").replace("Deployment", "deployment"),
            "kind deployment is not known to Kubernetes; write Deployment",
        ),
    ] {
        let stderr = said(&[], &manifest, 1);
        assert!(stderr.contains(&format!(" rejected: {problem}")), "{stderr}");
        let output = injectd(&["explain", "-"], &manifest);
        assert!(text(&output.stderr).contains(problem), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{manifest}");
    }
    assert!(injected(&[], &POD.replace("web}", "web, namespace: 'n'}")).contains("linkerd-proxy"));
    assert_eq!(said(&[&example("pod.json")], "", 0).matches("rejected").count(), 0);
}
