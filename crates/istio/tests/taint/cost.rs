//! What the guard costs, counted in allocations.

use allocation_counter::measure;
use injectd_testkit::istio;

use super::*;

/// A template that takes most of a pod's budget, and pastes three values.
const HEAVY: &str = r#"
policy: enabled
templates:
  sidecar: |
    {{- range until 7000 }}{{ $text := printf "%d-%d" . . }}{{ end }}
    spec:
      containers:
      - name: istio-proxy
        args:
        - {{ index .ObjectMeta.Annotations `example.org/a` }}
        - {{ index .ObjectMeta.Annotations `example.org/b` }}
        - {{ index .ObjectMeta.Annotations `example.org/c` }}
"#;

fn heavy(mode: TaintedValues) -> Revision {
    revision_of(HEAVY, "{}", "").with_tainted_values(mode)
}

fn heavy_pod() -> Value {
    let value = "a\n  - name: mine\n    args:\n    - b";
    let mut pod =
        pod(&json!({"example.org/a": value, "example.org/b": value, "example.org/c": value}));
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d8f9c7b6d", "controller": true});
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

#[test]
fn the_guard_takes_no_more_than_a_second_budget() {
    let pod = heavy_pod();
    let one = allocations(|| assert!(inject(&heavy(TaintedValues::Off), &pod).is_ok()));
    assert!(one > 7000, "the loop must count");
    let denied = allocations(|| {
        let denial = inject(&heavy(TaintedValues::Deny), &pod).expect_err("a denial");
        for key in ["example.org/a", "example.org/b", "example.org/c"] {
            assert!(denial.contains(key), "what is not looked at is named: {denial}");
        }
    });
    assert!(denied < 3 * one, "{denied} and {one}");
}

#[test]
fn a_pod_that_is_denied_for_taint_is_evaluated_once() {
    let pod = heavy_pod();
    let denied = |mode| {
        let injector = injector_of(heavy(mode));
        allocations(|| _ = ask(&injector, &pod))
    };
    let [off, deny] = [TaintedValues::Off, TaintedValues::Deny].map(denied);
    assert!(deny < 3 * off, "{deny} and {off}");
}

#[test]
fn a_usual_pod_is_rendered_once() {
    let odd = json!(["sh", "-c", "a: b\n- c # d"]);
    let mut review = injectd_testkit::reviews::typical();
    let mut pod = review["request"]["object"].take();
    pod["spec"]["containers"][0]["args"] = odd;
    let testkit =
        ("testkit".to_owned(), istio::revision_of(istio::CONFIG, istio::VALUES, istio::MESH));
    for (release, revision) in releases::recorded().into_iter().chain([testkit]) {
        let mut revision = Some(revision);
        let mut cost = |mode| {
            let one = revision.take().expect("a revision").with_tainted_values(mode);
            let cost = allocations(|| _ = inject(&one, &pod));
            revision = Some(one);
            cost
        };
        let [off, deny] = [TaintedValues::Off, TaintedValues::Deny].map(&mut cost);
        println!("{release}: {off} allocations, with the guard {deny}");
        assert!(deny * 10 < off * 13, "{release}: {deny} and {off}");
    }
}
