use serde_json::json;

use super::*;
use crate::{inject, mark, tests::template};

const AGENT: &str = r#"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: agent}
spec:
  match:
    conditions:
    - {name: no-own-agent, expression: "!object.spec.containers.exists(c, c.name == 'agent')"}
    - {name: no-own-volume, expression: "!has(object.spec.volumes)"}
  enablement: {key: agent, in: [PodAnnotation], default: Enabled}
  parameters:
  - {name: level, type: String, default: info, from: [{podAnnotation: level}], enum: [info, debug]}
  validations:
  - {expression: "!('skip' in object.metadata.?annotations.orValue({}))", action: Skip, message: skipped}
  steps:
  - name: agent
    overlay:
      spec:
        containers: [{name: agent, image: "agent:1"}]
        volumes: [{name: run, emptyDir: {}}]
    containers:
    - overlay: {volumeMounts: [{name: run, mountPath: /run}]}
"#;

fn request<'r>(pod: &'r Value, namespace: &'r Value) -> Request<'r> {
    Request { pod, namespace, service_account: None, owners: &[], own_namespace: None }
}

fn stands(templates: &[&str], pod: &Value) -> Vec<(String, Stands)> {
    let templates: Vec<_> = templates.iter().map(|text| template(text)).collect();
    let namespace = json!({"metadata": {"name": "shop"}});
    let all = standings(&templates.iter().collect::<Vec<_>>(), &request(pod, &namespace));
    all.into_iter().map(|standing| (standing.template, standing.stands)).collect()
}

fn plain() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app"}]}})
}

fn injected(text: &str) -> Value {
    let namespace = json!({"metadata": {"name": "shop"}});
    let pod = plain();
    inject(&[template(text)], &request(&pod, &namespace)).expect("it is injected").pod
}

fn one(text: &str, pod: &Value) -> Stands {
    let [(_, stands)] = &stands(&[text], pod)[..] else { panic!("must be one") };
    stands.clone()
}

fn annotate(mut pod: Value, key: &str, value: &str) -> Value {
    pod["metadata"]["annotations"][key] = value.into();
    pod
}

/// Conditions that hold only for a pod without it.
#[test]
fn a_template_that_is_in_the_pod_is_judged_without_what_it_added() {
    assert_eq!(one(AGENT, &injected(AGENT)), Stands::Present);
}

#[test]
fn a_pod_that_a_template_is_for_lacks_it() {
    assert_eq!(one(AGENT, &plain()), Stands::Missing);
    let disabled = annotate(plain(), "agent", "disabled");
    assert_eq!(one(AGENT, &disabled), Stands::Absent(State::Disabled));
    let skipped = annotate(plain(), "skip", "");
    assert_eq!(one(AGENT, &skipped), Stands::Absent(State::Skipped("skipped".to_owned())));
    let denied = annotate(plain(), "level", "loud");
    assert!(matches!(one(AGENT, &denied), Stands::Denied(_)));
}

/// What an older revision left, such as a volume of the same name, is no reason for a denial.
#[test]
fn another_hash_is_outdated() {
    let newer =
        AGENT.replace("agent:1", "agent:2").replace("emptyDir: {}", "emptyDir: {medium: Memory}");
    let newer = newer.replace("!has(object.spec.volumes)", "true");
    let pod = injected(AGENT);
    let entry = mark::Mark::of(&pod).0["agent"].clone();
    assert_eq!(one(&newer, &pod), Stands::Outdated(entry.hash));
}

#[test]
fn a_restart_would_remove_what_no_longer_matches() {
    let pod = injected(AGENT);
    let newer = AGENT.replace("agent:1", "agent:2");
    let skipped = annotate(pod.clone(), "skip", "");
    for (text, pod, reason) in [
        (AGENT, &annotate(pod.clone(), "agent", "disabled"), "disabled"),
        (&newer, &skipped, "skipped: skipped"),
    ] {
        let Stands::Unexpected { reason: found, .. } = one(text, pod) else { panic!("{reason}") };
        assert_eq!(found, reason);
    }
    // It may look for the template itself.
    assert_eq!(one(AGENT, &skipped), Stands::Present);
    let [(key, Stands::Unexpected { reason, .. })] = &stands(&[], &pod)[..] else { panic!("one") };
    assert_eq!((&**key, &**reason), ("agent", "no such template is in force"));
    // A new pod would not even be made.
    assert!(matches!(one(AGENT, &annotate(pod, "level", "loud")), Stands::Denied(_)));
}

#[test]
fn a_mark_without_its_containers_is_not_believed() {
    let mut pod = plain();
    pod["metadata"] = injected(AGENT)["metadata"].clone();
    assert_eq!(one(AGENT, &pod), Stands::Missing);
    assert_eq!(stands(&[], &pod), []);
}

/// Templates that select a pod, or that it has.
#[test]
fn only_templates_that_may_be_for_a_pod_are_selected() {
    let namespace = json!({"metadata": {"name": "shop"}});
    let template = template(AGENT);
    let off = |pod: Value| annotate(pod, "agent", "disabled");
    for (pod, expected) in [(plain(), true), (off(plain()), false), (off(injected(AGENT)), true)] {
        assert_eq!(selected(&[&template], &request(&pod, &namespace)), [expected]);
    }
}
