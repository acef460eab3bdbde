//! The policy says the same of a pod as the injection.

use clap::Parser as _;
use injectd_core::yaml;
use injectd_templates::mark::ANNOTATION;
use injectd_templates_tree::{Request, inject_in_order};
use serde_json::{Value, json};

use super::{
    super::{agree::Guard, objects, tests::Line},
    *,
};

/// A template `agent` with a container `agent`, with more in its `spec`.
fn agent(more: &str) -> Template {
    let text = format!(
        "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {{name: agent}}
spec:
  {}
  steps:
  - name: agent
    overlay: {{spec: {{containers: [{{name: agent, image: agent}}]}}}}
",
        more.trim().replace('\n', "\n  ")
    );
    read(&text)
}

fn read(text: &str) -> Template {
    let object = yaml::parse(text).expect("YAML");
    Template::read(&object).unwrap_or_else(|problems| panic!("{problems:?}: {text}"))
}

/// The policy of templates, and its notes.
fn policy(templates: Vec<Template>) -> (Value, Vec<String>) {
    let Line { args } = Line::parse_from(["guard", "--mesh=templates"]);
    let rules = rules(templates, Ceiling::Baseline);
    let [policy, _] = objects::of(&args, &rules).expect("a policy");
    (policy, rules.notes)
}

/// The checks of a policy, the one about a missing sidecar last.
fn guards(policy: &Value) -> Vec<Guard> {
    let checks = policy["spec"]["validations"].as_array().expect("checks").len();
    (0..checks).map(|check| Guard::of(policy, check)).collect()
}

fn pod(labels: &Value, annotations: &Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "shop", "labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "app", "image": "app"}]}})
}

fn namespace(labels: &Value, annotations: &Value) -> Value {
    let mut labels = labels.clone();
    labels["kubernetes.io/metadata.name"] = "shop".into();
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": labels, "annotations": annotations}})
}

/// A template, as the injection has it and as the policy does.
struct Both {
    template: Template,
    guards: Vec<Guard>,
}

impl Both {
    fn new(more: &str) -> Self {
        let (policy, notes) = policy(vec![agent(more)]);
        assert!(notes.is_empty(), "{notes:?}");
        Self { template: agent(more), guards: guards(&policy) }
    }

    /// Whether a pod is injected: then the policy reports it, and not the pod that is injected.
    fn agree(&self, pod: &Value, namespace: &Value) -> bool {
        let templates = [&self.template];
        let request =
            Request { pod, namespace, service_account: None, owners: &[], own_namespace: None };
        let injected = inject_in_order(&templates, &request).expect("an answer").pod;
        let is_injected = injected != *pod;
        let missing = self.guards.last().expect("a check");
        assert_eq!(missing.complains(pod, namespace), is_injected, "{pod} {namespace}");
        let is_in_order = |guard: &Guard| !guard.complains(&injected, namespace);
        assert!(self.guards.iter().all(is_in_order), "{injected} {namespace}");
        is_injected
    }
}

#[test]
fn pods_are_reported_by_the_key_of_enablement_as_they_are_injected() {
    const VALUES: [Option<&str>; 5] =
        [None, Some("true"), Some("Disabled"), Some("yes"), Some("other,agent")];
    let places = ["PodLabel", "PodAnnotation", "NamespaceLabel", "NamespaceAnnotation"];
    let (mut injected, mut left) = (0, 0);
    for (listed, more) in [
        (&[0, 2][..], ""),
        (&[1, 3], ", default: Enabled"),
        (&[2, 0], ", optOut: Ignored"),
        (&[1, 3], ", values: Name"),
        (&[1, 0, 3], ", values: Name, optOut: Ignored"),
    ] {
        let names: Vec<_> = listed.iter().map(|place| places[*place]).collect();
        let enablement = format!(
            "match: {{namespaceSelector: {{}}}}\nenablement: {{key: inject, in: [{}]{more}}}",
            names.join(", ")
        );
        let both = Both::new(&enablement);
        for at in 0..VALUES.len().pow(3) {
            let digits = [at % 5, at / 5 % 5, at / 25];
            if digits[listed.len()..].iter().any(|digit| *digit > 0) {
                continue;
            }
            let mut maps = [json!({}), json!({}), json!({}), json!({})];
            for (place, digit) in listed.iter().zip(digits) {
                if let Some(value) = VALUES[digit] {
                    maps[*place]["inject"] = value.into();
                }
            }
            let [labels, annotations, of_namespace, more_of_namespace] = maps;
            let (pod, namespace) =
                (pod(&labels, &annotations), namespace(&of_namespace, &more_of_namespace));
            if both.agree(&pod, &namespace) { injected += 1 } else { left += 1 }
        }
    }
    assert!(injected > 50 && left > 50, "{injected} are injected, {left} are not");
}

