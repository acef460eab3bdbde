use serde_json::json;

use super::*;
use crate::tests::{SECRET_AGENT, pod, template};

const RULES: &str = r#"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: rules}
spec:
  match: {namespaceSelector: {}}
  steps:
  - name: agent
    overlay:
      metadata: {labels: {agent: "1"}}
      spec:
        containers: [{name: agent, image: agent}]
        volumes: [{name: run, emptyDir: {}}]
        securityContext: {fsGroup: 5}
    containers:
    - overlay:
        env: [{name: NAME, value: "${container.name}"}]
        volumeMounts: [{name: run, mountPath: /run}]
    - existing: Replace
      overlay:
        imagePullPolicy: Always
        env: [{name: OPTIONS, value: "${appended(env(container, 'OPTIONS').value, ' ', '-x')}"}]
"#;

fn request<'r>(pod: &'r Value, namespace: &'r Value) -> Request<'r> {
    Request { pod, namespace, service_account: None, owners: &[], own_namespace: None }
}

/// The pod with the templates, and then without them.
fn there_and_back(text: &str, pod: &Value, change: impl FnOnce(&mut Value)) -> Uninjected {
    let namespace = json!({"metadata": {"name": "shop"}});
    let templates = [template(text)];
    let injected = inject::inject(&templates, &request(pod, &namespace)).expect("it is injected");
    let mut injected = injected.pod;
    assert_ne!(injected, *pod);
    change(&mut injected);
    uninject(&templates, &request(&injected, &namespace)).expect("it has the mark")
}

#[test]
fn what_a_template_added_is_removed() {
    let pod = pod();
    let back = there_and_back(SECRET_AGENT, &pod, |_| ());
    assert_eq!((&back.pod, &back.templates[..]), (&pod, &["secret-agent".to_owned()][..]));
    assert_eq!(back.left, [""; 0]);
}

#[test]
fn what_a_template_may_have_replaced_stays_and_is_said() {
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app"}]}});
    let back = there_and_back(RULES, &pod, |_| ());
    let mut expected = pod.clone();
    expected["spec"]["containers"][0]["imagePullPolicy"] = "Always".into();
    assert_eq!(back.pod, expected);
    let place = r#"spec.containers["app"].imagePullPolicy"#;
    assert!(back.left.len() == 1 && back.left[0].starts_with(place), "{:?}", back.left);
}

#[test]
fn what_others_changed_and_mount_stays() {
    let pod = json!({"metadata": {"name": "web"}, "spec": {
        "containers": [{"name": "app", "env": [{"name": "NAME", "value": "mine"}]}]}});
    let back = there_and_back(RULES, &pod, |injected| {
        let containers = injected["spec"]["containers"].as_array_mut().expect("containers");
        let mounts = json!([{"name": "run", "mountPath": "/mine"}]);
        containers.push(json!({"name": "later", "volumeMounts": mounts}));
        injected["spec"]["securityContext"]["fsGroup"] = 6.into();
    });
    let spec = &back.pod["spec"];
    assert_eq!(spec["containers"][0]["env"], json!([{"name": "NAME", "value": "mine"}]));
    let names: Vec<_> =
        spec["containers"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
    assert_eq!(names, ["app", "later"]);
    assert_eq!(spec["volumes"], json!([{"name": "run", "emptyDir": {}}]));
    assert_eq!(spec["securityContext"]["fsGroup"], 6);
}

#[test]
fn without_the_revision_that_was_applied_only_containers_are_removed() {
    let pod = pod();
    let namespace = json!({"metadata": {"name": "shop"}});
    let injected = inject::inject(&[template(SECRET_AGENT)], &request(&pod, &namespace));
    let injected = injected.expect("it is injected").pod;
    let newer = template(&SECRET_AGENT.replace("agent:1.20", "agent:1.21"));
    let back = uninject(&[newer], &request(&injected, &namespace)).expect("it has the mark");
    assert!(back.left[0].contains("it has changed since"), "{:?}", back.left);
    let spec = &back.pod["spec"];
    assert_eq!(
        (spec.get("initContainers"), spec["volumes"][0]["name"].as_str()),
        (None, Some("secrets"))
    );
    assert_eq!(back.pod["metadata"], pod["metadata"]);
    let marked = by_mark(&injected).expect("it has the mark");
    assert_eq!(marked.pod, back.pod);
    assert!(marked.left[0].contains("--templates"), "{:?}", marked.left);
    assert_eq!(by_mark(&pod), None);
    assert_eq!(uninject(&[template(RULES)], &request(&injected, &namespace)), None);
}
