use futures_util::FutureExt as _;

use super::*;
use crate::{
    injector::Injector,
    linkerd::{
        snapshot::{Config, Snapshot},
        values::DEFAULT_VALUES,
        workload::Owner,
    },
    lookups::CallerFacts,
    outcome::{Verdict, Workload},
    review,
};

fn resolved(sources: &Standalone, owner: &str, hash: Option<&str>) -> (String, String) {
    let owner: OwnerReference<'_> = crate::json::read(owner).expect("reference");
    let owner = Owner { namespace: "a", reference: &owner, pod_template_hash: hash };
    let workload = owner.resolve(sources, None).now_or_never().expect("must not wait");
    let workload = workload.expect("no review waits");
    (workload.kind.into_owned(), workload.name.into_owned())
}

fn listed(yaml: &str) -> Standalone {
    Standalone::Listed(Arc::new(Objects::parse(yaml).expect("objects")))
}

#[test]
fn without_objects_the_hash_identifies_a_deployment() {
    let owner = r#"{"kind":"ReplicaSet","name":"web-5f4"}"#;
    let of = |hash| resolved(&Standalone::default(), owner, hash);
    assert_eq!(of(Some("5f4")), ("deployment".to_owned(), "web".to_owned()));
    assert_eq!(of(Some("other")), ("replicaset".to_owned(), "web-5f4".to_owned()));
    assert_eq!(of(None), ("replicaset".to_owned(), "web-5f4".to_owned()));
    let job = r#"{"kind":"Job","name":"web-5f4"}"#;
    assert_eq!(resolved(&Standalone::default(), job, Some("5f4")).0, "job");
}

#[test]
fn an_object_with_another_uid_is_not_the_owner() {
    let workloads = listed(
        "kind: ReplicaSet\nmetadata: {name: web-1, namespace: a, uid: right, \
         ownerReferences: [{kind: Deployment, name: web}]}",
    );
    let owner = |uid| format!(r#"{{"kind":"ReplicaSet","name":"web-1","uid":"{uid}"}}"#);
    assert_eq!(resolved(&workloads, &owner("right"), None).0, "deployment");
    assert_eq!(resolved(&workloads, &owner("forged"), None).0, "replicaset");
}

#[test]
fn an_owner_that_a_file_in_part_lacks_is_derived() {
    let objects = Objects::parse(
        "kind: ReplicaSet\nmetadata: {name: web-1, namespace: a, uid: u}\n---\n\
         kind: Job\nmetadata: {name: j, namespace: a}\n",
    );
    let workloads = Standalone::ListedInPart(Arc::new(objects.expect("objects")));
    let of = |owner: &str, hash| resolved(&workloads, owner, hash);
    let is = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
    let listed = r#"{"kind":"ReplicaSet","name":"web-1","uid":"u"}"#;
    let recreated = r#"{"kind":"ReplicaSet","name":"web-1","uid":"older"}"#;
    let missing = r#"{"kind":"ReplicaSet","name":"web-2"}"#;
    assert_eq!(of(listed, Some("1")), is("replicaset", "web-1"));
    assert_eq!(of(recreated, Some("1")), is("deployment", "web"));
    assert_eq!(of(missing, Some("2")), is("deployment", "web"));
    assert_eq!(of(missing, None), is("replicaset", "web-2"));
    assert_eq!(of(r#"{"kind":"Job","name":"other"}"#, None), is("job", "other"));
}

#[test]
fn a_replica_set_has_roots_of_known_kinds_and_a_job_of_any() {
    let workloads = listed(
        "kind: ReplicaSet\nmetadata: {name: r, namespace: a, ownerReferences: [{kind: Rollout, name: x}]}\n\
         ---\nkind: Job\nmetadata: {name: j, namespace: a, ownerReferences: [{kind: CronJob, name: c}]}\n",
    );
    let of =
        |kind, name| resolved(&workloads, &format!(r#"{{"kind":"{kind}","name":"{name}"}}"#), None);
    assert_eq!(of("ReplicaSet", "r"), ("replicaset".to_owned(), "r".to_owned()));
    assert_eq!(of("Job", "j"), ("cronjob".to_owned(), "c".to_owned()));
    assert_eq!(of("job", "j"), ("job".to_owned(), "j".to_owned()));
}

const OBJECTS: &str = "
kind: Namespace
metadata: {name: a}
---
kind: Job
metadata: {name: sweep-1, namespace: a, ownerReferences: [{kind: CronJob, name: sweep}]}
---
kind: ReplicaSet
metadata: {name: web-1, namespace: a, ownerReferences: [{kind: Deployment, name: web}]}
";

fn counted(sources: Standalone, owners: &str, known: Option<&'static str>) -> &'static str {
    let config = Config {
        values: DEFAULT_VALUES,
        trust_roots: b"roots",
        control_plane_namespace: "linkerd",
        fallback_release: None,
    };
    let snapshot = Snapshot::new(config, 1).expect("values");
    let injector = Injector::new(snapshot, sources);
    let body = format!(
        r#"{{"request":{{"uid":"u","namespace":"a","object":{{"kind":"Pod","metadata":{{
            "labels":{{"pod-template-hash":"1"}},"ownerReferences":[{owners}]}},"spec":{{}}}}}}}}"#
    );
    let request = review::decode(body.as_bytes()).expect("a review");
    let workload =
        known.map(|kind| Workload { kind: kind.into(), name: "x".into(), object_uid: "".into() });
    let facts = CallerFacts { workload, ..CallerFacts::default() };
    let mut patch = review::patch_buffer();
    let outcome = injector.answer(&request, facts, &mut patch).now_or_never();
    let outcome = outcome.expect("must not wait").expect("an outcome");
    assert_eq!(outcome.verdict, Verdict::Skipped);
    outcome.owner_kind
}

#[test]
fn a_skipped_pod_counts_for_its_root_owner() {
    let listed = || Standalone::Listed(Arc::new(Objects::parse(OBJECTS).expect("objects")));
    let job = r#"{"kind":"Job","name":"sweep-1"}"#;
    let replica_set = r#"{"kind":"ReplicaSet","name":"web-1"}"#;
    for (sources, owners, kind) in [
        (listed(), job, "cronjob"),
        (listed(), replica_set, "deployment"),
        (Standalone::default(), replica_set, "deployment"),
        (Standalone::default(), job, "job"),
        (Standalone::default(), r#"{"kind":"DaemonSet","name":"d"}"#, "daemonset"),
        (Standalone::default(), r#"{"kind":"Rollout","name":"r"}"#, ""),
        (Standalone::default(), &format!("{job},{replica_set}"), "pod"),
        (Standalone::default(), "", "pod"),
    ] {
        assert_eq!(counted(sources, owners, None), kind, "{owners}");
    }
    assert_eq!(counted(Standalone::default(), job, Some("cronjob")), "cronjob");
}
