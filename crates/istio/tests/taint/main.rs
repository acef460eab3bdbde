//! Values that leave their scalar, in the templates of each release.

#![expect(clippy::disallowed_types, clippy::print_stdout, reason = "pods are trees; counts")]

mod cost;
mod edges;
mod kinds;
mod limits;
mod random;
mod releases;
mod spec;

use std::sync::Arc;

use futures_util::FutureExt as _;
use injectd_core::{
    injector::Injector, lookups::CallerFacts, outcome::TemplateLookup, standalone::Standalone,
};
use injectd_istio::{
    cluster::Cluster,
    envelope,
    injection::{Injected, Injection, PodCluster},
    mesh::Istio,
    path::{DEFAULT_CLUSTER, PathEnvironment},
    revision::Revision,
    taint::{COUNTED, Source, Tainted, TaintedValues},
};
use injectd_testkit::istio::revision_of;
use serde_json::{Value, json};

/// A template that pastes a value, as those of Istio 1.19 to 1.31 do.
const CONFIG: &str = "
policy: enabled
templates:
  sidecar: |
    spec:
      containers:
      - name: istio-proxy
        args:
        - --proxyLogLevel={{ annotation .ObjectMeta `sidecar.istio.io/logLevel` `warning` }}
        - --end
";

fn small() -> Revision {
    revision_of(CONFIG, "{}", "")
}

fn inject(revision: &Revision, pod: &Value) -> Result<Injected, String> {
    let pod = Arc::new(pod.clone());
    Injection::new(revision, pod, "default", PathEnvironment::default())
        .inject(PodCluster::default())
}

fn pod(annotations: &Value) -> Value {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    })
}

fn with(key: &str, value: &str) -> Value {
    pod(&json!({key: value}))
}

const LOG_LEVEL: &str = "sidecar.istio.io/logLevel";
/// A container beside the sidecar.
const CONTAINER: &str = "warning\n  - name: mine\n    image: mine\n    args:\n    - a";

#[test]
fn a_pasted_container_is_warned_of_or_denied() {
    let pod = with(LOG_LEVEL, CONTAINER);
    let off = inject(&small().with_tainted_values(TaintedValues::Off), &pod).expect("a pod");
    assert_eq!(off.tainted, []);
    let warned = inject(&small(), &pod).expect("a pod");
    assert_eq!(warned.pod, off.pod, "a warning changes nothing");
    let source = Source::Annotation(LOG_LEVEL.to_owned());
    assert_eq!(warned.tainted, [Tainted { source, templates: vec!["sidecar".to_owned()] }]);
    let problem = "annotation sidecar.istio.io/logLevel holds more than a value: as text in the \
                   template it changes other fields of the pod";
    assert_eq!(warned.warnings.last().map(String::as_str), Some(problem));
    let denied = inject(&small().with_tainted_values(TaintedValues::Deny), &pod);
    assert_eq!(denied.expect_err("a denial"), problem);
}

/// Whether the answer came from the memory, the tainted values, and the answer.
fn ask(injector: &Injector<Istio, Standalone>, pod: &Value) -> (bool, Vec<String>, Value) {
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request":
        {"uid": "1", "kind": {"version": "v1", "kind": "Pod"}, "namespace": "a", "object": pod}});
    let body = review.to_string();
    let facts = CallerFacts { path: "/inject", ..CallerFacts::default() };
    let answered = envelope::review(injector, facts, body.as_bytes()).now_or_never();
    let answer = answered.expect("no wait").expect("an answer");
    let response: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let tainted = answer.outcome.tainted;
    let is_counted = |(bit, _): &(usize, &str)| tainted >> bit & 1 == 1;
    let names = COUNTED.into_iter().enumerate().filter(is_counted);
    let tainted = names.map(|(_, name)| name.to_owned()).collect();
    let is_known = answer.outcome.template == Some(TemplateLookup::Hit);
    (is_known, tainted, response["response"].clone())
}

fn injector(tainted_values: TaintedValues) -> Injector<Istio, Standalone> {
    injector_of(small().with_tainted_values(tainted_values))
}

fn injector_of(revision: Revision) -> Injector<Istio, Standalone> {
    let cluster = Cluster::new(vec![DEFAULT_CLUSTER.to_owned()]);
    Injector::new(Istio::new(revision, cluster, 1), Standalone::default())
}

#[test]
fn an_answer_from_the_memory_is_warned_of_and_counted_as_well() {
    let injector = injector(TaintedValues::Warn);
    let pod = with(LOG_LEVEL, CONTAINER);
    let (is_known, tainted, first) = ask(&injector, &pod);
    assert!(!is_known);
    assert_eq!(tainted, [LOG_LEVEL]);
    assert!(first["warnings"][0].as_str().is_some_and(|text| text.contains(LOG_LEVEL)), "{first}");
    assert_eq!(ask(&injector, &pod), (true, tainted, first));
    let (_, tainted, plain) = ask(&injector, &with(LOG_LEVEL, "debug"));
    assert_eq!((tainted, &plain["warnings"]), (Vec::new(), &Value::Null));
}

#[test]
fn a_denied_pod_is_counted_and_is_denied_again() {
    let injector = injector(TaintedValues::Deny);
    for _ in 0..2 {
        let (is_known, tainted, answer) = ask(&injector, &with(LOG_LEVEL, CONTAINER));
        assert!(!is_known);
        assert_eq!(tainted, [LOG_LEVEL]);
        assert_eq!(answer["allowed"], false, "{answer}");
        assert!(answer["status"]["message"].as_str().is_some_and(|text| text.contains(LOG_LEVEL)));
    }
    let (_, _, answer) = ask(&injector, &with(LOG_LEVEL, "a # b"));
    assert_eq!(answer["allowed"], true, "a comment at the end of a line leaves one scalar");
}

#[test]
fn what_can_leave_its_scalar_is_named_with_template_and_line() {
    let leaks = injectd_istio::leaks::of(&small()).leaks;
    let lines: Vec<_> = leaks.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        ["annotation sidecar.istio.io/logLevel reaches YAML unquoted, template sidecar, line 5"]
    );
    let quoted =
        CONFIG.replace("`warning` }}", "`warning` | quote }}").replace("--proxyLogLevel=", "");
    assert_eq!(injectd_istio::leaks::of(&revision_of(&quoted, "{}", "")).leaks, []);
}

#[test]
fn a_pasted_list_is_denied_before_it_is_merged() {
    let items = "\n  - name: c\n  - name: d".repeat(2_000);
    let pod = with(LOG_LEVEL, &format!("warning{items}\n  - name: mine\n    args:\n    - a"));
    let denied = inject(&small().with_tainted_values(TaintedValues::Deny), &pod);
    let denied = denied.expect_err("a denial");
    assert!(denied.contains(LOG_LEVEL), "{denied}");
}
