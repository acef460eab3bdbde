//! What cannot stand beside each other, what may not be set, and in which order items are put.

use super::*;

/// A template for all pods with this rest of a `spec`, in JSON or YAML of one line.
fn of_all(rest: &str) -> Template {
    template(&format!(
        "{{apiVersion: injectd.dev/v1alpha1, kind: ClusterSidecarTemplate, metadata: {{name: t}}, \
         spec: {{match: {{namespaceSelector: {{}}}}, {rest}}}}}"
    ))
}

fn pod_of(container: &Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"containers": [container]}})
}

fn sent(rest: &str, pod: &Value) -> Result<Value, String> {
    let templates = [of_all(rest)];
    let first = injected(&templates, pod)?.pod;
    let second = injected(&templates, &first)?.pod;
    assert_eq!(second, first, "a second call");
    Ok(first)
}

fn names(pod: &Value, list: &str) -> Vec<String> {
    let containers = pod["spec"][list].as_array().into_iter().flatten();
    containers.filter_map(|container| Some(container["name"].as_str()?.to_owned())).collect()
}

#[test]
fn an_expression_sets_nothing_that_an_overlay_may_not_set() {
    let pod = pod_of(&json!({"name": "app", "image": "app"}));
    for (overlay, expected) in [
        (
            r#"spec: {$from: "${{'serviceAccountName': object.metadata.name}}"}"#,
            "step s: spec.steps[0].overlay: spec.serviceAccountName: an overlay may not set this",
        ),
        (
            r#"spec: "${{'ephemeralContainers': [{'name': object.metadata.name}]}}""#,
            "step s: spec.steps[0].overlay: spec.ephemeralContainers: an overlay may not set this",
        ),
        (
            r#"metadata: "${{'finalizers': [object.metadata.name]}}""#,
            "step s: spec.steps[0].overlay: metadata.finalizers: of metadata, an overlay may set",
        ),
        (
            r#"metadata: {labels: "${{'injectd.dev/' + object.metadata.name: 'y'}}"}"#,
            "step s: spec.steps[0].overlay: metadata.labels[\"injectd.dev/web\"]: keys with injectd.dev/",
        ),
    ] {
        let denied = sent(&format!("steps: [{{name: s, overlay: {{{overlay}}}}}]"), &pod);
        let denied = denied.expect_err(overlay);
        assert!(denied.contains(expected), "{denied}");
    }
    let labels = r#"metadata: {labels: "${{'a/' + object.metadata.name: 'y'}}"}"#;
    let pod = sent(&format!("steps: [{{name: s, overlay: {{{labels}}}}}]"), &pod);
    assert_eq!(pod.expect("it is injected")["metadata"]["labels"]["a/web"], "y");
}

#[test]
fn a_handler_meets_the_handler_of_another_kind() {
    let exec = json!({"exec": {"command": ["z"]}});
    let pod = pod_of(&json!({"name": "app", "image": "app", "lifecycle": {"preStop": exec},
        "readinessProbe": {"exec": {"command": ["z"]}, "periodSeconds": 3}}));
    let rule = |existing: &str| {
        format!(
            "steps: [{{name: s, containers: [{{{existing} overlay: {{lifecycle: {{preStop: {{sleep: \
             {{seconds: 5}}}}}}, readinessProbe: {{httpGet: {{port: 80}}, timeoutSeconds: 2}}}}}}]}}]"
        )
    };
    let kept = sent(&rule(""), &pod).expect("it is injected");
    let app = &kept["spec"]["containers"][0];
    assert_eq!(app["lifecycle"]["preStop"], exec);
    let probe = json!({"exec": {"command": ["z"]}, "periodSeconds": 3, "timeoutSeconds": 2});
    assert_eq!(app["readinessProbe"], probe);
    let replaced = sent(&rule("existing: Replace,"), &pod).expect("it is injected");
    let app = &replaced["spec"]["containers"][0];
    assert_eq!(app["lifecycle"]["preStop"], json!({"sleep": {"seconds": 5}}));
    let probe = json!({"httpGet": {"port": 80}, "periodSeconds": 3, "timeoutSeconds": 2});
    assert_eq!(app["readinessProbe"], probe);
    let denied = sent(&rule("existing: Fail,"), &pod).expect_err("a conflict");
    assert!(denied.contains("preStop.sleep: the pod has another value there"), "{denied}");
}

#[test]
fn a_handler_may_be_deleted_beside_another() {
    let hook = "preStop: {httpGet: {port: 80}, exec: {$patch: delete}}";
    let rest = format!(
        "steps: [{{name: s, containers: [{{existing: Replace, overlay: {{lifecycle: {{{hook}}}}}}}]}}]"
    );
    let exec = json!({"preStop": {"exec": {"command": ["z"]}}});
    let pod = pod_of(&json!({"name": "app", "image": "app", "lifecycle": exec}));
    let hook =
        sent(&rest, &pod).expect("it is injected")["spec"]["containers"][0]["lifecycle"].take();
    assert_eq!(hook, json!({"preStop": {"httpGet": {"port": 80}}}));
}

