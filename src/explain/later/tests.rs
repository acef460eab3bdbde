use serde_json::json;

use super::*;

fn texts(objections: &[Objection]) -> Vec<(&str, &str, bool)> {
    objections.iter().map(|it| (&*it.by, &*it.text, it.due_to_sidecar)).collect()
}

fn pods() -> (Value, Value) {
    let app =
        json!({"name": "app", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}});
    let init = json!({"name": "linkerd-init", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}});
    let before = json!({"spec": {"containers": [app]}});
    let injected = json!({"spec": {"initContainers": [init], "containers": [app]}});
    (before, injected)
}

#[test]
fn pod_security_refuses_the_capabilities_of_the_init_container() {
    let (before, injected) = pods();
    let namespace = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "privileged",
    }}});
    let checks = Checks { namespace: Some(&namespace), ..Checks::default() };
    let found = objections(checks, &before, &injected);
    let text = "container linkerd-init adds the capabilities NET_ADMIN";
    assert_eq!(texts(&found), [("PodSecurity baseline", text, true)]);
}

#[test]
fn the_restricted_level_names_the_containers_of_the_user_too() {
    let (before, injected) = pods();
    let labels = json!({"pod-security.kubernetes.io/warn": "restricted"});
    let namespace = json!({"metadata": {"labels": labels}});
    let checks = Checks { namespace: Some(&namespace), ..Checks::default() };
    let found = objections(checks, &before, &injected);
    assert!(found.iter().all(|objection| objection.effect == Effect::Warns));
    let of_app: Vec<_> = found.iter().filter(|it| it.text.contains("container app")).collect();
    assert_eq!(of_app.len(), 4);
    assert!(of_app.iter().all(|objection| !objection.due_to_sidecar));
    assert!(found.iter().any(|objection| objection.due_to_sidecar));
}

#[test]
fn a_quota_wants_amounts_of_the_sidecar_unless_a_limit_range_gives_them() {
    let (before, injected) = pods();
    let quota = json!({
        "metadata": {"name": "compute"},
        "spec": {"hard": {"requests.cpu": "10", "pods": "3"}},
        "status": {"used": {"requests.cpu": "9500m", "pods": "1"}},
    });
    let quotas = [quota];
    let checks = Checks { quotas: &quotas, ..Checks::default() };
    let found = objections(checks, &before, &injected);
    let by = "ResourceQuota compute";
    assert_eq!(texts(&found), [(by, "requests.cpu must be set for: linkerd-init", true)]);
    let limit =
        json!({"type": "Container", "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "4"}});
    let range = [json!({"metadata": {"name": "defaults"}, "spec": {"limits": [limit]}})];
    let found = objections(Checks { limit_ranges: &range, ..checks }, &before, &injected);
    let exhausted = "requests.cpu is exhausted: \"9500m\" of \"10\" are used";
    let no_limit = "container linkerd-init sets no limit for cpu: at most \"4\"";
    assert_eq!(texts(&found), [("LimitRange defaults", no_limit, true), (by, exhausted, false)]);
}

#[test]
fn a_pod_takes_its_largest_init_container_or_all_its_containers() {
    let container = |cpu: &str, policy: Option<&str>| json!({"name": "a", "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}});
    let pod = json!({"spec": {
        "initContainers": [container("3", None), container("500m", Some("Always"))],
        "containers": [container("1", None), container("1", None)],
    }});
    let quota = |left: &str| {
        [json!({
            "metadata": {"name": "q"},
            "spec": {"hard": {"cpu": left}},
            "status": {"used": {"cpu": "0"}},
        })]
    };
    for (left, refused) in [("3", false), ("2999m", true)] {
        let quotas = quota(left);
        let checks = Checks { quotas: &quotas, ..Checks::default() };
        assert_eq!(!objections(checks, &pod, &pod).is_empty(), refused, "{left}");
    }
}
