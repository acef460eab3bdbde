//! What pods of one tenant do to the answers of others.

use std::collections::BTreeMap;

use injectd_memory::SEGMENTS;
use proptest::{
    collection::vec,
    prelude::{ProptestConfig, Strategy, any},
    prop_assert, prop_assert_eq, proptest,
    test_runner::TestCaseError,
};

use super::*;

/// As Istio's template: the keys of an annotation are names of volumes of the patch.
const VOLUMES: &str = "
metadata:
  labels:
    l: {{ index .ObjectMeta.Labels `app` | default `none` | quote }}
spec:
  containers:
  - name: istio-proxy
    env:
    - name: OWNER
      value: a/{{ .DeploymentMeta.Name }}
  volumes:
  - name: v
    emptyDir: {}
  {{- if isset .ObjectMeta.Annotations `sidecar.istio.io/userVolume` }}
  {{- range $name, $volume := fromJSON (index .ObjectMeta.Annotations `sidecar.istio.io/userVolume`) }}
  - name: \"{{ $name }}\"
    emptyDir: {}
  {{- end }}
  {{- end }}
";

/// A pod with volumes of these names from its annotation.
fn with_volumes(names: impl IntoIterator<Item = String>) -> Value {
    let volumes: BTreeMap<String, Value> =
        names.into_iter().map(|name| (name, json!({"emptyDir": {}}))).collect();
    let mut pod = pod();
    let annotation = json!(volumes).to_string();
    pod["metadata"]["annotations"] = json!({"sidecar.istio.io/userVolume": annotation});
    pod
}

fn of_workload(number: usize) -> Value {
    let mut pod = pod();
    pod["metadata"]["annotations"] = json!({"sidecar.istio.io/proxyCPU": number.to_string()});
    pod
}

/// How many pods of a namespace are known.
fn known(injector: &Core<Istio, Standalone>, namespace: &str, pods: &[Value]) -> usize {
    let is_known = |pod: &&Value| ask_in(injector, namespace, pod, None).expect("an answer").0;
    pods.iter().filter(is_known).count()
}

#[test]
fn a_new_name_of_one_workload_changes_the_keys_of_no_other() {
    let injector = injector(VOLUMES);
    let mut workloads: Vec<_> = (0..50).map(of_workload).collect();
    workloads.extend((0..50).map(|number| with_volumes([format!("w{number}")])));
    assert_eq!(known(&injector, "a", &workloads), 0);
    assert_eq!(known(&injector, "a", &workloads), workloads.len());
    for (number, namespace) in ["b", "a", "c", "a"].into_iter().enumerate() {
        let newcomer = [with_volumes([format!("new{number}"), "w1".to_owned()])];
        assert_eq!(known(&injector, namespace, &newcomer), 0);
        assert_eq!(known(&injector, "a", &workloads), workloads.len(), "{namespace}");
        assert_eq!(known(&injector, namespace, &newcomer), 1);
    }
}

#[test]
fn no_number_of_names_closes_the_memory() {
    let injector = injector(VOLUMES);
    let workloads: Vec<_> = (0..20).map(of_workload).collect();
    known(&injector, "a", &workloads);
    let many = |pod: usize| with_volumes((0..60).map(move |name| format!("p{pod}-{name}")));
    let pods: Vec<_> = (0..3 * MAX_READ / 60).map(many).collect();
    for namespace in ["a", "b"] {
        assert_eq!(known(&injector, namespace, &pods), 0);
        assert_eq!(known(&injector, namespace, &pods), pods.len());
    }
    assert_eq!(known(&injector, "a", &workloads), workloads.len());
    let newcomer = [with_volumes(["new".to_owned()])];
    assert_eq!(known(&injector, "c", &newcomer), 0);
    assert_eq!(known(&injector, "c", &newcomer), 1);
}