#[test]
fn what_a_later_rule_replaces_is_no_failure_of_an_earlier_one() {
    let rule = |existing: &str, handler: &str| {
        format!("{{existing: {existing}, overlay: {{lifecycle: {{preStop: {{{handler}}}}}}}}}")
    };
    let [exec, get] = ["exec: {command: [a]}", "httpGet: {port: 80}"];
    let rules = [rule("Fail", exec), rule("Replace", get)].join(", ");
    let templates = [of_all(&format!("steps: [{{name: s, containers: [{rules}]}}]"))];
    let pod = pod_of(&json!({"name": "app", "image": "app"}));
    let once = injected(&templates, &pod).expect("it is injected").pod;
    let mut unmarked = once.clone();
    unmarked["metadata"].as_object_mut().expect("an object").shift_remove("annotations");
    assert_eq!(injected(&templates, &unmarked).expect("it is injected").pod, once);
}

#[test]
fn two_handlers_in_one_overlay_deny_the_pod() {
    let both = "lifecycle: {preStop: {sleep: {seconds: 5}, exec: {command: [z]}}}";
    let rest = format!("steps: [{{name: s, containers: [{{overlay: {{{both}}}}}]}}]");
    let denied = sent(&rest, &pod_of(&json!({"name": "app", "image": "app"})));
    let denied = denied.expect_err("two handlers");
    assert!(denied.contains(r#"spec.containers["app"].preStop: it has more than one"#), "{denied}");
}

#[test]
fn a_pod_keeps_a_container() {
    let rest = "steps: [{name: s, existing: Replace, overlay: {spec: {containers: [{name: app, $patch: delete}]}}}]";
    let denied = sent(rest, &pod_of(&json!({"name": "app", "image": "app"})));
    let denied = denied.expect_err("no container");
    assert!(denied.contains("spec.containers: no container is left"), "{denied}");
}

#[test]
fn items_stay_in_their_order_wherever_they_are_put() {
    let pod = json!({"metadata": {"name": "web"}, "spec": {
        "initContainers": [{"name": "i1", "image": "i"}, {"name": "i2", "image": "i"}],
        "containers": [{"name": "app", "image": "app"}]}});
    for (placement, expected) in [
        ("{position: First}", ["t-b", "t-a", "t-c", "i1", "i2"]),
        ("{position: After, name: i1}", ["i1", "t-b", "t-a", "t-c", "i2"]),
        ("{position: Before, name: i2}", ["i1", "t-b", "t-a", "t-c", "i2"]),
        ("{position: Before, name: none, otherwise: First}", ["t-b", "t-a", "t-c", "i1", "i2"]),
        ("{position: Last}", ["i1", "i2", "t-b", "t-a", "t-c"]),
    ] {
        let rest = format!(
            "steps: [{{name: s, forEach: {{items: \"['b', 'a', 'c']\"}}, placement: {{initContainers: {placement}, \
             containers: {{position: First}}}}, overlay: {{spec: {{initContainers: [{{name: \"t-${{item}}\", image: \
             t}}], containers: [{{name: \"u-${{item}}\", image: u}}]}}}}}}]"
        );
        let pod = sent(&rest, &pod).expect("it is injected");
        assert_eq!(names(&pod, "initContainers"), expected, "{placement}");
        assert_eq!(names(&pod, "containers"), ["u-b", "u-a", "u-c", "app"]);
    }
    // A container in the way takes the short way from the template: the others go behind each other all the same.
    let mut pod = pod;
    pod["spec"]["initContainers"][1]["name"] = "t-a".into();
    let rest = "steps: [{name: s, onConflict: Keep, forEach: {items: \"['b', 'a', 'c']\"}, placement: {initContainers: \
                {position: First}}, overlay: {spec: {initContainers: [{name: \"t-${item}\", image: t}]}}}]";
    let pod = sent(rest, &pod).expect("it is injected");
    assert_eq!(names(&pod, "initContainers"), ["t-b", "i1", "t-a", "t-c"]);
}

#[test]
fn a_base_has_ports_by_protocol_and_one_source_of_a_variable() {
    let rest = r#"
      variables: [{name: base, value: {name: side, image: s, ports: [{containerPort: 80, protocol: UDP}],
        env: [{name: B, value: "2"}]}}],
      steps: [{name: s, overlay: {spec: {containers: [{$from: "${variables.base}",
        ports: [{containerPort: 80, protocol: TCP}],
        env: [{name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}]"#;
    let pod = sent(rest, &pod_of(&json!({"name": "app", "image": "app"}))).expect("it is injected");
    let side = &pod["spec"]["containers"][1];
    assert_eq!(side["ports"].as_array().map(Vec::len), Some(2), "{side}");
    let variable = json!({"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    assert_eq!(side["env"], json!([variable]));
}
