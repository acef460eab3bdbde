use super::*;

fn of_range(item: &Value, resources: &Value) -> Vec<String> {
    let ranges = range(item);
    refusals(Checks { limit_ranges: &ranges, ..Checks::default() }, &pod(resources))
}

#[test]
fn a_range_is_completed_as_the_api_server_completes_it() {
    let quotas =
        quota(&json!({"hard": {"requests.cpu": "9", "limits.cpu": "9", "requests.memory": "9Gi"}}));
    // The limit is the maximum, the request the limit; a minimum is a request alone.
    let item = json!({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Gi"}});
    let ranges = range(&item);
    let checks = Checks { limit_ranges: &ranges, quotas: &quotas, ..Checks::default() };
    assert_eq!(refusals(checks, &pod(&Value::Null)), Vec::<String>::new());
    // Not so for pods.
    assert_eq!(
        of_range(&json!({"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "1"}}), &json!({})),
        [
            "LimitRange range: the pod: cpu: no request is set, but the minimum of 1 needs one",
            "LimitRange range: the pod: cpu: no limit is set, but the maximum of 2 needs one",
        ]
    );
}

#[test]
fn requests_and_limits_stay_within_the_minimum_and_the_maximum() {
    let item = |resources: &Value| {
        of_range(
            &json!({"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}}),
            resources,
        )
    };
    for (resources, expected) in [
        (json!({"requests": {"cpu": "100m"}, "limits": {"cpu": 1}}), None),
        (json!({"limits": {"cpu": "100m"}}), None),
        (
            json!({"requests": {"cpu": "99m"}}),
            Some("the request of 99m is below the minimum of 100m"),
        ),
        (json!({"limits": {"cpu": "1001m"}}), Some("the limit of 1001m is above the maximum of 1")),
        // Thousandths are compared, rounded up.
        (json!({"requests": {"cpu": "99999u"}}), None),
        // Integers overflow, as an API server of 1.36 had it.
        (json!({"limits": {"cpu": "9E"}}), Some("the limit of 9E is above the maximum of 1")),
        (
            json!({"requests": {"cpu": "1"}, "limits": {"cpu": "10E"}}),
            Some("the limit of 10E is below the minimum of 100m"),
        ),
    ] {
        let found = item(&resources);
        let expected = expected.map(|text| format!("LimitRange range: container app: cpu: {text}"));
        assert_eq!(found.first(), expected.as_ref(), "{resources}");
    }
}

#[test]
fn a_limit_is_at_most_so_many_times_the_request() {
    let item = |ratio: Value, resources: &Value| {
        of_range(
            &json!({"type": "Container", "maxLimitRequestRatio": {"memory": ratio}}),
            resources,
        )
    };
    let resources = json!({"requests": {"memory": "100Mi"}, "limits": {"memory": "250Mi"}});
    assert_eq!(item(json!("2500m"), &resources), Vec::<String>::new());
    assert_eq!(
        item(json!("2"), &resources),
        [
            "LimitRange range: container app: memory: the limit is 2.5 times the request, more than the \
             maxLimitRequestRatio of 2"
        ]
    );
    for (resources, problem) in [
        (json!({}), "no request is set, but the maxLimitRequestRatio of 1.5 needs one"),
        (
            json!({"requests": {"memory": "1Gi"}}),
            "no limit is set, but the maxLimitRequestRatio of 1.5 needs one",
        ),
        (
            json!({"limits": {"memory": 0}}),
            "the request is 0, but the maxLimitRequestRatio of 1.5 needs one above 0",
        ),
        (
            json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "1e41"}}),
            "the limit of 100e39 is too large to compare",
        ),
    ] {
        let expected = format!("LimitRange range: container app: memory: {problem}");
        assert_eq!(item(json!("1500m"), &resources), [expected], "{resources}");
    }
}

#[test]
fn a_pod_is_measured_by_its_containers_or_its_own_resources() {
    let container =
        |name: &str, cpu: &str| json!({"name": name, "resources": {"limits": {"cpu": cpu}}});
    let mut pod = json!({"spec": {
        "initContainers": [container("big", "4")],
        "containers": [container("a", "1"), container("b", "2")],
    }});
    let refused = |pod: &Value, most: &str| {
        let ranges = range(&json!({"type": "Pod", "max": {"cpu": most}}));
        !refusals(Checks { limit_ranges: &ranges, ..Checks::default() }, pod).is_empty()
    };
    assert!(!refused(&pod, "4") && refused(&pod, "3999m"));
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always".into();
    assert!(!refused(&pod, "7") && refused(&pod, "6999m"));
    pod["spec"]["resources"] = json!({"limits": {"cpu": "8"}});
    assert!(!refused(&pod, "8") && refused(&pod, "7999m"));
}

#[test]
fn ephemeral_containers_are_not_limited() {
    let mut pod = pod(&json!({"limits": {"cpu": "1"}}));
    pod["spec"]["ephemeralContainers"] = json!([{"name": "debug"}]);
    let ranges = range(&json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "1"}}));
    let checks = Checks { limit_ranges: &ranges, ..Checks::default() };
    assert_eq!(refusals(checks, &pod), Vec::<String>::new());
}
