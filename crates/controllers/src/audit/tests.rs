use futures_util::FutureExt as _;
use serde_json::json;

use super::{
    audit_log::failed_open,
    summary::{Row, Summary},
    *,
};
use crate::restart::{self, Evidence};

fn pod(owner: &Value, labels: &Value) -> Value {
    let mut pod = json!({"metadata": {"namespace": "shop", "name": "web-5f-x", "labels": labels}});
    if !owner.is_null() {
        pod["metadata"]["ownerReferences"] = json!([owner]);
    }
    pod
}

#[test]
fn a_finding_has_the_oldest_pod_and_the_replica_sets_of_most_pods() {
    let owner = |uid: usize| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f", "uid": uid.to_string(), "controller": true});
    let mut summary = Summary::default();
    // Pods that were made to mislead: their ReplicaSets sort first.
    for uid in (0..100).chain([200; 40]) {
        let mut pod = pod(&owner(uid), &json!({"pod-template-hash": "5f"}));
        let created = format!("2026-11-29T12:00:{}Z", 59 - uid.min(49));
        pod["metadata"]["creationTimestamp"] = created.into();
        let judgement = Judgement::Wrong(Finding::Missing, "why".to_owned());
        let evidence = Evidence { cause: "cause".to_owned(), ..Evidence::default() };
        summary.add(Audited::of(&pod), judgement, evidence);
    }
    let row = summary.rows().next().expect("a finding");
    assert_eq!((row.pods, &*row.evidence.since), (140, "2026-11-29T12:00:10Z"));
    assert_eq!(row.evidence.cause, "cause");
    let uids: Vec<_> =
        row.evidence.replica_sets.iter().map(|replica_set| &*replica_set.uid).collect();
    assert_eq!((uids[0], uids.len()), ("200", 4));
}

#[test]
fn pods_of_a_deployment_itself_are_forged() {
    let owner = |kind: &str| json!({"apiVersion": "apps/v1", "kind": kind, "name": "web-5f", "uid": "1", "controller": true});
    let is_forged = |kind: &str| {
        let mut summary = Summary::default();
        let judgement = Judgement::Wrong(Finding::Missing, "why".to_owned());
        let evidence = Evidence { cause: "cause".to_owned(), ..Evidence::default() };
        let audited = Audited::of(&pod(&owner(kind), &json!({"pod-template-hash": "5f"})));
        summary.add(audited, judgement, evidence);
        let row = summary.rows().next().expect("a finding");
        let Row { workload, evidence, .. } = row;
        restart::Finding { workload, evidence, ..restart::Finding::default() }.is_forged()
    };
    assert!(is_forged("Deployment"));
    for kind in ["ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CloneSet"] {
        assert!(!is_forged(kind), "{kind}");
    }
}

#[test]
fn a_workload_is_seen_with_all_of_its_pods() {
    let seen = |judgements: &[Judgement]| {
        let mut summary = Summary::default();
        for (uid, judgement) in (0..).zip(judgements) {
            let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": uid.to_string(), "controller": true});
            let audited = Audited::of(&pod(&owner, &json!({})));
            summary.add(audited, judgement.clone(), Evidence::default());
        }
        let (seen, is_cut) = summary.into_seen();
        assert!(!is_cut && seen.keys().all(|workload| workload.uid.is_none()));
        seen.into_values().map(|seen| (seen.is_meshed, seen.is_unknown)).collect::<Vec<_>>()
    };
    let unknown = || Judgement::Unknown("why".to_owned());
    assert_eq!(seen(&[Judgement::Meshed, unknown()]), [(true, true)]);
    assert_eq!(seen(&[Judgement::Unmeshed]), [(false, false)]);
    assert_eq!(seen(&[Judgement::NotCompared]), [(false, true)]);
    assert_eq!(seen(&[Judgement::Ended]), []);
}

#[test]
fn pods_with_tainted_values_are_named_whatever_their_judgement() {
    let pod = |name: &str, tainted: &[&'static str]| {
        let mut pod = pod(&Value::Null, &Value::Null);
        pod["metadata"]["name"] = name.into();
        let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "1", "controller": true});
        pod["metadata"]["ownerReferences"] = json!([owner]);
        Audited { tainted: tainted.to_vec(), ..Audited::of(&pod) }
    };
    let mut summary = Summary::default();
    for (pod, judgement) in [
        (pod("a-1", &["label"]), Judgement::Meshed),
        (pod("a-2", &["name", "label"]), Judgement::Unknown("denied".to_owned())),
        (pod("a-3", &[]), Judgement::Meshed),
    ] {
        summary.add(pod, judgement, Evidence::default());
    }
    let found: Vec<_> = summary.tainted().collect();
    let [row] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&*row.workload.name, row.pods), ("a", 2));
    assert_eq!(row.pod_names, ["a-1", "a-2"]);
    assert_eq!(row.values, ["label", "name"]);
    assert_eq!(summary.counts().tainted, 2);
}

