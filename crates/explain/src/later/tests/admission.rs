use super::{
    super::{
        admission::admitted,
        resources::{Side, pod::PodResources},
    },
    *,
};

fn resources(minor: u16, ranges: &[Value], before: &Value, injected: &Value) -> PodResources {
    let ranges: Vec<_> = ranges.iter().map(LimitRange::read).collect();
    admitted(&ranges, Version::minor(minor), before, injected)
}

fn own(pod: &PodResources, side: Side) -> Vec<String> {
    let own = pod.own.as_ref().expect("own resources");
    own.side(side).iter().map(|(name, amount)| format!("{name}={amount}")).collect()
}

#[test]
fn a_later_item_of_a_range_and_an_earlier_range_win() {
    let item = |cpu: &str| json!({"type": "Container", "default": {"cpu": cpu}});
    let range = |items: Vec<Value>| json!({"metadata": {"name": "r"}, "spec": {"limits": items}});
    let pod = pod(&json!({}));
    let found =
        resources(37, &[range(vec![item("1"), item("2")]), range(vec![item("3")])], &pod, &pod);
    let limits = &found.containers[0].resources.limits;
    assert_eq!(limits["cpu"].to_string(), "2");
}

#[test]
fn requests_of_the_pod_are_those_of_its_containers_or_its_limits() {
    let mut pod = pod(&json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}));
    pod["spec"]["resources"] = json!({"limits": {"cpu": "2", "hugepages-2Mi": "4Mi"}});
    for minor in [36, 37] {
        let found = resources(minor, &[], &pod, &pod);
        assert_eq!(own(&found, Side::Requests), ["cpu=1", "hugepages-2Mi=4Mi", "memory=1Gi"]);
    }
}

#[test]
fn limits_of_the_pod_are_those_of_its_containers_from_1_37_on() {
    let mut pod = pod(&json!({"limits": {"cpu": "1"}}));
    pod["spec"]["resources"] = json!({"requests": {"cpu": "2", "memory": "1Gi"}});
    assert_eq!(own(&resources(36, &[], &pod, &pod), Side::Limits), Vec::<String>::new());
    // Not below the request, and not where a container has none.
    assert_eq!(own(&resources(37, &[], &pod, &pod), Side::Limits), ["cpu=2"]);
}

#[test]
fn requests_that_a_sidecar_adds_exceed_those_of_the_pod_up_to_1_36() {
    let mut before = pod(&json!({"requests": {"cpu": "1"}}));
    before["spec"]["resources"] = json!({"limits": {"cpu": "4"}});
    let mut injected = before.clone();
    let proxy = json!({"name": "linkerd-proxy", "resources": {"requests": {"cpu": "1"}}});
    injected["spec"]["containers"].as_array_mut().expect("a list").push(proxy);
    assert_eq!(own(&resources(37, &[], &before, &injected), Side::Requests), ["cpu=2"]);
    let found = objections(on(36), &before, &injected);
    let text = "the pod: requests.cpu is 1, less than the 2 that its containers have together";
    assert_eq!(texts(&found), [(VALIDATION, text, true)]);
    assert_eq!(texts(&objections(on(37), &before, &injected)), []);
}
