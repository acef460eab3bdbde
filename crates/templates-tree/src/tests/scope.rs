//! A webhook that serves templates is called for each pod that one of them matches.

use std::collections::BTreeMap;

use injectd_cel::{Budget, Data, Datum, Outcome, Program};
use injectd_k8s::object::{Labels, labels};
use injectd_templates::scope::{Entry, Scope};
use proptest::{option, prelude::*, sample::select};

use super::*;
use crate::State;

const KEYS: [&str; 2] = ["inject", "other"];

/// Values of the keys in labels; annotations have more.
const WORDS: [&str; 12] = [
    "true", "TRUE", "tRue", "enabled", "eNabled", "disabled", "Disabled", "False", "fALSE", "a",
    "b", "no",
];
const LISTS: [&str; 6] = ["a, b", "b ,c", "", ",", "a,No Name", " true"];

/// Some cannot be written as a webhook's condition, and some fail for some pods.
const CONDITIONS: [&str; 22] = [
    "object.spec.?hostNetwork.orValue(false)",
    "object.metadata.labels['app'] == 'web'",
    "object.metadata.namespace != 'team'",
    "has(object.metadata.namespace)",
    "object.metadata.?namespace.orValue('') == 'shop'",
    "object.spec.containers.exists(c, c.image.startsWith('a'))",
    "object.spec.containers.all(c, has(c.env) && c.env.exists(e, e.value == '1'))",
    "owner.kind != 'Pod'",
    "object.spec.containers[1].name == 'app'",
    "!has(object.metadata.annotations) || object.metadata.annotations['other'] != 'no'",
    "object.spec.securityContext.runAsUser == 1",
    "namespaceObject.metadata.labels['team'] == 'a'",
    "object.metadata.?labels[?'tier'].orValue('a').matches('^a')",
    "object.metadata.labels.exists(k, k == 'tier')",
    "object.spec.volumes.exists(v, v.emptyDir.medium == 'Memory')",
    "object.spec.containers.filter(c, has(c.env)).size() > 1",
    "object.metadata.name.startsWith('w') || object.spec.hostNetwork",
    "serviceAccount.?metadata.?annotations[?'team'].orValue('') == 'a'",
    "owner.kind in ['Deployment', 'Job'] && object.spec.?hostNetwork.orValue(false)",
    "controller.hasValue() && controller.value().kind == 'ReplicaSet'",
    "owners.exists(o, o.kind == 'Deployment')",
    "[object.metadata.?name.orValue('w'), object.spec.?nodeName.value()].exists(n, n == 'w')",
];

fn selectors() -> impl Strategy<Value = Option<Value>> {
    let one = |key: &str, operator: &str, values: Value| {
        let mut requirement = json!({"key": key, "operator": operator});
        set(&mut requirement, "values", (!values.is_null()).then_some(values));
        json!({"matchExpressions": [requirement]})
    };
    option::of(select(vec![
        json!({}),
        json!({"matchLabels": {"app": "web"}}),
        json!({"matchLabels": {"app": "web", "tier": "a"}}),
        one("app", "NotIn", json!(["web", "db"])),
        one("tier", "Exists", Value::Null),
        one("tier", "DoesNotExist", Value::Null),
        one("inject", "NotIn", json!(["disabled"])),
        one("kubernetes.io/metadata.name", "In", json!(["shop", "team"])),
    ]))
}

fn enablement() -> impl Strategy<Value = Value> {
    let places = vec!["PodLabel", "PodAnnotation", "NamespaceLabel", "NamespaceAnnotation"];
    let places = proptest::sample::subsequence(places, 1..=4).prop_shuffle();
    let default = select(vec!["Enabled", "Disabled", "Disabled"]);
    let values = select(vec!["Switch", "Name"]);
    let opt_out = select(vec!["Honored", "Ignored"]);
    (select(KEYS.to_vec()), places, default, values, opt_out).prop_map(
        |(key, places, default, values, opt_out)| {
            json!({"key": key, "in": places, "default": default, "values": values, "optOut": opt_out})
        },
    )
}