#[test]
fn pods_are_reported_by_selectors_and_conditions_as_they_are_injected() {
    let selectors = "match:
  namespaceSelector: {matchExpressions: [{key: team, operator: In, values: [a, b]}]}
  podSelector: {matchLabels: {app: web}}
  conditions: [{name: image, expression: \"object.spec.containers.exists(c, c.?image.orValue('') == 'app')\"}]";
    let both = Both::new(selectors);
    let mut injected = 0;
    for team in ["a", "c"] {
        for app in ["web", "db"] {
            for image in ["app", "other"] {
                let mut pod = pod(&json!({"app": app}), &json!({}));
                pod["spec"]["containers"][0]["image"] = image.into();
                let namespace = namespace(&json!({"team": team}), &json!({}));
                injected += usize::from(both.agree(&pod, &namespace));
            }
        }
    }
    assert_eq!(injected, 1);
    let mut of_system = pod(&json!({}), &json!({}));
    of_system["spec"]["priorityClassName"] = "system-node-critical".into();
    let all = Both::new("match: {namespaceSelector: {}}");
    assert!(!all.agree(&of_system, &namespace(&json!({}), &json!({}))));
    assert!(all.agree(&pod(&json!({}), &json!({})), &namespace(&json!({}), &json!({}))));
}

#[test]
fn a_validation_that_leaves_a_template_out_counts_as_a_condition() {
    let both = Both::new(
        "match: {namespaceSelector: {}}
validations:
- {expression: \"object.metadata.?labels[?'app'].orValue('') != 'db'\", action: Skip}
- {expression: \"object.metadata.?labels[?'app'].orValue('') != 'old'\", action: Warn}",
    );
    let namespace = namespace(&json!({}), &json!({}));
    for (app, is_injected) in [("web", true), ("db", false), ("old", true)] {
        let pod = pod(&json!({"app": app}), &json!({}));
        assert_eq!(both.agree(&pod, &namespace), is_injected, "{app}");
    }
}

#[test]
fn templates_that_may_be_left_out_are_named() {
    for (more, why) in [
        ("failurePolicy: Ignore\nmatch: {namespaceSelector: {}}", "with failurePolicy Ignore"),
        (
            "match: {namespaceSelector: {}}\nvalidations: [{expression: \"has(params.a)\", action: Skip}]\n\
             parameters: [{name: a, type: String}]",
            "spec.validations[0].expression",
        ),
        (
            "match: {conditions: [{name: a, expression: \"owner.kind == 'Job'\"}]}",
            "a webhook's condition cannot read owner",
        ),
    ] {
        let (policy, notes) = policy(vec![agent(more)]);
        assert_eq!(notes.len(), 1, "{more}");
        assert!(notes[0].starts_with("template agent: ") && notes[0].contains(why), "{notes:?}");
        assert!(!policy.to_string().contains("which is for it"), "{policy}");
    }
    let text = "
apiVersion: injectd.dev/v1alpha1
kind: SidecarTemplate
metadata: {name: a, namespace: shop}
spec: {steps: [{name: a, overlay: {spec: {hostNetwork: true}}}]}
";
    let (_, notes) = policy(vec![read(text)]);
    assert!(notes[0].contains("spec.steps[0].overlay.spec.hostNetwork"), "{notes:?}");
    for (steps, is_sure) in [
        ("[{name: a, when: 'true', overlay: {spec: {hostNetwork: true}}}]", false),
        ("[{name: a, onConflict: SkipTemplate, overlay: {spec: {hostNetwork: true}}}]", false),
        ("[{name: a, onConflict: SkipStep, overlay: {spec: {hostNetwork: true}}}]", false),
        ("[{name: a, overlay: {spec: {hostNetwork: true}}}]", true),
        ("[{name: a, containers: [{overlay: {tty: true}}]}]", true),
        ("[{name: a, containers: [{kinds: [Sidecar], overlay: {tty: true}}]}]", false),
    ] {
        let text = format!(
            "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {{name: a}}
spec: {{match: {{namespaceSelector: {{}}}}, steps: {steps}}}
"
        );
        assert_eq!(policy(vec![read(&text)]).1.is_empty(), is_sure, "{steps}");
    }
}

#[test]
fn a_mark_that_injectd_did_not_write_is_reported() {
    let (policy, _) = policy(vec![agent("match: {podSelector: {matchLabels: {app: web}}}")]);
    let guards = guards(&policy);
    let namespace = namespace(&json!({}), &json!({}));
    let hash = "0123456789";
    let entry = |key: &str, added: &str| {
        format!("\"{key}\":{{\"hash\":\"{hash}\",\"added\":[{added}],\"served\":[\"app\"]}}")
    };
    let whole = entry("agent", "\"agent\"");
    for (mark, reported) in [
        (format!("{{{whole}}}"), &[][..]),
        (format!("{{{whole},{}}}", entry("shop/own", "")), &[]),
        ("{}".to_owned(), &[0]),
        ("no JSON".to_owned(), &[0]),
        (format!("{{ {whole}}}"), &[0]),
        (format!("{{{whole},}}"), &[0]),
        (
            format!(
                "{{{}}}",
                whole.replace("\"served\":[\"app\"]", "\"served\":[\"app\"],\"x\":[]")
            ),
            &[0],
        ),
        (format!("{{{}}}", whole.replace("agent", "\\u0061gent")), &[0]),
        (format!("{{{}}}", whole.replace(hash, "x")), &[0]),
        (format!("{{{whole},{}}}", entry("other", "")), &[1]),
        (format!("{{{whole},{}}}", entry("team-b/own", "")), &[1]),
        (format!("{{{}}}", entry("agent", "\"agent\",\"none\"")), &[2]),
        (format!("{{{}}}", entry("agent", "")), &[3]),
        (format!("{{{whole},{}}}", entry("agent", "\"none\"")), &[2, 3]),
    ] {
        let mut pod = pod(&json!({}), &json!({ANNOTATION: mark}));
        pod["spec"]["initContainers"] = json!([{"name": "agent", "restartPolicy": "Always"}]);
        let found: Vec<_> =
            (0..guards.len()).filter(|check| guards[*check].complains(&pod, &namespace)).collect();
        assert_eq!(found, reported, "{mark}");
    }
}

#[test]
fn a_container_that_another_template_removes_is_not_asked_for() {
    let text = "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: remover}
spec:
  match: {namespaceSelector: {}}
  steps: [{name: a, existing: Replace, overlay: {spec: {containers: [{name: agent, $patch: delete}]}}}]
";
    let all = "match: {namespaceSelector: {}}";
    let text_of = |templates| policy(templates).0.to_string();
    assert!(
        text_of(vec![agent(all)]).contains("without each of the containers that it adds: agent")
    );
    assert!(!text_of(vec![agent(all), read(text)]).contains("without each of the containers"));
}
