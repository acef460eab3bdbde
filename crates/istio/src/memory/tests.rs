#![expect(clippy::disallowed_types, reason = "pods are written as trees")]

mod tenants;

use std::{
    collections::BTreeMap,
    fmt::{self, Debug, Formatter},
    future::ready,
    sync::Arc,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::FutureExt as _;
use injectd_core::{
    injector::{Injector as Core, ReviewError},
    lookups::{Asked, CallerFacts, Granted, NextTurn, NoTurn, Patience, Turn, Turns},
    outcome::TemplateLookup,
    standalone::Standalone,
};
use injectd_gotemplate::{GONE, STEPS_UNTIL_ASKED};
use injectd_memory::MAX_READ;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    envelope,
    mesh::Istio,
    release::Release,
    revision::{Files, Revision},
    strip::STATUS_ANNOTATION,
};

/// A mesh with one template.
fn mesh(template: &str) -> Istio {
    let config = json!({"policy": "enabled", "templates": {"sidecar": template,
        "volatile": "metadata: {annotations: {now: '{{ now }}'}}"}});
    let config = config.to_string();
    let files = Files {
        config: &config,
        values: "{}",
        mesh: "",
        shared_mesh: "",
        labels: &BTreeMap::new(),
        release: Some(Release::new(30, 0)),
        revision: "",
        environment: &BTreeMap::new(),
        allowed_functions: &[],
    };
    let revision = Revision::new(files).expect("a configuration");
    Istio::new(revision, Cluster::new(vec!["Kubernetes".to_owned()]), 1)
}

/// An injector with one template.
fn injector(template: &str) -> Core<Istio, Standalone> {
    Core::new(mesh(template), Standalone::default())
}

fn pod() -> Value {
    json!({
        "metadata": {"generateName": "web-", "labels": {"app": "web"}, "annotations": {"a": "1"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5", "controller": true}]},
        "spec": {"containers": [{"name": "web", "image": "web:1"}],
            "volumes": [{"name": "token-x", "emptyDir": {}}]},
    })
}

/// Whether the answer for a pod came from the memory.
fn is_known(injector: &Core<Istio, Standalone>, pod: &Value) -> bool {
    ask(injector, pod, None).expect("an answer").0
}

/// The same and the answer; an evaluation waits for its turn.
fn ask(
    injector: &Core<Istio, Standalone>,
    pod: &Value,
    turns: Option<&dyn Turns>,
) -> Result<(bool, Value), ReviewError> {
    ask_in(injector, "a", pod, turns)
}

/// The same in another namespace.
fn ask_in(
    injector: &Core<Istio, Standalone>,
    namespace: &str,
    pod: &Value,
    turns: Option<&dyn Turns>,
) -> Result<(bool, Value), ReviewError> {
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request":
        {"uid": "1", "kind": {"version": "v1", "kind": "Pod"}, "namespace": namespace,
            "object": pod}});
    let body = review.to_string();
    let facts = CallerFacts { path: "/inject", turns, ..CallerFacts::default() };
    let answered = envelope::review(injector, facts, body.as_bytes()).now_or_never();
    let answer = answered.expect("no wait")?;
    let response: Value = serde_json::from_slice(&answer.body).expect("JSON");
    Ok((answer.outcome.template == Some(TemplateLookup::Hit), response["response"].clone()))
}

/// Whether a pod that differs from the first at this place has its answer.
fn knows(template: &str, pointer: &str, value: Value) -> bool {
    let injector = injector(template);
    let mut other = pod();
    assert!(!is_known(&injector, &other));
    assert!(is_known(&injector, &other), "{template}");
    *other.pointer_mut(pointer).expect("a place") = value;
    is_known(&injector, &other)
}

const PROXY: &str = "spec: {containers: [{name: istio-proxy}], volumes: [{name: v, emptyDir: {}}]}";

#[test]
fn what_nothing_reads_makes_no_difference() {
    for (pointer, value) in [
        ("/metadata/annotations", json!({"b": "2"})),
        ("/metadata/labels", json!({"app": "other", "more": "1"})),
        ("/spec/containers/0/image", json!("web:2")),
        ("/spec/volumes/0/name", json!("token-y")),
        ("/spec/volumes", json!([{"name": "a", "secret": {}}, {"name": "b", "secret": {}}])),
    ] {
        assert!(knows(PROXY, pointer, value), "{pointer}");
    }
}

