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

/// The allocations of an injection under `deny`, and the denial. The pod is not copied.
fn denying(revision: &Revision, pod: Value) -> (u64, Option<String>) {
    let mut pod = Some(Arc::new(pod));
    let mut denial = None;
    let cost = allocations(|| {
        let pod = pod.take().expect("one call");
        let injection = Injection::new(revision, pod, "default", PathEnvironment::default());
        denial = injection.inject(PodCluster::default()).err();
    });
    (cost, denial)
}

/// A pod with so many containers besides its own, which are named in the value of an annotation as well.
fn pod_with(containers: usize, log_level: &str) -> Value {
    let mut pod = with(LOG_LEVEL, log_level);
    let more = (0..containers).map(|index| json!({"name": format!("c{index}"), "image": "x"}));
    let all = pod["spec"]["containers"].as_array_mut().expect("a list");
    all.extend(more);
    pod
}

/// A value that pastes so many containers into the template of a release.
fn pasted(containers: usize) -> String {
    let names = (0..containers).map(|index| format!("\n  - name: c{index}"));
    let names = names.fold("warning".to_owned(), |value, name| value + &name);
    names + "\n    args:\n    - a"
}

/// Lists of containers that are pasted through a value, for a pod with and without containers of their
/// names. They are denied before they are read, merged or applied again.
#[test]
fn to_deny_a_pasted_list_costs_what_a_plain_pod_costs() {
    let all = releases::recorded().into_iter().chain([("small".to_owned(), small())]);
    for (release, revision) in all.filter(|(release, _)| release != releases::MENDED) {
        let off = revision.with_tainted_values(TaintedValues::Off);
        let injected = inject(&off, &pod_with(0, &pasted(500))).expect("a pod");
        let containers = injected.pod["spec"]["containers"].as_array().map(Vec::len);
        assert!(containers >= Some(501), "{release}: what Istio injects: {containers:?}");
        let revision = off.with_tainted_values(TaintedValues::Deny);
        let mut costs = Vec::new();
        for (own, pasted_ones) in [(0, 500), (0, 4_000), (200, 200)] {
            let (plain, denial) = denying(&revision, pod_with(own, "warning"));
            assert_eq!(denial, None, "{release}");
            let (denied, denial) = denying(&revision, pod_with(own, &pasted(pasted_ones)));
            println!(
                "{release}: {own} containers, {pasted_ones} pasted: {plain} allocations, {denied} denied"
            );
            let denial = denial.expect("a denial");
            assert!(denial.contains("changes other fields"), "{release} {denial}");
            assert!(denied * 2 <= plain * 5, "{release}: {denied} and {plain}");
            costs.push(denied);
        }
        assert!(costs[1] * 10 < costs[0] * 11, "{release}: more of them cost no more: {costs:?}");
    }
}

#[test]
fn a_template_that_reads_all_annotations_takes_what_they_have() {
    const ALL: &str = "
policy: enabled
templates:
  sidecar: |
    metadata:
      annotations:
        {{- range $key, $value := .ObjectMeta.Annotations }}
        copy-{{ $key }}: {{ index $.ObjectMeta.Annotations $key | quote }}
        {{- end }}
";
    let cost = |count: usize| {
        let keys = (0..count).map(|index| (format!("k{index}"), Value::from("a b")));
        let pod = pod(&Value::Object(keys.collect()));
        let revision = revision_of(ALL, "{}", "").with_tainted_values(TaintedValues::Deny);
        let (cost, denial) = denying(&revision, pod);
        assert_eq!(denial, None);
        cost
    };
    let [one, two] = [500, 1_000].map(cost);
    println!("{one} and {two} allocations for 500 and 1,000 annotations");
    assert!(two * 2 < one * 5, "{two} and {one}");
}
