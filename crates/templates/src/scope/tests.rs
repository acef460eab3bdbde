use injectd_cel::{Data, Datum, Environment, Evaluated, Program};
use serde_json::json;

use super::*;
use crate::{
    limits::MAX_COST,
    tests::{SECRET_AGENT, read},
};

/// A template with a `match` and an `enablement`, both in YAML.
fn template(name: &str, rules: &str, enablement: &str) -> Template {
    let enablement = match enablement {
        "" => String::new(),
        of => format!("enablement: {of}"),
    };
    read(&format!(
        "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {{name: {name}}}
spec:
  match: {rules}
  {enablement}
  steps: [{{name: step, overlay: {{spec: {{hostNetwork: true}}}}}}]
"
    ))
}

const ALL: &str = "{namespaceSelector: {}, systemPods: Include}";

/// The entries as selectors and a condition in one line each.
fn entries(templates: &[Template]) -> Vec<String> {
    let selector = |selector: &Selector| {
        let one = |one: &Requirement| {
            let values = one.values().join(" ");
            format!("{} {} {values}", one.key(), one.operator()).trim().to_owned()
        };
        selector.requirements().iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let entry = |entry: &Entry| {
        let (namespace, object) = (&entry.namespace_selector, &entry.object_selector);
        let condition = entry.condition.as_deref().unwrap_or("-");
        format!("[{}] [{}] {condition}", selector(namespace), selector(object))
    };
    Scope::of(templates, None).entries.iter().map(entry).collect()
}

const ON: &str = "has(object.metadata.labels) && 'inject' in object.metadata.labels && \
    object.metadata.labels['inject'].lowerAscii() in ['enabled', 'true']";
const NOT_OFF: &str = "!(has(object.metadata.labels) && 'inject' in object.metadata.labels && \
    object.metadata.labels['inject'].lowerAscii() in ['disabled', 'false'])";
const OFF_IN_NAMESPACE: &str = "inject NotIn disabled Disabled DISABLED false False FALSE";

#[test]
fn the_example_of_the_contract_is_called_for_where_it_is_switched_on() {
    let expected = "\
called for:
- in namespaces where the name is not kube-system and label secrets.example.com/inject is set:
  - pods where the priority class is not system-cluster-critical or system-node-critical, for template \
        secret-agent
- in namespaces where the name is not kube-system and label secrets.example.com/inject is not set:
  - pods where the priority class is not system-cluster-critical or system-node-critical and annotation \
        secrets.example.com/inject is enabled or true, for template secret-agent
called for more pods than necessary:
- template secret-agent: spec.match.conditions[0].expression: line 1, column 3: a webhook's condition cannot \
        read owner: use object, or a selector beside it";
    let found = Scope::of(&[read(SECRET_AGENT)], None).to_string();
    assert_eq!(found, expected);
}

#[test]
fn a_namespace_that_switches_on_has_an_entry_of_its_own() {
    for (enablement, expected) in [
        ("{key: inject, in: [PodLabel]}", vec![format!("[] [] {ON}")]),
        (
            "{key: inject}",
            vec![format!("[inject Exists] [] {NOT_OFF}"), format!("[inject DoesNotExist] [] {ON}")],
        ),
        (
            "{key: inject, in: [NamespaceLabel]}",
            vec![format!("[inject Exists, {OFF_IN_NAMESPACE}] [] -")],
        ),
        (
            "{key: inject, in: [NamespaceLabel, PodLabel]}",
            vec![
                format!("[{OFF_IN_NAMESPACE}, inject Exists] [] -"),
                format!("[{OFF_IN_NAMESPACE}, inject DoesNotExist] [] {ON}"),
            ],
        ),
        ("{key: inject, in: [PodLabel], default: Enabled}", vec![format!("[] [] {NOT_OFF}")]),
        (
            "{key: inject, default: Enabled}",
            vec![
                format!("[{OFF_IN_NAMESPACE}] [] {NOT_OFF}"),
                format!("[inject In disabled Disabled DISABLED false False FALSE] [] {ON}"),
            ],
        ),
        (
            "{key: inject, optOut: Ignored}",
            vec!["[inject Exists] [] -".to_owned(), format!("[inject DoesNotExist] [] {ON}")],
        ),
    ] {
        assert_eq!(entries(&[template("one", ALL, enablement)]), expected, "{enablement}");
    }
}

#[test]
fn names_of_templates_are_found_in_lists() {
    let enablement = "{key: inject, values: Name, in: [PodAnnotation]}";
    let annotations = "object.metadata.annotations";
    let expected = format!(
        "[] [] has({annotations}) && 'inject' in {annotations} && \
            (size({annotations}['inject']) > 256 || \
            {annotations}['inject'].lowerAscii() in ['enabled', 'true'] || \
            {annotations}['inject'].split(',').exists(name, name.trim() == 'one'))"
    );
    assert_eq!(entries(&[template("one", ALL, enablement)]), [expected]);
}

#[test]
fn entries_are_disjoint_for_each_label_of_namespaces() {
    let of = |name: &str| {
        template(name, ALL, &format!("{{key: {name}, in: [NamespaceLabel], default: Disabled}}"))
    };
    let off = |key: &str| OFF_IN_NAMESPACE.replace("inject", key);
    let expected = [
        format!("[one Exists, {}] [] -", off("one")),
        format!("[one DoesNotExist, two Exists, {}] [] -", off("two")),
    ];
    let found = entries(&[of("one"), of("two")]);
    assert_eq!(found[1..], expected[1..]);
    // In the first one, pods may have the other template, too.
    assert_eq!(found[0], "[one Exists] [] -");
}

#[test]
fn selectors_of_all_templates_are_selectors_of_the_entry() {
    let rules = |value: &str| {
        format!(
            "{{podSelector: {{matchLabels: {{app: web, tier: {value}}}}}, systemPods: Include}}"
        )
    };
    let labels = "object.metadata.labels";
    let tier = |value: &str| {
        format!("has({labels}) && 'tier' in {labels} && {labels}['tier'] in ['{value}']")
    };
    let templates = [template("one", &rules("a"), ""), template("two", &rules("b"), "")];
    let expected = format!("[] [app In web] ({}) || ({})", tier("a"), tier("b"));
    assert_eq!(entries(&templates), [expected]);
    assert_eq!(entries(&templates[..1]), ["[] [app In web, tier In a] -"]);
}

#[test]
fn a_namespaced_template_is_for_its_namespace() {
    let text = "
apiVersion: injectd.dev/v1alpha1
kind: SidecarTemplate
metadata: {name: one, namespace: team-a}
spec:
  match: {systemPods: Include}
  steps: [{name: step, overlay: {spec: {hostNetwork: true}}}]
";
    let expected = "[kubernetes.io/metadata.name In team-a] [] -";
    assert_eq!(entries(&[read(text)]), [expected]);
    let other = template("two", "{systemPods: Include}", "{key: inject, in: [PodLabel]}");
    let expected = format!("[] [] (request.namespace in ['team-a']) || ({ON})");
    assert_eq!(entries(&[read(text), other]), [expected]);
}

#[test]
fn all_pods_have_a_reason() {
    let shown = |rules: &str, enablement: &str| {
        let scope = Scope::of(&[template("one", rules, enablement)], Some("injectd"));
        assert_eq!(scope.entries.len(), 1);
        scope.to_string().lines().next().unwrap_or_default().to_owned()
    };
    for (rules, enablement, expected) in [
        ("{namespaceSelector: {}}", "", "spec.match: the template is for all pods"),
        (
            "{conditions: [{name: a, expression: \"owner.kind == 'Job'\"}]}",
            "",
            "spec.match.conditions[0].expression: line 1, column 1: a webhook's condition cannot read owner: \
                use object, or a selector beside it",
        ),
        (
            "{namespaceSelector: {}}",
            "{key: inject, in: [NamespaceAnnotation]}",
            "spec.enablement.in: a webhook cannot select namespaces by annotations: use NamespaceLabel",
        ),
    ] {
        let expected = format!("called for: all pods, because template one: {expected}");
        assert_eq!(shown(rules, enablement), expected);
    }
}

#[test]
fn nothing_is_called_for_without_templates() {
    assert_eq!(Scope::of(&[], None).to_string(), "called for: no pods");
}

#[test]
fn too_many_terms_are_all_pods() {
    let all = |count: usize| -> Vec<Template> {
        let of = |at: usize| {
            let rules =
                format!("{{podSelector: {{matchLabels: {{app: a{at}}}}}, systemPods: Include}}");
            template(&format!("t{at}"), &rules, "")
        };
        (0..count).map(of).collect()
    };
    assert!(Scope::of(&all(64), None).all_pods.is_empty());
    let scope = Scope::of(&all(65), None);
    assert_eq!(entries(&all(65)), ["[] [] -"]);
    let expected = "called for: all pods, because the condition has 65 terms, more than 64";
    assert!(scope.to_string().starts_with(expected), "{scope}");
}

/// A template with a condition, for pods with a label.
fn with_condition(name: &str, condition: &str) -> Template {
    let condition = serde_json::Value::from(condition);
    let rules = format!(
        "{{podSelector: {{matchLabels: {{app: {name}}}}}, systemPods: Include, \
            conditions: [{{name: a, expression: {condition}}}]}}"
    );
    template(name, &rules, "")
}

#[test]
fn a_condition_may_end_in_a_comment() {
    let condition = "object.spec.containers.all(c, c.name == 'app') // only app";
    let templates = ["one", "two"].map(|name| with_condition(name, condition));
    let scope = Scope::of(&templates, None);
    assert_eq!((&*scope.all_pods, &*scope.notes), (&[][..], &[][..]));
    let [entry] = &*scope.entries else { panic!("{scope}") };
    let condition = entry.condition.as_deref().expect("a condition");
    assert!(condition.contains("// only app\n)"), "{condition}");
}

#[test]
fn a_condition_that_does_not_compile_is_left_out_alone() {
    let deep = format!("{}true{}", "(".repeat(248), ")".repeat(248));
    let templates = [with_condition("one", &deep), with_condition("two", "true")];
    let scope = Scope::of(&templates, None);
    let [entry] = &*scope.entries else { panic!("{scope}") };
    let condition = entry.condition.as_deref().expect("a condition");
    assert!(condition.contains("'one'") && condition.contains("(true\n)"), "{condition}");
    assert_eq!(scope.all_pods, []);
    let [note] = &*scope.notes else { panic!("{scope}") };
    let expected =
        "template one: spec.match.conditions: condition a holds: an API server does not compile";
    assert!(note.to_string().starts_with(expected), "{note}");
}

#[test]
fn the_dearest_conditions_are_left_out() {
    let (containers, variables) = (
        "object.spec.containers.exists(c, c.name == 'a-name')",
        "object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name == 'a-name'))",
    );
    let unequal = "object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name != 'a'))";
    let nested =
        "object.spec.containers.exists(c, object.spec.containers.exists(d, c.name != d.name))";
    let long = "object.spec.containers.exists(c, c.?image.orValue('').matches('(aaa|aaaa)*bbbbb.*cccc.*ddddddddd'))";
    for dear in [variables, unequal, nested, long] {
        let templates = [with_condition("one", containers), with_condition("two", dear)];
        let scope = Scope::of(&templates, None);
        let [entry] = &*scope.entries else { panic!("{scope}") };
        let condition = entry.condition.as_deref().expect("a condition");
        assert!(condition.contains(containers) && condition.contains("'two'"), "{condition}");
        assert!(!condition.contains(dear), "{condition}");
        let [note] = &*scope.notes else { panic!("{scope}") };
        let expected = "template two: spec.match.conditions: condition a holds: an API server does not evaluate it";
        assert!(note.to_string().starts_with(expected), "{note}");
    }
    // Many that cost little are together too dear.
    let of = |at: usize| {
        with_condition(&format!("t{at}"), &containers.replace("a-name", &format!("n{at}")))
    };
    let all: Vec<_> = (0..30).map(of).collect();
    let notes = Scope::of(&all, None).notes.len();
    assert!((10..29).contains(&notes), "{notes}");
}

#[test]
fn what_is_left_is_evaluated_for_a_pod_of_the_greatest_size() {
    let of = |at: usize| {
        let rules = format!(
            "{{podSelector: {{matchLabels: {{t{at}: x}}}}, systemPods: Include, conditions: [{{name: a, \
                expression: \"object.spec.containers.exists(c, c.image.startsWith('i{at}'))\"}}]}}"
        );
        template(&format!("t{at}"), &rules, "")
    };
    let scope = Scope::of(&(0..30).map(of).collect::<Vec<_>>(), None);
    let [Entry { condition: Some(condition), .. }] = &*scope.entries else { panic!("{scope}") };
    let kept = 30 - scope.notes.len();
    assert!(kept > 0 && condition.matches("startsWith").count() == kept, "{scope}");
    // A term whose condition is left out would be true.
    let is_kept = |name: &String| condition.contains(&format!("'i{}'", &name[1..]));
    let labels = (0..30).map(|at| format!("t{at}")).filter(is_kept);
    let labels: serde_json::Map<_, _> = labels.map(|name| (name, "x".into())).collect();
    assert_eq!(labels.len(), kept);
    let containers = vec![json!({"name": "abc", "image": "a"}); 26_000];
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    let found = evaluated(condition, &pod);
    assert_eq!(found.value, Ok(Some(false.into())));
    assert!(found.cost > MAX_COST / 4, "{kept} for {}", found.cost);
}

/// A condition for a pod.
fn evaluated(condition: &str, pod: &serde_json::Value) -> Evaluated {
    let program = Program::compile_in(Environment::conditions(), condition).expect("it compiles");
    program.value(&Data {
        object: Datum::from(pod),
        old_object: Datum::Null,
        request: Datum::Null,
        namespace_object: Datum::Null,
    })
}

#[test]
fn no_annotation_makes_the_condition_too_dear() {
    let enablement = "{key: inject, values: Name, in: [PodAnnotation]}";
    let of = |at: usize| template(&format!("t{at}"), ALL, enablement);
    let templates: Vec<_> = (0..50).map(of).collect();
    let scope = Scope::of(&templates, None);
    let [Entry { condition: Some(condition), .. }] = &*scope.entries else { panic!("{scope}") };
    for length in [256, 257, 256 << 10] {
        let pod = json!({"metadata": {"annotations": {"inject": ",".repeat(length)}}, "spec": {}});
        let found = evaluated(condition, &pod);
        assert_eq!(found.value, Ok(Some((length > 256).into())));
        assert!(found.cost < MAX_COST / 4, "{length}: {}", found.cost);
    }
}