#[test]
fn what_is_read_makes_a_difference() {
    let reads_label = "metadata: {annotations: {x: '{{ index .ObjectMeta.Labels `app` }}'}}";
    let reads_image =
        "{{ range .Spec.Containers }}{{ if eq .Image `web:2` }}spec: {}{{ end }}{{ end }}";
    for (template, pointer, value) in [
        (PROXY, "/metadata/annotations", json!({"sidecar.istio.io/inject": "true"})),
        (PROXY, "/metadata/annotations", json!({"prometheus-io-port": "80"})),
        (PROXY, "/metadata/ownerReferences/0/name", json!("not.plain")),
        (PROXY, "/spec/containers/0/name", json!("istio-proxy")),
        (PROXY, "/spec/volumes/0/name", json!("v")),
        (PROXY, "/spec/volumes", json!([])),
        (PROXY, "/spec/volumes", Value::Null),
        (PROXY, "/spec/containers", json!([{"name": "web"}, {"name": "b"}])),
        (reads_label, "/metadata/labels/app", json!("other")),
        (reads_image, "/spec/containers/0/image", json!("web:2")),
        ("{{ if .Spec.Volumes }}spec: {}{{ end }}", "/spec/volumes", json!([])),
        ("labels: '{{ .ObjectMeta.Annotations }}'", "/metadata/annotations", json!({"b": "2"})),
    ] {
        assert!(!knows(template, pointer, value.clone()), "{template} {pointer} {value}");
    }
}

/// A template that copies the name of the owner in each way that the memory knows.
const COPIES: &str = "
metadata:
  labels:
    a: {{ index .ObjectMeta.Labels `none` | default .DeploymentMeta.Name | trunc 63 \
       | trimSuffix `-` | trimAll `-_.` | quote }}
spec:
  containers:
  - name: istio-proxy
    env:
    - name: A
      value: a/{{ with .DeploymentMeta.Name }}{{ . }}{{ end }}
    - name: B
      value: {{ .DeploymentMeta.Name }}
";

fn of_owner(name: &str) -> Value {
    let mut pod = pod();
    pod["metadata"]["ownerReferences"][0]["name"] = json!(name);
    pod
}

/// The patches for pods of owners with these names, and which came from the memory.
fn of_owners(template: &str, names: &[&str]) -> (Vec<String>, Vec<bool>) {
    let injector = injector(template);
    let anew = Core::new(mesh(template).without_memory(), Standalone::default());
    let answer = |name: &&str| {
        let (is_known, response) = ask(&injector, &of_owner(name), None).expect("an answer");
        let (_, expected) = ask(&anew, &of_owner(name), None).expect("an answer");
        assert_eq!(response, expected, "{template} {name}");
        let patch = BASE64_STANDARD.decode(response["patch"].as_str().expect("a patch"));
        (String::from_utf8(patch.expect("base64")).expect("a text"), is_known)
    };
    names.iter().map(answer).unzip()
}

#[test]
fn the_name_of_the_owner_is_a_slot_where_it_is_copied() {
    let names = ["web-5", "db", "not.plain", "x-1"];
    let (patches, known) = of_owners(COPIES, &names);
    assert_eq!(known, [false, true, false, true]);
    for (patch, name) in patches.iter().zip(names) {
        for expected in
            [format!("labels/a\",\"value\":\"{name}\""), format!("\"value\":\"a/{name}\"")]
        {
            assert!(patch.contains(&expected), "{patch}");
        }
    }
}

