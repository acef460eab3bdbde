//! Whole templates on whole pods.

use injectd_templates::Template;
use injectd_yaml::Options;
use serde_json::{Value, json};

use crate::{Injected, Request, inject, inject_while};

mod left_out;
mod properties;
mod removed;
mod scalars;
mod scope;
mod together;
mod traced;
mod warnings;

fn yaml(text: &str) -> Value {
    injectd_yaml::parse(text, Options::default()).expect("YAML")
}

pub(crate) fn template(text: &str) -> Template {
    Template::read(&yaml(text)).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", problems.join("\n"))
    })
}

fn read(objects: &[Value]) -> Vec<Template> {
    let read =
        |object| Template::read(object).unwrap_or_else(|found| panic!("{object}: {found:?}"));
    objects.iter().map(read).collect()
}

/// What is done with a request for a pod.
fn with_request<R>(pod: &Value, then: impl FnOnce(&Request<'_>) -> R) -> R {
    let namespace = json!({"metadata": {"name": "shop", "labels": {}}});
    let request = Request {
        pod,
        namespace: &namespace,
        service_account: None,
        owners: &[],
        own_namespace: None,
    };
    then(&request)
}

fn injected(templates: &[Template], pod: &Value) -> Result<Injected, String> {
    with_request(pod, |request| inject(templates, request)).map_err(|denied| denied.to_string())
}

pub(crate) const SECRET_AGENT: &str =
    include_str!("../../templates/src/read/tests/secret-agent.yaml");

pub(crate) fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "annotations": {
            "secrets.example.com/inject": "true",
            "secrets.example.com/role": "shop",
            "secrets.example.com/cpu": "0.25",
            "secrets.example.com/secret-db": "db/shop",
        }},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    })
}

#[test]
fn a_pod_that_nothing_is_written_into_is_not_copied() {
    let template = template(SECRET_AGENT);
    let namespace = json!({"metadata": {"name": "shop", "labels": {}}});
    for (text, is_changed) in [("true", true), ("false", false)] {
        let mut pod = pod();
        pod["metadata"]["annotations"]["secrets.example.com/inject"] = text.into();
        let request = Request {
            pod: &pod,
            namespace: &namespace,
            service_account: None,
            owners: &[],
            own_namespace: None,
        };
        let changed = inject_while(None, &[&template], &request).expect("no denial");
        assert_eq!(changed.pod.is_some(), is_changed, "{text}");
    }
}

#[test]
fn the_example_of_the_contract_is_injected() {
    let templates = [template(SECRET_AGENT)];
    let first = injected(&templates, &pod()).expect("it is injected");
    let spec = &first.pod["spec"];
    assert_eq!(spec["initContainers"][1]["restartPolicy"], "Always");
    assert_eq!(spec["initContainers"][0]["resources"]["requests"]["cpu"], "0.25");
    assert_eq!(spec["initContainers"][0].get("securityContext"), None);
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["mountPath"], "/secrets");
    let second = injected(&templates, &first.pod).expect("it is injected");
    assert_eq!(second.pod, first.pod);
}

/// A template with a container that the pod may have, and a rule for all containers.
const KEEPS: &str = r#"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: keeps}
spec:
  match: {namespaceSelector: {}}
  variables:
  - {name: names, value: [one, two]}
  steps:
  - name: tails
    forEach: {items: "variables.names"}
    onConflict: Keep
    overlay: {spec: {containers: [{name: "tail-${item}", image: tail}]}}
  - name: rule
    containers:
    - overlay: {env: [{name: SEEN, value: "true"}]}
"#;

#[test]
fn a_rule_does_not_see_a_container_that_an_overlay_of_its_template_names() {
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [
        {"name": "app", "image": "app"}, {"name": "tail-one", "image": "another"}]}});
    let first = injected(&[template(KEEPS)], &pod).expect("it is injected");
    let seen: Vec<_> = first.pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|container| container.get("env").is_some())
        .map(|container| &container["name"])
        .collect();
    assert_eq!(seen, ["app"]);
    let second = injected(&[template(KEEPS)], &first.pod).expect("it is injected");
    assert_eq!(second.pod, first.pod);
}

