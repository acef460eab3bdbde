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
            "LimitRange range: the pod: cpu: no request, but at least 1 is asked for",
            "LimitRange range: the pod: cpu: no limit, but one of at most 2 is asked for",
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
            "LimitRange range: container app: memory: the limit is 2.50 times the request, more than 2 times"
        ]
    );
    for resources in
        [json!({}), json!({"requests": {"memory": "1Gi"}}), json!({"limits": {"memory": 0}})]
    {
        assert_eq!(item(json!("2"), &resources).len(), 1, "{resources}");
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
    let ranges = range(&json!({"type": "Pod", "max": {"cpu": "7"}}));
    let before_them = Checks { limit_ranges: &ranges, ..on(33) };
    assert_eq!(refusals(before_them, &pod), Vec::<String>::new());
}

#[test]
fn ephemeral_containers_are_not_limited() {
    let mut pod = pod(&json!({"limits": {"cpu": "1"}}));
    pod["spec"]["ephemeralContainers"] = json!([{"name": "debug"}]);
    let ranges = range(&json!({"type": "Container", "maxLimitRequestRatio": {"cpu": "1"}}));
    let checks = Checks { limit_ranges: &ranges, ..Checks::default() };
    assert_eq!(refusals(checks, &pod), Vec::<String>::new());
}