#[test]
fn the_name_of_the_owner_is_read_where_more_depends_on_it() {
    for template in [
        "metadata: {labels: {a: '{{ if eq .DeploymentMeta.Name `db` }}b{{ end }}'}}",
        "metadata: {labels: {a: '{{ upper .DeploymentMeta.Name }}'}}",
        "metadata: {labels: {a: '{{ trunc 2 .DeploymentMeta.Name }}'}}",
        "metadata: {labels: {a: '{{ .DeploymentMeta }}'}}",
        "metadata: {labels: {a: '{{ printf `%s` .DeploymentMeta.Name }}'}}",
        "metadata: {labels: {'{{ .DeploymentMeta.Name }}': a}}",
        "spec: {containers: [{name: '{{ .DeploymentMeta.Name }}'}]}",
        "spec:\n  serviceAccountName: {{ .DeploymentMeta.Name }}",
        "metadata:\n  annotations:\n    a: {{ .DeploymentMeta.Name }}",
        "metadata:\n  labels:\n    a: x{{ .DeploymentMeta.Name }}",
        "metadata:\n  labels:\n    a: a/{{ index .DeploymentMeta.Name 0 }}",
        // The label of the pod is replaced, or is the name already.
        "metadata:\n  labels:\n    app: {{ .DeploymentMeta.Name }}",
    ] {
        // A new key of a label is one more thing to read, so that answers before it are unknown.
        let (patches, known) = of_owners(template, &["web", "db", "web", "web"]);
        assert_eq!((&known[..2], known[3]), (&[false, false][..], true), "{template}");
        assert_ne!(patches[0], patches[1], "{template}");
        assert_eq!(patches[0], patches[2], "{template}");
    }
}

#[test]
fn one_pod_that_needs_the_name_leaves_slots_to_the_others() {
    let template = "metadata:\n  labels:\n    x: \"{{ .DeploymentMeta.Name }}\"";
    let injector = injector(template);
    let known = |labels: Value, names: [&str; 3]| {
        names.map(|name| {
            let mut pod = of_owner(name);
            pod["metadata"]["labels"] = labels.clone();
            is_known(&injector, &pod)
        })
    };
    assert_eq!(known(json!({"x": "web"}), ["web", "db", "web"]), [false, false, true]);
    assert_eq!(known(json!({}), ["web", "db", "x-1"]), [false, true, true]);
}

#[test]
fn a_pod_whose_answer_is_not_kept_leaves_slots_to_the_others() {
    let injector = injector(COPIES);
    let mut volatile = of_owner("a");
    volatile["metadata"]["annotations"] = json!({"inject.istio.io/templates": "sidecar,volatile"});
    assert!(!is_known(&injector, &volatile));
    assert!(!is_known(&injector, &volatile));
    assert!(!is_known(&injector, &of_owner("web")));
    assert!(is_known(&injector, &of_owner("db")));
}

#[test]
fn an_annotation_of_istio_counts_also_if_a_template_asks_only_whether_it_is_there() {
    let asks = "metadata: {labels: {x: '{{ isset .ObjectMeta.Annotations `proxy.istio.io/config` }}{{ \
                .ProxyConfig.DrainDuration }}'}}";
    let config = |seconds: u8| {
        let mut pod = pod();
        let text = format!("drainDuration: {seconds}s");
        pod["metadata"]["annotations"]["proxy.istio.io/config"] = text.into();
        pod
    };
    let injector = injector(asks);
    assert!(!is_known(&injector, &config(1)));
    assert!(is_known(&injector, &config(1)));
    assert!(!is_known(&injector, &config(2)));
}

#[test]
fn lists_with_a_name_twice_are_evaluated_anew() {
    let injector = injector(PROXY);
    for list in ["volumes", "containers", "initContainers"] {
        let mut twice = pod();
        twice["spec"][list] = json!([{"name": "a"}, {"name": "b"}, {"name": "a"}]);
        assert!(!is_known(&injector, &twice), "{list}");
        assert!(!is_known(&injector, &twice), "{list}");
    }
}

#[test]
fn a_container_may_be_the_users_version_of_an_init_container() {
    let setup = "spec: {initContainers: [{name: web, image: x}]}";
    assert!(!knows(setup, "/spec/containers/0/image", json!("web:2")));
}

#[test]
fn keys_of_pods_do_not_drive_out_answers_if_all_keys_are_read() {
    let all =
        "metadata: {labels: {x: '{{ range $k, $v := .ObjectMeta.Annotations }}{{ $k }}{{ end }}'}}";
    let injector = injector(all);
    let with_key = |key: usize| {
        let mut pod = pod();
        pod["metadata"]["annotations"][format!("k{key}")] = json!("1");
        pod
    };
    for key in 0..20 {
        assert!(!is_known(&injector, &with_key(key)));
    }
    for key in 0..20 {
        assert!(is_known(&injector, &with_key(key)));
    }
}