#[test]
fn an_expression_does_not_remove_what_a_pod_has() {
    let of_expression = KEEPS.replace(
        r#"overlay: {env: [{name: SEEN, value: "true"}]}"#,
        r#"existing: Replace
      overlay: {env: "${[{'$patch': 'delete', 'name': 'A'}]}"}"#,
    );
    let of_expression = of_expression.replace("  steps:", "  fieldValidation: Warn\n  steps:");
    let denied = injected(&[template(&of_expression)], &pod()).expect_err("it is denied");
    assert!(denied.contains("a value of an expression has $patch"), "{denied}");
}

const OPTIONAL: &str = "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: clock}
spec:
  match: {namespaceSelector: {}}
  variables:
  - {name: user, expression: 'object.spec.?securityContext.?runAsUser'}
  steps:
  - name: clock
    overlay:
      spec:
        containers:
        - name: clock
          image: clock
          securityContext: {runAsUser: '${variables.user}'}
          args: ['--user=${variables.user.orValue(7)}']
";

#[test]
fn a_variable_that_is_optional_stays_optional() {
    let templates = [template(OPTIONAL)];
    let clock = |pod: &Value| {
        let injected = injected(&templates, pod).expect("it is injected");
        injected.pod["spec"]["containers"][1].clone()
    };
    assert_eq!(clock(&pod()), json!({"name": "clock", "image": "clock", "args": ["--user=7"]}));
    let mut pod = pod();
    pod["spec"]["securityContext"] = json!({"runAsUser": 3});
    let expected = json!({
        "name": "clock", "image": "clock", "args": ["--user=3"], "securityContext": {"runAsUser": 3},
    });
    assert_eq!(clock(&pod), expected);
}

/// A template with a step for each of two items.
const ITEMS: &str = r#"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: items}
spec:
  match: {namespaceSelector: {}}
  steps:
  - name: each
    forEach: {items: "['a', 'b']"}
    overlay: {spec: {containers: [{name: "tail-${item}", image: tail}]}}
    containers:
    - overlay: {env: [{name: "FILE_${item}", value: "${item}"}]}
"#;

#[test]
fn two_items_with_one_name_are_an_error() {
    assert!(injected(&[template(ITEMS)], &pod()).is_ok());
    let names = "another item of forEach has this name already; a name needs a part that differs, \
        such as tail-${index}";
    let of_step = "template items: step each: spec.steps[0].overlay";
    let of_rule = "template items: step each: spec.steps[0].containers[0].overlay";
    for (from, to, expected) in [
        ("tail-${item}", "tail", format!("{of_step}: spec.containers[\"tail\"]: {names}")),
        ("FILE_${item}", "FILE", format!("{of_rule}: env[\"FILE\"]: {names}")),
        (
            "image: tail}]",
            "image: tail}], volumes: [{name: v, emptyDir: {}}]",
            format!("{of_step}: spec.volumes[\"v\"]: {names}"),
        ),
        (
            "{name: \"FILE_${item}\", value: \"${item}\"}",
            "{name: \"FILE_${item}\"}, {name: \"FILE_${'a'}\"}",
            format!(
                "{of_rule}: env[\"FILE_a\"]: the overlay has this name twice; use another name"
            ),
        ),
    ] {
        let denied = injected(&[template(&ITEMS.replace(from, to))], &pod());
        assert_eq!(denied.expect_err("it is denied"), expected);
    }
    let ignored = ITEMS.replace("tail-${item}", "tail");
    let ignored = ignored.replace("  steps:", "  failurePolicy: Ignore\n  steps:");
    let left = injected(&[template(&ignored)], &pod()).expect("it is left out");
    assert_eq!((left.warnings.len(), left.pod), (1, pod()));
}

/// That two containers of the pod have one name is for the API server to say.
#[test]
fn two_containers_of_one_name_get_what_a_rule_writes() {
    let rule = ITEMS.replace("    forEach: {items: \"['a', 'b']\"}\n", "");
    let rule = rule.replace(
        "    overlay: {spec: {containers: [{name: \"tail-${item}\", image: tail}]}}\n",
        "",
    );
    let rule = rule.replace("\"FILE_${item}\", value: \"${item}\"", "FILE, value: a");
    let mut pod = pod();
    let app = pod["spec"]["containers"][0].clone();
    pod["spec"]["containers"] = json!([app, app]);
    let injected = injected(&[template(&rule)], &pod).expect("it is injected");
    for at in 0..2 {
        let env = &injected.pod["spec"]["containers"][at]["env"];
        assert_eq!(env, &json!([{"name": "FILE", "value": "a"}]));
    }
}

