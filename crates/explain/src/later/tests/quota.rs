use super::*;

fn of_quota(spec: &Value, pod: &Value) -> Vec<String> {
    let quotas = quota(spec);
    refusals(Checks { quotas: &quotas, ..Checks::default() }, pod)
}

#[test]
fn a_quota_wants_amounts_of_the_sidecar_unless_a_limit_range_gives_them() {
    let (before, injected) = pods();
    let quotas = [json!({
        "metadata": {"name": "compute"},
        "spec": {"hard": {"requests.cpu": "10", "pods": "3"}},
        "status": {"used": {"requests.cpu": "9500m", "pods": "1"}},
    })];
    let checks = Checks { quotas: &quotas, ..Checks::default() };
    let found = objections(checks, &before, &injected);
    let by = "ResourceQuota compute";
    let exhausted = "requests.cpu: the pod takes 1, 9500m is used, and the quota allows 10";
    let missing =
        "requests.cpu: every container must have a cpu request; without one: linkerd-init";
    assert_eq!(texts(&found), [(by, missing, true), (by, exhausted, false)]);
    let ranges = range(&json!({"type": "Container", "max": {"cpu": "4"}}));
    let found = objections(Checks { limit_ranges: &ranges, ..checks }, &before, &injected);
    let exhausted = "requests.cpu: the pod takes 4, 9500m is used, and the quota allows 10";
    assert_eq!(texts(&found), [(by, exhausted, false)]);
}

#[test]
fn a_limit_is_the_request_too() {
    let resources = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
    let hard = |cpu: &str| json!({"hard": {"requests.cpu": cpu, "memory": "1Gi"}});
    assert_eq!(of_quota(&hard("1"), &pod(&resources)), Vec::<String>::new());
    assert_eq!(
        of_quota(&hard("999m"), &pod(&resources)),
        [
            "ResourceQuota quota: requests.cpu: the pod takes 1, 0 is used, and the quota allows 999m"
        ]
    );
}

#[test]
fn only_cpu_and_memory_must_be_set_and_a_pod_counts_as_one() {
    let lacks = |name: &str| of_quota(&json!({"hard": {name: "0"}}), &pod(&json!({})));
    for (name, one) in [
        ("cpu", "cpu request"),
        ("memory", "memory request"),
        ("requests.cpu", "cpu request"),
        ("limits.cpu", "cpu limit"),
        ("requests.memory", "memory request"),
        ("limits.memory", "memory limit"),
    ] {
        let text = format!("{name}: every container must have a {one}; without one: app");
        assert_eq!(lacks(name), [format!("ResourceQuota quota: {text}")]);
    }
    for name in ["ephemeral-storage", "requests.nvidia.com/gpu", "hugepages-2Mi", "services"] {
        assert_eq!(lacks(name), Vec::<String>::new(), "{name}");
    }
    for name in ["pods", "count/pods"] {
        let text = format!(
            "ResourceQuota quota: {name}: the pod takes 1, 0 is used, and the quota allows 0"
        );
        assert_eq!(lacks(name), [text]);
    }
}

#[test]
fn each_resource_counts_under_the_names_that_quotas_have() {
    let requests =
        json!({"cpu": 1, "ephemeral-storage": 1, "nvidia.com/gpu": 1, "hugepages-2Mi": "2Mi"});
    let mut pod = pod(&json!({"requests": requests, "limits": requests}));
    for (name, counts) in [
        ("ephemeral-storage", true),
        ("requests.ephemeral-storage", true),
        ("limits.ephemeral-storage", true),
        ("requests.nvidia.com/gpu", true),
        ("limits.nvidia.com/gpu", false),
        ("nvidia.com/gpu", false),
        ("hugepages-2Mi", true),
        ("requests.hugepages-2Mi", true),
    ] {
        assert_eq!(!of_quota(&json!({"hard": {name: "0"}}), &pod).is_empty(), counts, "{name}");
    }
    // The overhead counts for limits only where there is one.
    pod["spec"]["overhead"] = json!({"cpu": "1", "memory": "1Gi"});
    let text =
        "ResourceQuota quota: limits.cpu: the pod takes 2, 0 is used, and the quota allows 1";
    assert_eq!(of_quota(&json!({"hard": {"limits.cpu": 1}}), &pod), [text]);
}

#[test]
fn amounts_of_any_size_are_summed_exactly() {
    let container = |cpu: &str| json!({"name": "a", "resources": {"requests": {"cpu": cpu}}});
    let pod = |cpus: [&str; 2]| json!({"spec": {"containers": cpus.map(container)}});
    let refused =
        |hard: &str, cpus| !of_quota(&json!({"hard": {"cpu": hard}}), &pod(cpus)).is_empty();
    assert!(refused("1e40", ["1e41", "0"]) && !refused("1e41", ["1e40", "1e40"]));
    assert!(refused("1e41", ["1e41", "1m"]) && !refused("1e41", ["1e41", "0"]));
    // Thousandths are counted, rounded up.
    assert!(!refused("1u", ["1m", "0"]) && refused("1u", ["1u", "1u"]));
}