#[test]
fn nothing_is_kept_of_what_depends_on_more_than_was_read() {
    for template in [
        "metadata: {labels: {x: '{{ now | unixEpoch }}'}}",
        "metadata: {labels: {x: '{{ uuidv4 }}'}}",
        "{{ $x := set .Values `a` `b` }}spec: {}",
        "spec: {containers: [{name: a, $patch: delete}]}",
    ] {
        let injector = injector(template);
        assert!(!is_known(&injector, &pod()));
        assert!(!is_known(&injector, &pod()), "{template}");
    }
    let environment = injector("metadata: {labels: {x: '{{ env `ANY` `x` }}'}}");
    assert!(!is_known(&environment, &pod()));
    assert!(is_known(&environment, &pod()));
}

#[test]
fn skipped_pods_are_kept_and_injected_ones_are_not() {
    let injector = injector(PROXY);
    let mut skipped = pod();
    skipped["spec"]["hostNetwork"] = json!(true);
    assert!(!is_known(&injector, &skipped));
    assert!(is_known(&injector, &skipped));
    let mut injected = pod();
    injected["metadata"]["annotations"][STATUS_ANNOTATION] = json!("{}");
    assert!(!is_known(&injector, &injected));
    assert!(!is_known(&injector, &injected));
}

/// No turn is free, and one comes after `meanwhile`, if there is one.
struct Taken<'t>(Option<&'t (dyn Fn() + Sync)>);

impl Debug for Taken<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Taken")
    }
}

impl Turns for Taken<'_> {
    fn next<'t>(&'t self, _: Asked<'t>) -> NextTurn<'t> {
        let turn = self.0.map(|meanwhile| {
            meanwhile();
            Turn { has_waited: true, granted: Box::new(CallerOfTurn { has_left: false }) }
        });
        Box::pin(ready(turn.ok_or(NoTurn::Late)))
    }
}

/// The turn of a caller that waits for ever, or has left.
#[derive(Debug, Clone, Copy)]
struct CallerOfTurn {
    has_left: bool,
}

impl Turns for CallerOfTurn {
    fn next<'t>(&'t self, _: Asked<'t>) -> NextTurn<'t> {
        Box::pin(ready(Ok(Turn { has_waited: false, granted: Box::new(*self) })))
    }
}

impl Granted for CallerOfTurn {
    fn run(&self, work: &mut dyn FnMut()) {
        work();
    }

    fn patience(&self) -> Arc<dyn Patience> {
        Arc::new(*self)
    }
}

impl Patience for CallerOfTurn {
    fn is_over(&self) -> bool {
        self.has_left
    }
}

#[test]
fn an_evaluation_ends_when_nobody_waits_for_it_and_its_answer_is_not_kept() {
    let steps = 2 * STEPS_UNTIL_ASKED;
    let injector = injector(&format!("{{{{ range until {steps} }}}}{{{{ end }}}}"));
    let (_, answer) =
        ask(&injector, &pod(), Some(&CallerOfTurn { has_left: true })).expect("an answer");
    let message = answer["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(GONE), "{answer}");
    assert!(!is_known(&injector, &pod()));
    assert!(is_known(&injector, &pod()));
}

#[test]
fn only_evaluations_wait_for_a_turn() {
    let injector = injector(PROXY);
    let late = ask(&injector, &pod(), Some(&Taken(None)));
    assert!(matches!(late, Err(ReviewError::NoTurn(_))), "{late:?}");
    assert!(!is_known(&injector, &pod()));
    assert!(ask(&injector, &pod(), Some(&Taken(None))).expect("no turn is needed").0);
}

#[test]
fn who_waited_has_the_answer_of_a_pod_that_was_evaluated_meanwhile() {
    let injector = injector(PROXY);
    let meanwhile = || assert!(!is_known(&injector, &pod()));
    assert!(ask(&injector, &pod(), Some(&Taken(Some(&meanwhile)))).expect("an answer").0);
}

#[test]
fn templates_that_read_too_much_are_evaluated_anew() {
    let keys: Vec<_> = (0..MAX_READ).map(|key| format!("`k{key}`")).collect();
    let range = format!("{{{{ range list {} }}}}", keys.join(" "));
    let injector = injector(&(range + "{{ $x := index $.ObjectMeta.Labels . }}{{ end }}"));
    assert!(!is_known(&injector, &pod()));
    assert!(!is_known(&injector, &pod()));
    assert_eq!(injector.mesh().answer_count(), 0);
}
