use super::*;
use crate::restart::Finding;

const KINDS: [RolloutKind; 3] = RolloutKind::ALL;

fn observed(kind: RolloutKind, spec: &str, status: &str) -> Observed {
    let metadata = r#"{"name": "a", "generation": 3, "uid": "u", "resourceVersion": "9",
        "managedFields": [{"manager": "kubectl"}]}"#;
    let json = format!(r#"{{"metadata": {metadata}, "spec": {spec}, "status": {status}}}"#);
    Observed::new(kind, serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_rollout_of_a_generation_that_is_not_observed_is_in_progress() {
    for kind in KINDS {
        let status = r#"{"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
            "availableReplicas": 1}"#;
        assert_eq!(observed(kind, "{}", status).rollout, Rollout::InProgress);
    }
}

#[test]
fn a_deployment_is_finished_when_old_pods_are_gone_and_new_ones_are_available() {
    let of = |replicas, updated, available| {
        let status = format!(
            r#"{{"observedGeneration": 3, "replicas": {replicas}, "updatedReplicas": {updated},
                "availableReplicas": {available}}}"#
        );
        observed(RolloutKind::Deployment, r#"{"replicas": 2}"#, &status).rollout
    };
    assert_eq!(of(2, 2, 2), Rollout::Finished);
    assert_eq!(of(2, 1, 2), Rollout::InProgress, "a pod is old");
    assert_eq!(of(3, 2, 3), Rollout::InProgress, "an old pod is there");
    assert_eq!(of(2, 2, 1), Rollout::InProgress, "a pod is not available");
}

#[test]
fn a_deployment_over_its_deadline_is_not_in_progress() {
    let status = r#"{"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1, "conditions":
        [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}"#;
    let rollout = observed(RolloutKind::Deployment, "{}", status).rollout;
    assert_eq!(rollout, Rollout::DeadlineExceeded);
}

#[test]
fn a_stateful_set_is_finished_at_its_new_revision() {
    let of = |current: &str, available| {
        let status = format!(
            r#"{{"observedGeneration": 3, "replicas": 1, "availableReplicas": {available},
                "currentRevision": "{current}", "updateRevision": "b"}}"#
        );
        observed(RolloutKind::StatefulSet, "{}", &status).rollout
    };
    assert_eq!(of("b", 1), Rollout::Finished);
    assert_eq!(of("a", 1), Rollout::InProgress);
    assert_eq!(of("b", 0), Rollout::InProgress);
}

#[test]
fn a_daemon_set_is_finished_on_all_nodes() {
    let of = |updated, available| {
        let status = format!(
            r#"{{"observedGeneration": 3, "desiredNumberScheduled": 2,
                "updatedNumberScheduled": {updated}, "numberAvailable": {available}}}"#
        );
        observed(RolloutKind::DaemonSet, "{}", &status).rollout
    };
    assert_eq!(of(2, 2), Rollout::Finished);
    assert_eq!(of(1, 2), Rollout::InProgress);
    assert_eq!(of(2, 1), Rollout::InProgress);
}

#[test]
fn strategies_that_keep_pods_have_no_rollout() {
    let by_hand = |kind, strategy: &str| {
        observed(kind, &format!(r#"{{"updateStrategy": {strategy}}}"#), "{}").no_rollout
    };
    let on_delete = r#"{"type": "OnDelete"}"#;
    for kind in [RolloutKind::StatefulSet, RolloutKind::DaemonSet] {
        assert!(by_hand(kind, on_delete).is_some_and(|text| text.contains("OnDelete")));
    }
    let partition = r#"{"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}"#;
    let text = by_hand(RolloutKind::StatefulSet, partition);
    assert!(text.is_some_and(|text| text.contains("partition")));
    let all = r#"{"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}"#;
    assert_eq!(by_hand(RolloutKind::StatefulSet, all), None);
}

#[test]
fn the_time_of_a_restart_is_that_of_the_annotation() {
    let of = |time: &str| {
        let spec = format!(
            r#"{{"template": {{"metadata": {{"annotations": {{"{RESTARTED_AT_ANNOTATION}": "{time}"}},
                "labels": {{"app": "web"}}}}}}}}"#
        );
        observed(RolloutKind::Deployment, &spec, "{}")
    };
    let found = of("2026-11-29T13:00:00+01:00");
    assert_eq!(found.restarted_at, "2026-11-29T12:00:00Z".parse().ok());
    assert_eq!(found.pod_labels["app"], "web");
    assert!(!found.is_restarted_by_us, "kubectl manages it");
    assert_eq!(of("today").restarted_at, None);
}

#[test]
fn kinds_have_the_names_of_kubectl() {
    for (name, kind) in [
        ("deploy", Some(RolloutKind::Deployment)),
        ("Deployment.apps", Some(RolloutKind::Deployment)),
        ("sts", Some(RolloutKind::StatefulSet)),
        ("daemonsets", Some(RolloutKind::DaemonSet)),
        ("pod", None),
    ] {
        assert_eq!(RolloutKind::of_kubectl(name), kind, "{name}");
    }
}

#[test]
fn a_finding_is_flat_json() {
    let json = r#"{"namespace":"shop","apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","reason":"r"}"#;
    let finding: Finding = serde_json::from_str(json).expect("a finding");
    assert_eq!(serde_json::to_string(&finding).expect("JSON"), json);
    assert_eq!(finding.workload.to_string(), "deployment shop/web");
}

#[test]
fn a_restart_changes_no_digest_of_the_template_and_a_change_does() {
    let digest = |annotations: &str, image: &str| {
        let spec = format!(
            r#"{{"template": {{"metadata": {{"labels": {{"app": "web"}}{annotations}}},
                "spec": {{"containers": [{{"image": "{image}"}}]}}}}}}"#
        );
        observed(RolloutKind::Deployment, &spec, "{}")
    };
    let before = digest("", "a").template_digest;
    let of = |annotations: &str| digest(&format!(r#", "annotations": {{{annotations}}}"#), "a");
    let restarted = of(&format!(
        r#""{RESTARTED_AT_ANNOTATION}": "2026-11-29T12:00:00Z", "{RESTARTED_FOR_ANNOTATION}": "d""#
    ));
    assert_eq!(restarted.template_digest, before);
    assert_eq!(restarted.restarted_for.as_deref(), Some("d"));
    assert_ne!(of(r#""linkerd.io/inject": "enabled""#).template_digest, before);
    assert_ne!(digest("", "b").template_digest, before);
}
