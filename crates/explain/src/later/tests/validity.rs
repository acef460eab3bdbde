use super::*;

fn problems(resources: &Value) -> Vec<String> {
    refusals(Checks::default(), &pod(resources))
}

#[test]
fn a_request_above_its_limit_is_not_valid() {
    let found = problems(&json!({"requests": {"cpu": "500m"}, "limits": {"cpu": "100m"}}));
    let text = "container app: the cpu request of 500m is above the limit of 100m";
    assert_eq!(found, [format!("{VALIDATION}: {text}")]);
}

#[test]
fn the_limit_range_that_gave_a_limit_is_named() {
    let ranges = range(&json!({"type": "Container", "default": {"cpu": "100m"}}));
    let checks = Checks { limit_ranges: &ranges, ..Checks::default() };
    let found = refusals(checks, &pod(&json!({"requests": {"cpu": "500m"}})));
    let text = "container app: the cpu request of 500m is above the limit of 100m (default of \
                LimitRange range)";
    assert_eq!(found, [format!("{VALIDATION}: {text}")]);
}

#[test]
fn resources_that_nodes_offer_have_equal_requests_and_limits() {
    let gpu = "nvidia.com/gpu";
    for (resources, count) in [
        (json!({"limits": {gpu: 1}}), 0),
        (json!({"requests": {gpu: 1}, "limits": {gpu: 1}}), 0),
        (json!({"requests": {gpu: 1}, "limits": {gpu: 2}}), 1),
        (json!({"requests": {gpu: 1}}), 1),
        (json!({"limits": {gpu: "1500m"}}), 2),
        (json!({"limits": {"hugepages-2Mi": "4Mi", "cpu": 1}}), 0),
        (json!({"limits": {"hugepages-2Mi": "4Mi"}}), 1),
        (json!({"limits": {"hugepages-2Mi": "3Mi", "cpu": 1}}), 2),
        (json!({"limits": {"cpu": "-1"}}), 2),
        (json!({"limits": {"gpu": "1"}}), 2),
        (json!({"limits": {gpu: "1e41"}}), 0),
        (json!({"limits": {gpu: "10000000000000000000000"}}), 2),
        (json!({"limits": {"hugepages-2Mi": "2097151500m", "cpu": 1}}), 0),
        (json!({"requests": {"cpu": "1e41"}, "limits": {"cpu": "1e40"}}), 1),
        (json!({"requests": {"cpu": "1e40"}, "limits": {"cpu": "1e41"}}), 0),
        (json!({"requests": {"cpu": "2u"}, "limits": {"cpu": "1u"}}), 0),
        (json!({"limits": {"kubernetes.io/other": "1500m"}}), 0),
    ] {
        let found = problems(&resources);
        assert_eq!(found.len(), count, "{resources}: {found:#?}");
    }
}

#[test]
fn a_pod_for_windows_takes_no_fields_of_linux() {
    let pod = json!({"spec": {
        "os": {"name": "windows"},
        "hostPID": false,
        "securityContext": {"sysctls": [], "runAsUser": null, "fsGroup": 1},
        "containers": [{"name": "app", "securityContext": {"capabilities": {"drop": ["ALL"]}}}],
    }});
    assert_eq!(
        refusals(Checks::default(), &pod),
        [
            "the validation of pods: a pod for Windows must not set securityContext.fsGroup",
            "the validation of pods: container app of a pod for Windows must not set \
             securityContext.capabilities",
        ]
    );
}