fn object(letter: char) -> impl Strategy<Value = Value> {
    let conditions = proptest::sample::subsequence(CONDITIONS.to_vec(), 0..3);
    let switch = option::weighted(0.7, enablement());
    let namespace = option::weighted(0.2, select(vec!["shop", "team"]));
    let parts = (selectors(), selectors(), any::<bool>());
    (parts, conditions, switch, namespace).prop_map(
        move |((of_namespace, of_pod, includes_system), conditions, switch, namespace)| {
            let named = |(at, text): (usize, &&str)| json!({"name": format!("c{at}"), "expression": text});
            let conditions: Vec<_> = conditions.iter().enumerate().map(named).collect();
            let mut rules = json!({"conditions": conditions,
                "systemPods": if includes_system { "Include" } else { "Exclude" }});
            let selector = match (of_namespace, namespace) {
                (_, Some(_)) => None,
                (None, None) => (switch.is_none() && conditions.is_empty()).then(|| json!({})),
                (selector, None) => selector,
            };
            for (name, selector) in [("namespaceSelector", selector), ("podSelector", of_pod)] {
                if let Some(selector) = selector {
                    rules[name] = selector;
                }
            }
            let mut metadata = json!({"name": letter});
            let mut kind = "ClusterSidecarTemplate";
            if let Some(namespace) = namespace {
                metadata["namespace"] = namespace.into();
                kind = "SidecarTemplate";
            }
            let mut spec = json!({"match": rules, "steps": [
                {"name": "step", "overlay": {"metadata": {"labels": {"added": letter}}}}]});
            if let Some(switch) = switch {
                spec["enablement"] = switch;
            }
            json!({"apiVersion": "injectd.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
        },
    )
}

/// Labels or annotations, with the keys that templates ask for.
fn texts(
    values: &[&'static str],
) -> impl Strategy<Value = BTreeMap<&'static str, &'static str>> + use<> {
    let of_key = || option::of(select(values.to_vec()));
    let app = option::of(select(vec!["web", "db"]));
    let tier = option::of(select(vec!["a", "b"]));
    (of_key(), of_key(), app, tier).prop_map(|(inject, other, app, tier)| {
        let texts =
            [("inject", inject), ("other", other), ("app", app), ("tier", tier), ("team", tier)];
        texts.into_iter().filter_map(|(key, text)| Some((key, text?))).collect()
    })
}

fn annotations() -> impl Strategy<Value = BTreeMap<&'static str, &'static str>> {
    texts(&[&WORDS[..], &LISTS[..]].concat())
}

fn container() -> impl Strategy<Value = Value> {
    let env =
        option::of(select(vec![json!([{"name": "A"}]), json!([{"name": "A", "value": "1"}])]));
    (option::of(select(vec!["app", "b"])), env).prop_map(|(image, env)| {
        let mut container = json!({"name": "app", "resources": {}});
        set(&mut container, "image", image.map(Value::from));
        set(&mut container, "env", env);
        container
    })
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}

/// Pods as an API server shows them: it writes metadata, spec and containers, and leaves out what is empty.
fn pods() -> impl Strategy<Value = Value> {
    let class = option::of(select(vec!["system-node-critical", "high"]));
    let fields = (option::of(any::<bool>()), option::of(0..2), any::<[bool; 3]>(), class);
    let containers = proptest::collection::vec(container(), 1..3);
    (texts(&WORDS), annotations(), containers, fields).prop_map(
        |(
            labels,
            annotations,
            containers,
            (host, user, [is_named, has_volume, has_node], class),
        )| {
            let mut pod = json!({"metadata": {}, "spec": {"containers": containers}});
            set(&mut pod["metadata"], "name", is_named.then(|| "web".into()));
            set(&mut pod["metadata"], "labels", (!labels.is_empty()).then(|| json!(labels)));
            let annotations = (!annotations.is_empty()).then(|| json!(annotations));
            set(&mut pod["metadata"], "annotations", annotations);
            let spec = &mut pod["spec"];
            set(spec, "hostNetwork", host.map(Value::from));
            set(spec, "securityContext", user.map(|user| json!({"runAsUser": user})));
            set(spec, "priorityClassName", class.map(Value::from));
            set(spec, "nodeName", has_node.then(|| "w".into()));
            let volumes = json!([{"name": "v", "emptyDir": {}}]);
            set(spec, "volumes", has_volume.then_some(volumes));
            pod
        },
    )
}

fn namespaces() -> impl Strategy<Value = Value> {
    let name = select(vec!["shop", "team", "kube-system"]);
    (name, texts(&WORDS), annotations()).prop_map(|(name, mut labels, annotations)| {
        labels.insert("kubernetes.io/metadata.name", name);
        json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}})
    })
}