#[test]
fn a_for_each_has_a_bound_and_the_denial_says_what_to_do() {
    let with = |count: usize| {
        let items: Vec<_> = (0..count).map(|item| item.to_string()).collect();
        let items = ITEMS.replace("['a', 'b']", &format!("'{}'.split(',')", items.join(",")));
        injected(&[template(&items)], &pod())
    };
    assert_eq!(with(256).err(), None);
    let denied = with(257).expect_err("it is denied");
    let expected =
        "found 257 items, expected at most 256: give the pod fewer, or divide them among steps";
    assert!(denied.contains(expected), "{denied}");
}

/// A template with a container for each of two ports that are free.
const PORTS: &str = r#"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: NAME}
spec:
  match: {namespaceSelector: {}}
  variables:
  - {name: ports, expression: "freePorts(8080, 2)"}
  steps:
  - name: each
    forEach: {items: "variables.ports"}
    overlay: {spec: {containers: [{name: "NAME-${index}", image: "NAME:${item}", ports: [{containerPort: "${item}"}]}]}}
"#;

/// All ports of a pod, in the order of its containers.
fn ports(pod: &Value) -> Vec<i64> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let ports = containers.filter_map(|container| container["ports"].as_array()).flatten();
    ports.filter_map(|port| port["containerPort"].as_i64()).collect()
}

#[test]
fn two_templates_do_not_have_the_same_port() {
    let named = |name: &str| template(&PORTS.replace("NAME", name));
    let constant = KEEPS.replace("image: tail}", "image: tail, ports: [{containerPort: 8082}]}");
    let constant = constant.replace("value: [one, two]", "value: [one]");
    let templates = [named("a"), named("b"), template(&constant)];
    let mut pod = pod();
    pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8081}]);
    let first = injected(&templates, &pod).expect("it is injected").pod;
    assert_eq!(ports(&first), [8081, 8080, 8083, 8084, 8085, 8082]);
    let mut changed = first.clone();
    let annotations = changed["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.shift_remove(crate::mark::ANNOTATION);
    for pod in [&first, &changed] {
        assert_eq!(injected(&templates, pod).expect("it is injected").pod, first);
    }
}

#[test]
fn a_validation_without_a_message_names_its_expression() {
    let validated = KEEPS.replace(
        "  steps:",
        "  validations: [{expression: \"object.metadata.name == 'x'\"}]\n  steps:",
    );
    let denied = injected(&[template(&validated)], &pod()).expect_err("it is denied");
    assert_eq!(denied, "template keeps: object.metadata.name == 'x' does not hold");
}

/// A template that replaces what an earlier one insists on.
const LATER: &str = r"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: later}
spec:
  priority: -1
  match: {namespaceSelector: {}}
  steps:
  - name: replaces
    existing: Replace
    onConflict: Replace
    overlay: {spec: {securityContext: {runAsUser: 2}, containers: [{name: shared, image: later}]}}
    containers:
    - existing: Replace
      overlay: {env: [{name: A, value: later}]}
    - kinds: [Added]
      select: {names: [mine]}
      existing: Replace
      overlay: {image: mirror/mine}
";

#[test]
fn what_a_later_template_replaces_is_no_conflict_for_an_earlier_one() {
    let earlier = LATER
        .replace("name: later}", "name: earlier}")
        .replace("priority: -1", "priority: 1")
        .replace("Replace", "Fail")
        .replace("runAsUser: 2", "runAsUser: 1")
        .replace("image: later}]", "image: earlier}, {name: mine, image: mine}]")
        .replace("value: later", "value: earlier");
    let earlier = earlier.split("    - kinds").next().unwrap_or_default();
    let templates = [template(earlier), template(LATER)];
    let first = injected(&templates, &pod()).expect("it is injected").pod;
    let spec = &first["spec"];
    assert_eq!(spec["securityContext"]["runAsUser"], 2);
    let images: Vec<_> =
        (0..3).map(|at| spec["containers"][at]["image"].as_str().unwrap_or_default()).collect();
    assert_eq!(images, ["app", "later", "mirror/mine"]);
    assert_eq!(spec["containers"][0]["env"][0]["value"], "later");
    let mut changed = first.clone();
    let annotations = changed["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.shift_remove(crate::mark::ANNOTATION);
    for pod in [&first, &changed] {
        assert_eq!(injected(&templates, pod).expect("it is injected").pod, first);
    }
    let denied = injected(&templates[..1], &changed).expect_err("it is denied");
    assert!(denied.contains("the pod has a container of this name"), "{denied}");
}