#[test]
fn pods_are_grouped_by_workload_and_finding() {
    let audited = Audited::of(&pod(&Value::Null, &Value::Null));
    let mut summary = Summary::default();
    for judgement in [
        Judgement::Wrong(Finding::Missing, "first".to_owned()),
        Judgement::Wrong(Finding::Missing, "second".to_owned()),
        Judgement::Wrong(Finding::Outdated, "old".to_owned()),
        Judgement::Meshed,
        Judgement::Ended,
        Judgement::Unknown("a".to_owned()),
    ] {
        summary.add(audited.clone(), judgement, Evidence::default());
    }
    let rows: Vec<_> =
        summary.rows().map(|row| (row.finding, row.pods, row.total, row.reason)).collect();
    let expected =
        [(Finding::Missing, 2, 5, "first".to_owned()), (Finding::Outdated, 1, 5, "old".to_owned())];
    assert_eq!(rows, expected);
    let counts = summary.counts();
    assert_eq!((counts.total, counts.missing, counts.ended, counts.unknown), (6, 2, 1, 1));
}

#[test]
fn a_failed_webhook_is_in_the_audit_log_with_its_cause() {
    let event = json!({
        "verb": "create",
        "stage": "ResponseComplete",
        "objectRef": {"resource": "pods", "namespace": "shop"},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": "2026-11-23T10:11:12.000001Z",
        "responseObject": {"metadata": {"name": "web-x"}},
        "annotations": {
            "failed-open.mutation.webhook.admission.k8s.io/round_0_index_2": "injector",
            "mutation.webhook.admission.k8s.io/round_0_index_1": "{}",
        },
    });
    let found: Vec<_> = failed_open(&event).collect();
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].pod, &*found[0].webhook), ("web-x", "injector"));
    assert!(found[0].cause.starts_with("the call failed at once"));
    let mut slow = event.clone();
    slow["annotations"]["apiserver.latency.k8s.io/mutating-webhook"] = "10.001s".into();
    let cause = failed_open(&slow).next().expect("a call").cause;
    assert_eq!(cause, "the webhooks took 10.001s: probably a timeout");
    for (field, value) in [
        ("/verb", json!("update")),
        ("/stage", json!("RequestReceived")),
        ("/objectRef/resource", json!("services")),
        ("/responseStatus/code", json!(403)),
    ] {
        let mut other = event.clone();
        *other.pointer_mut(field).expect("a field") = value;
        assert_eq!(failed_open(&other).count(), 0, "{field}");
    }
}

/// Beside a server, its threads go on while a condition is evaluated.
#[test]
fn a_pod_is_judged_on_a_thread_for_blocking_work() {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build();
    let runtime = runtime.expect("a runtime");
    let configurations = Configurations::read([]).expect("valid");
    let auditor = Auditor::new(Webhooks::of_files(configurations), BTreeMap::new());
    let auditor = runtime.block_on(auditor).expect("an auditor");
    let judges = cluster::Judges::new(Arc::new(auditor), BTreeMap::new());
    let mut summary = Summary::default();
    runtime.block_on(async {
        let (start, waiting) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || waiting.recv());
        let mut pending = std::pin::pin!(judges.judge(pod(&Value::Null, &json!({})), &mut summary));
        assert!((&mut pending).now_or_never().is_none(), "the only such thread is busy");
        start.send(()).expect("the thread waits");
        busy.await.expect("no panic").expect("sent");
        pending.await;
    });
    assert_eq!(summary.counts().total, 1);
}

/// Whoever may create pods does not end the audit of the others.
#[tokio::test]
async fn a_pod_that_cannot_be_judged_is_unknown() {
    use injectd_core::{injector::ReviewError, lookups::LookupError};

    let error = || ReviewError::Namespace("shop".to_owned(), LookupError::NotInMemory).into();
    let mut summary = Summary::default();
    let panics = || -> Result<_, _> { panic!("here") };
    for (work, problem) in [
        (Box::new(panics) as cluster::Work, "a fault of injectd: here"),
        (Box::new(move || Err(error())), "cannot look up the annotations of namespace \"shop\""),
    ] {
        let pod = pod(&Value::Null, &json!({}));
        let judged = cluster::judged("shop/web-5f-x", work).await;
        let (judgement, evidence) = (judged.judgement, judged.evidence);
        let Judgement::Unknown(reason) = &judgement else { panic!("{judgement:?}") };
        assert!(
            reason.starts_with(&format!("cannot judge pod shop/web-5f-x: {problem}")),
            "{reason}"
        );
        summary.add(Audited::of(&pod), judgement, evidence);
    }
    assert_eq!((summary.counts().unknown, summary.unknown().count()), (2, 2));
}