#[test]
fn what_pods_with_the_same_first_key_read_is_evicted_and_not_refused() {
    const KEYS: usize = 60;
    let injector = injector(
        "{{ range splitList `,` (index .ObjectMeta.Annotations `keys`) }}\
         {{ $x := index $.ObjectMeta.Labels . }}{{ end }}spec: {}",
    );
    for number in 0..MAX_READ * 4 / 3 / KEYS {
        let keys: Vec<_> = (0..KEYS).map(|key| format!("k{number}-{key}")).collect();
        let mut pod = [pod()];
        pod[0]["metadata"]["annotations"]["keys"] = keys.join(",").into();
        assert_eq!(known(&injector, "a", &pod), 0, "{number}");
        assert_eq!(known(&injector, "a", &pod), 1, "{number}");
    }
}

#[test]
fn workloads_that_read_the_same_share_what_they_read() {
    let injector = injector(VOLUMES);
    let workloads: Vec<_> = (0..50).map(of_workload).collect();
    known(&injector, "a", &workloads);
    assert_eq!(injector.mesh().answer_count(), 101);
}

/// Half of the pods are of a tenant that uses new names each time. They weigh three segments.
#[test]
fn a_tenant_with_new_names_in_every_pod_leaves_others_their_hits() {
    let injector = injector(VOLUMES);
    let namespaces: Vec<_> = (0..10 * SEGMENTS).map(|number| format!("n{number}")).collect();
    let workloads: Vec<_> = (0..5).map(of_workload).collect();
    for namespace in &namespaces {
        assert_eq!(known(&injector, namespace, &workloads), 0);
    }
    let (mut asked, mut hits) = (0, 0);
    for round in 0..4 {
        for (number, namespace) in namespaces.iter().enumerate() {
            for workload in &workloads {
                let name = format!("r{round}-{number}-{asked}-");
                let newcomer = with_volumes((0..150).map(|volume| format!("{name}{volume}")));
                assert_eq!(known(&injector, "greedy", &[newcomer]), 0);
                asked += 1;
                hits += known(&injector, namespace, std::slice::from_ref(workload));
            }
        }
    }
    assert!(hits * 100 >= asked * 95, "{hits} of {asked} were known");
}

/// A pod of a tenant: its namespace, names of volumes, whether it has an annotation for them, and
/// the values of a label and of the owner's name.
type Asked = (usize, Option<Vec<usize>>, usize, usize);

fn asked() -> impl Strategy<Value = Asked> {
    (0..3_usize, proptest::option::of(vec(0..4_usize, 0..3)), 0..3_usize, 0..4_usize)
}

fn must_depend_on_own_history(asked: &[Asked]) -> Result<(), TestCaseError> {
    const OWNERS: [&str; 4] = ["web", "db", "not.plain", "true"];
    let shared = injector(VOLUMES);
    let evaluating = Core::new(mesh(VOLUMES).without_memory(), Standalone::default());
    let mut alone = BTreeMap::new();
    for (namespace, volumes, label, owner) in asked {
        let mut pod = volumes.as_ref().map_or_else(pod, |volumes| {
            with_volumes(volumes.iter().map(|name| format!("n{namespace}-{name}")))
        });
        pod["metadata"]["labels"] =
            [json!({}), json!({"app": "x"}), json!({"l": "y"})][*label].clone();
        pod["metadata"]["ownerReferences"][0]["name"] = OWNERS[*owner].into();
        let own = alone.entry((*namespace, pod["metadata"]["annotations"].to_string()));
        let own = own.or_insert_with(|| injector(VOLUMES));
        let namespace = format!("n{namespace}");
        let answer = |injector| ask_in(injector, &namespace, &pod, None).expect("an answer");
        let (is_known, response) = answer(&shared);
        prop_assert_eq!(&response, &answer(&evaluating).1);
        prop_assert_eq!(is_known, answer(own).0);
        prop_assert!(response["patch"].is_string());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hits_of_a_workload_depend_on_its_own_history(asked in vec(asked(), 1..40), twice in any::<bool>()) {
        let asked = if twice { [&asked[..], &asked[..]].concat() } else { asked };
        must_depend_on_own_history(&asked)?;
    }
}
