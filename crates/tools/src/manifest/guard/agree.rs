//! What asks for a sidecar is written twice: in Rust for `audit` and `explain`, and in CEL for the policy.
//! Both say the same of every pod and namespace.

use injectd_webhooks::{
    Configurations, Labels, Request, Verdict,
    injectors::{Product, asks_for},
};
use serde_json::{Value, json};

use super::tests::printed;

/// Values of a label or an annotation; `None` for none.
type Values = &'static [Option<&'static str>];

/// A field that the rules read: the object, the map of its metadata, the key, and the values to try.
type Field = (Object, &'static str, &'static str, Values);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    Pod,
    Namespace,
}

const LINKERD: [Field; 5] = [
    (Object::Namespace, "annotations", "linkerd.io/inject", INJECT),
    (Object::Pod, "annotations", "linkerd.io/inject", INJECT),
    (
        Object::Namespace,
        "labels",
        "config.linkerd.io/admission-webhooks",
        &[None, Some("disabled"), Some("enabled")],
    ),
    (Object::Pod, "labels", "linkerd.io/control-plane-component", &[None, Some("identity")]),
    (Object::Pod, "labels", "linkerd.io/cni-resource", &[None, Some("")]),
];
const INJECT: Values =
    &[None, Some(""), Some("enabled"), Some("ingress"), Some("disabled"), Some("yes")];

const ISTIO: [Field; 5] = [
    (
        Object::Namespace,
        "labels",
        "istio-injection",
        &[None, Some(""), Some("enabled"), Some("disabled")],
    ),
    (Object::Namespace, "labels", "istio.io/rev", REVISION),
    (Object::Pod, "labels", "istio.io/rev", REVISION),
    (
        Object::Pod,
        "labels",
        "sidecar.istio.io/inject",
        &[None, Some(""), Some("true"), Some("false"), Some("yes")],
    ),
    (
        Object::Pod,
        "annotations",
        "sidecar.istio.io/inject",
        &[None, Some("true"), Some("false"), Some("")],
    ),
];
const REVISION: Values = &[None, Some(""), Some("default"), Some("canary")];

/// Names of namespaces; some are left out.
const NAMESPACES: [&str; 5] =
    ["shop", "kube-system", "cert-manager", "kube-public", "istio-system"];

/// A check of a policy, as webhooks whose calls say what it complains about.
pub(super) struct Guard(Configurations);

impl Guard {
    fn new(mesh: &str) -> Self {
        let [policy, _] = printed(&["--mesh", mesh]).expect("a policy");
        Self::of(&policy, 0)
    }

    pub(super) fn of(policy: &Value, check: usize) -> Self {
        let spec = &policy["spec"];
        let constraints = &spec["matchConstraints"];
        let mut conditions = spec["matchConditions"].clone();
        let expression = spec["validations"][check]["expression"].as_str().expect("CEL");
        let violates = format!("!({expression})");
        let violates = json!({"name": "violates", "expression": violates});
        conditions.as_array_mut().expect("a list").push(violates);
        for condition in conditions.as_array_mut().expect("a list") {
            let text = condition["expression"].as_str().expect("CEL").to_owned();
            condition["expression"] = in_a_condition(text, &spec["variables"]).into();
        }
        let webhook = |more: Value| {
            let mut webhook = json!({"name": "w", "clientConfig": {"url": "https://a/"},
                "failurePolicy": "Fail", "rules": constraints["resourceRules"]});
            for (key, value) in more.as_object().expect("an object") {
                webhook[key] = value.clone();
            }
            webhook
        };
        let webhooks = [
            webhook(json!({"namespaceSelector": constraints["namespaceSelector"],
                "objectSelector": constraints["objectSelector"]})),
            webhook(json!({"matchConditions": conditions})),
        ];
        let configuration = json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"},
            "webhooks": webhooks});
        Self(Configurations::read([&configuration]).expect("a configuration"))
    }

    pub(super) fn complains(&self, pod: &Value, namespace: &Value) -> bool {
        let labels: Labels =
            serde_json::from_value(namespace["metadata"]["labels"].clone()).expect("labels");
        let verdict = |index: usize, old_object| {
            let request = Request { old_object, ..Request::creates_pod(pod, "shop") };
            let step = self.0.walk(&request, Some(&labels)).remove(index);
            let is_judged = matches!(step.verdict, Verdict::Called | Verdict::NotCalled);
            assert!(is_judged, "{}: {pod} {namespace}", step.reason);
            step.verdict == Verdict::Called
        };
        verdict(0, None) && verdict(1, Some(namespace))
    }
}

/// An expression of a policy as a condition of a webhook, which has neither variables nor the Namespace:
/// that is the old object here.
fn in_a_condition(mut text: String, variables: &Value) -> String {
    let mut variables: Vec<_> = variables.as_array().expect("a list").iter().collect();
    // A name may begin with another one.
    variables.sort_by_key(|variable| std::cmp::Reverse(variable["name"].as_str().map(str::len)));
    while text.contains("variables.") {
        for variable in &variables {
            let [name, expression] = ["name", "expression"].map(|key| variable[key].as_str());
            let name = format!("variables.{}", name.expect("a name"));
            text = text.replace(&name, &format!("({})", expression.expect("CEL")));
        }
    }
    text.replace("namespaceObject", "oldObject")
}

/// Calls with every combination of the values of fields.
fn each(fields: &[Field], pod: &Value, namespace: &Value, check: &mut dyn FnMut(&Value, &Value)) {
    let Some(((object, map, key, values), rest)) = fields.split_first() else {
        return check(pod, namespace);
    };
    for value in *values {
        let (mut pod, mut namespace) = (pod.clone(), namespace.clone());
        let of = if *object == Object::Pod { &mut pod } else { &mut namespace };
        if let Some(value) = value {
            of["metadata"][*map][*key] = (*value).into();
        }
        each(rest, &pod, &namespace, check);
    }
}

fn compare(product: Product, mesh: &str, fields: &[Field]) {
    let guard = Guard::new(mesh);
    let (mut asked, mut not_asked) = (0, 0);
    for name in NAMESPACES {
        let labels = json!({"kubernetes.io/metadata.name": name});
        let namespace = json!({"metadata": {"name": name, "labels": labels}});
        for host_network in [false, true] {
            let pod = json!({"metadata": {"name": "p"}, "spec": {"hostNetwork": host_network,
                "containers": [{"name": "app", "image": "app"}]}});
            each(fields, &pod, &namespace, &mut |pod, namespace| {
                let asks = asks_for(product, pod, namespace);
                assert_eq!(asks.is_some(), guard.complains(pod, namespace), "{pod} {namespace}");
                if asks.is_some() { asked += 1 } else { not_asked += 1 }
            });
        }
    }
    assert!(asked > 50 && not_asked > 50, "{mesh}: {asked} ask, {not_asked} do not");
}

#[test]
fn what_asks_linkerd_is_the_same_in_rust_and_in_cel() {
    compare(Product::Linkerd, "linkerd", &LINKERD);
}

#[test]
fn what_asks_istio_is_the_same_in_rust_and_in_cel() {
    compare(Product::Istio, "istio", &ISTIO);
}
