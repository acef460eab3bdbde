//! Steps that are left out of a pod stay left out.

use super::*;

/// The rule of a step that was left out is not applied by a second call, either.
#[test]
fn a_second_call_does_not_apply_the_rules_of_a_step_that_was_left_out() {
    let in_the_way = [
        (
            "containers: [{name: agent, image: 'agent:1'}]",
            json!({"containers": [
            {"name": "app", "image": "app"}, {"name": "agent", "image": "other"}]}),
        ),
        (
            "volumes: [{name: v, emptyDir: {}}]",
            json!({"containers": [
            {"name": "app", "image": "app"}], "volumes": [{"name": "v", "hostPath": {"path": "/v"}}]}),
        ),
    ];
    for (written, spec) in in_the_way {
        let text = "
kind: ClusterSidecarTemplate
metadata: {name: t}
spec:
  match: {namespaceSelector: {}}
  steps:
  - name: agent
    onConflict: SkipStep
    overlay: {spec: {WRITTEN}}
    containers: [{overlay: {env: [{name: AGENT, value: here}]}}]
  - name: label
    overlay: {metadata: {labels: {marked: yes}}}
";
        let text = text.replace("WRITTEN", written).replace("yes", "'yes'");
        let text = text.replace("kind:", "apiVersion: injectd.dev/v1alpha1\nkind:");
        let templates = [template(&text)];
        let pod = json!({"metadata": {"name": "web"}, "spec": spec});
        let once = injected(&templates, &pod).expect("the pod must be allowed").pod;
        assert_eq!(once["metadata"]["labels"]["marked"], "yes");
        assert_eq!(once["spec"], spec, "the step is left out");
        let twice = injected(&templates, &once).expect("the pod must be allowed").pod;
        assert_eq!(twice, once);
        // A step that is there is applied to what comes later.
        let free = json!({"metadata": {"name": "web"}, "spec": {"containers": [
            {"name": "app", "image": "app"}]}});
        let mut once = injected(&templates, &free).expect("the pod must be allowed").pod;
        let later = json!({"name": "later", "image": "later"});
        once["spec"]["containers"].as_array_mut().expect("a list").push(later);
        let twice = injected(&templates, &once).expect("the pod must be allowed").pod;
        let served = twice["spec"]["containers"].as_array().expect("a list").last();
        assert_eq!(served.expect("a container")["env"][0]["value"], "here", "{twice}");
    }
}

/// A pod that has lost its mark does not get a step that was left out because of a container that a later
/// template has replaced.
#[test]
fn a_step_that_was_left_out_stays_out_when_the_mark_is_lost() {
    let of = |name: &str, priority: u8, answer: &str| {
        template(&format!(
            "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {{name: {name}}}
spec:
  priority: {priority}
  match: {{namespaceSelector: {{}}}}
  steps:
  - name: agent
    onConflict: {answer}
    overlay:
      spec:
        initContainers: [{{name: init, image: 'agent:{name}'}}]
        volumes: [{{name: {name}, emptyDir: {{}}}}]
"
        ))
    };
    let templates = [of("first", 1, "SkipStep"), of("second", 0, "Replace")];
    for init in [json!([{"name": "init", "image": "init"}]), json!([])] {
        let pod = json!({"metadata": {"name": "web"}, "spec": {
            "initContainers": init, "containers": [{"name": "app", "image": "app"}]}});
        let once = injected(&templates, &pod).expect("the pod must be allowed").pod;
        assert_eq!(once["spec"]["initContainers"][0]["image"], "agent:second");
        let mut lost = once.clone();
        let annotations = lost["metadata"]["annotations"].as_object_mut().expect("annotations");
        annotations.clear();
        let again = injected(&templates, &lost).expect("the pod must be allowed").pod;
        assert_eq!(again, once);
    }
}

/// A cluster template with a priority and steps.
fn of_steps(name: &str, priority: u8, steps: &Value) -> Template {
    template(
        &json!({
            "apiVersion": "injectd.dev/v1alpha1",
            "kind": "ClusterSidecarTemplate",
            "metadata": {"name": name},
            "spec": {"priority": priority, "match": {"namespaceSelector": {}}, "steps": steps},
        })
        .to_string(),
    )
}

/// A template is laid if a later one replaces what was in its way by what it would write: a second call would do
/// it.
#[test]
fn what_a_later_template_replaces_is_in_the_way_no_more() {
    let volume = |kind: &Value| json!([{"name": "v", "emptyDir": kind}]);
    let memory = volume(&json!({"medium": "Memory"}));
    let (first, third) = (json!({"volumes": memory}), json!({"volumes": volume(&json!({}))}));
    let second = json!({"containers": [{"name": "second", "image": "second"}], "volumes": volume(&json!({}))});
    for answer in ["SkipStep", "SkipTemplate"] {
        let step = |answer: &str, spec: &Value| json!([{"name": "one", "onConflict": answer, "overlay": {"spec": spec}}]);
        let templates = [
            of_steps("first", 2, &step("Fail", &first)),
            of_steps("second", 1, &step(answer, &second)),
            of_steps("third", 0, &step("Replace", &third)),
        ];
        let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [
            {"name": "app", "image": "app"}]}});
        let once = injected(&templates, &pod).expect("the pod must be allowed");
        let states: Vec<_> = once.decisions.iter().map(|one| one.state.as_str()).collect();
        assert_eq!(states, ["applied", "applied", "applied"], "{answer}");
        assert_eq!(once.pod["spec"]["containers"][1]["name"], "second");
        let twice = injected(&templates, &once.pod).expect("the pod must be allowed").pod;
        assert_eq!(twice, once.pod, "{answer}");
    }
}

/// A container of the pod that a template would have replaced is the pod's own if that template is left out.
#[test]
fn a_container_is_the_pods_own_if_the_template_that_replaces_it_is_left_out() {
    let rules = json!([
        {"name": "volume", "overlay": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}},
        {"name": "rules", "containers": [
            {"kinds": ["Container"], "overlay": {"env": [{"name": "SERVED", "value": "1"}]}}]},
    ]);
    let replaces = json!([
        {"name": "tail", "onConflict": "Replace",
            "overlay": {"spec": {"containers": [{"name": "tail", "image": "tail"}]}}},
        {"name": "volume", "onConflict": "SkipTemplate",
            "overlay": {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}}},
    ]);
    let templates = [of_steps("rules", 1, &rules), of_steps("replaces", 0, &replaces)];
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [
        {"name": "app", "image": "app"}, {"name": "tail", "image": "other"}]}});
    let once = injected(&templates, &pod).expect("the pod must be allowed").pod;
    for container in once["spec"]["containers"].as_array().expect("a list") {
        assert_eq!(container["env"][0]["name"], "SERVED", "{once}");
    }
    let twice = injected(&templates, &once).expect("the pod must be allowed").pod;
    assert_eq!(twice, once);
}