#[test]
fn the_largest_init_container_counts_or_all_containers() {
    let container = |cpu: &str, policy: Option<&str>| json!({"name": "a", "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}});
    let pod = json!({"spec": {
        "initContainers": [container("3", None), container("500m", Some("Always"))],
        "containers": [container("1", None), container("1", None)],
    }});
    for (left, refused) in [("3", false), ("2999m", true)] {
        assert_eq!(!of_quota(&json!({"hard": {"cpu": left}}), &pod).is_empty(), refused, "{left}");
    }
}

#[test]
fn a_pod_with_resources_of_its_own_need_not_set_those_of_containers() {
    let mut pod = pod(&json!({}));
    pod["spec"]["resources"] = json!({"limits": {"cpu": "1"}});
    let hard = json!({"hard": {"requests.memory": "1Gi", "cpu": "2"}});
    assert_eq!(of_quota(&hard, &pod), Vec::<String>::new());
    pod["spec"]["resources"] = json!({"requests": {"example.com/other": "1"}});
    assert!(!of_quota(&hard, &pod).is_empty());
}

#[test]
fn the_status_counts_if_there_is_one() {
    let full = |status: Value| {
        let quotas =
            [json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}, "status": status})];
        refusals(Checks { quotas: &quotas, ..Checks::default() }, &pod(&json!({})))
    };
    assert_eq!(full(json!({"hard": {"pods": "5"}, "used": {"pods": "4"}})), Vec::<String>::new());
    assert_eq!(full(json!({"hard": {"pods": "5"}, "used": {"pods": "5"}})).len(), 1);
    assert_eq!(
        full(json!({"hard": {"pods": "5"}})),
        [
            "ResourceQuota q: Kubernetes has not counted yet what is used (status.used); until then it \
             refuses pods"
        ]
    );
    assert_eq!(full(json!({})).len(), 1);
}

#[test]
fn a_quota_is_about_the_pods_of_its_scopes() {
    let in_scope = |scope: Value, pod: &Value| {
        let mut spec = json!({"hard": {"pods": "0"}});
        let is_name = scope.is_string();
        spec[if is_name { "scopes" } else { "scopeSelector" }] =
            if is_name { json!([scope]) } else { json!({"matchExpressions": [scope]}) };
        !of_quota(&spec, pod).is_empty()
    };
    let plain = pod(&json!({"limits": {"cpu": 0}}));
    let mut other = pod(&json!({"requests": {"cpu": "1m"}}));
    other["spec"]["activeDeadlineSeconds"] = 0.into();
    other["spec"]["priorityClassName"] = "high".into();
    let term = json!({"topologyKey": "a", "namespaceSelector": {}});
    other["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let class = |operator: &str, values: Value| json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
    for (scope, of_plain, of_other) in [
        (json!("Terminating"), false, true),
        (json!("NotTerminating"), true, false),
        (json!("BestEffort"), true, false),
        (json!("NotBestEffort"), false, true),
        (json!("PriorityClass"), false, true),
        (json!("CrossNamespacePodAffinity"), false, true),
        (json!("VolumeAttributesClass"), false, false),
        (class("Exists", json!(null)), false, true),
        (class("DoesNotExist", json!(null)), true, false),
        (class("In", json!(["low", "high"])), false, true),
        (class("In", json!(["low"])), false, false),
        (class("NotIn", json!(["high"])), true, false),
    ] {
        let found = (in_scope(scope.clone(), &plain), in_scope(scope.clone(), &other));
        assert_eq!(found, (of_plain, of_other), "{scope}");
    }
    // The pod is in all scopes or the quota is not about it.
    let both = json!({"hard": {"pods": "0"}, "scopes": ["Terminating", "BestEffort"]});
    assert_eq!(of_quota(&both, &other), Vec::<String>::new());
}

#[test]
fn a_pod_is_best_effort_by_its_own_resources() {
    let mut pod = pod(&json!({"requests": {"cpu": "1"}}));
    let quotas = quota(&json!({"hard": {"pods": "0"}, "scopes": ["BestEffort"]}));
    let refused = |minor: u16, pod: &Value| {
        !refusals(Checks { quotas: &quotas, ..on(minor) }, pod).is_empty()
    };
    assert!(!refused(36, &pod) && !refused(37, &pod));
    // Empty ones count up to 1.36.
    pod["spec"]["resources"] = json!({});
    assert!(refused(36, &pod) && !refused(37, &pod));
}