/// What an API server decides.
struct Server<'s> {
    pod: &'s Value,
    namespace: &'s Value,
}

impl Server<'_> {
    /// Whether the webhook is called by an entry. Its condition never fails.
    fn calls(&self, entry: &Entry) -> Result<bool, TestCaseError> {
        let of = |object: &Value| -> Labels { labels(object) };
        let is_selected = entry.namespace_selector.unmet(&of(self.namespace)).is_none()
            && entry.object_selector.unmet(&of(self.pod)).is_none();
        let Some(condition) = &entry.condition else { return Ok(is_selected) };
        let program = Program::compile(condition).map_err(TestCaseError::fail)?;
        prop_assert_eq!(program.problem(), None);
        let request = json!({"namespace": self.namespace["metadata"]["name"]});
        let data = Data {
            object: self.pod.into(),
            old_object: Datum::Null,
            request: (&request).into(),
            namespace_object: Datum::Null,
        };
        match program.evaluate(data, &mut Budget::of_conditions()) {
            Outcome::Bool(is_true) => Ok(is_selected && is_true),
            other => Err(TestCaseError::fail(format!("{other:?}: {condition}"))),
        }
    }
}

/// What a template may look at beside the pod and its namespace.
#[derive(Debug, Clone)]
struct Beside {
    account: Option<Value>,
    owners: Vec<Value>,
    own_namespace: Option<&'static str>,
}

fn beside() -> impl Strategy<Value = Beside> {
    let owner = |kind: &str| json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "o", "uid": kind}});
    let replica_set = owned(owner("ReplicaSet"), &[owner("Deployment")]);
    let owners = select(vec![vec![], vec![replica_set, owner("Deployment")], vec![owner("Job")]]);
    let account = option::of(annotations());
    (account, owners, option::of(select(vec!["shop", "mesh"]))).prop_map(
        |(annotations, owners, own_namespace)| {
            let account = annotations
                .map(|texts| json!({"metadata": {"name": "default", "annotations": texts}}));
            Beside { account, owners, own_namespace }
        },
    )
}

/// An object with a reference to its nearest owner.
fn owned(mut object: Value, owners: &[Value]) -> Value {
    if let Some(owner) = owners.first() {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true}]);
    }
    object
}

/// Whether a template is for a pod, or denies it.
fn is_for(template: &Template, pod: &Value, namespace: &Value, beside: &Beside) -> bool {
    let Beside { account, owners, own_namespace } = beside;
    let (service_account, own_namespace) = (account.as_ref(), *own_namespace);
    let request = Request { pod, namespace, service_account, owners, own_namespace };
    match inject(std::slice::from_ref(template), &request) {
        Ok(injected) => injected
            .decisions
            .iter()
            .any(|decision| !matches!(decision.state, State::Unmatched(_) | State::Disabled)),
        Err(_) => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn each_pod_that_a_template_matches_is_called_for(
        objects in (object('a'), object('b'), object('c')),
        count in 1..4_usize,
        pod in pods(),
        namespace in namespaces(),
        has_namespace: bool,
        beside in beside(),
    ) {
        let objects = [objects.0, objects.1, objects.2];
        let templates = read(&objects[..count]);
        let mut pod = owned(pod, &beside.owners);
        if has_namespace {
            pod["metadata"]["namespace"] = namespace["metadata"]["name"].clone();
        }
        let scope = Scope::of(&templates, beside.own_namespace);
        let server = Server { pod: &pod, namespace: &namespace };
        let mut calls = 0;
        for entry in &scope.entries {
            calls += u32::from(server.calls(entry)?);
        }
        prop_assert!(calls <= 1, "{} calls: {}", calls, scope);
        let is_matched = templates.iter().any(|template| is_for(template, &pod, &namespace, &beside));
        prop_assert!(calls == 1 || !is_matched, "{}", scope);
    }
}
