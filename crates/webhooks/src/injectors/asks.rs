//! What asks for a sidecar, whatever the webhooks of the cluster are.

use injectd_istio::decide::{INJECT_ANNOTATION as ISTIO_POD, SYSTEM_NAMESPACES};
use serde_json::Value;

use crate::{
    Labels,
    product::{ISTIO_REVISION, Product},
};

/// The annotation of Linkerd, and its values that ask.
const LINKERD_INJECT: &str = "linkerd.io/inject";
const LINKERD_ASKS: [&str; 2] = ["enabled", "ingress"];
/// The label of namespaces that Linkerd's webhook leaves out, and the value.
const LINKERD_WEBHOOKS: (&str, &str) = ("config.linkerd.io/admission-webhooks", "disabled");
/// The namespaces that Linkerd's webhook leaves out.
const LINKERD_LEFT_OUT: [&str; 2] = ["kube-system", "cert-manager"];
/// The labels of pods that Linkerd's webhook leaves out.
pub(super) const LINKERD_OWN: [&str; 2] =
    ["linkerd.io/control-plane-component", "linkerd.io/cni-resource"];

/// The label of Istio on namespaces; that of pods is [`ISTIO_POD`].
pub(super) const ISTIO_NAMESPACE: &str = "istio-injection";

/// What is known of a pod and its namespace.
#[derive(Debug, Clone, Copy)]
struct Asker<'a> {
    pod: &'a Value,
    namespace: &'a Value,
}

/// What asks for the sidecar of a product, such as `the label istio-injection=enabled of the
/// namespace`; `None` if nothing does, if the pod or the namespace refuses it, and for a pod on the
/// network of its node. `namespace` is null if it is not known.
///
/// The rules are those of the selectors of the webhooks and of the first rules of the injectors; what
/// the injectors are configured with is not known here. `manifest guard` has the same rules in CEL.
#[must_use]
pub fn asks_for(product: Product, pod: &Value, namespace: &Value) -> Option<String> {
    let asker = Asker { pod, namespace };
    if pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true)) {
        return None;
    }
    match product {
        Product::Linkerd => asker.linkerd(),
        Product::Istio => asker.istio(),
        // Which pods templates are for is in the templates.
        Product::Consul | Product::Dapr | Product::Kuma | Product::Templates => None,
    }
}

/// Whether a label or an annotation of a pod or of its namespace is about the injection of a product:
/// asks for it or refuses it.
#[must_use]
pub fn mentions(product: Product, pod: &Value, namespace: &Value) -> bool {
    let has = |object, map, keys: &[&str]| keys.iter().any(|key| text(object, map, key).is_some());
    match product {
        Product::Linkerd => {
            [pod, namespace].iter().any(|object| has(object, "annotations", &[LINKERD_INJECT]))
        }
        Product::Istio => {
            has(namespace, "labels", &[ISTIO_NAMESPACE, ISTIO_REVISION])
                || has(pod, "labels", &[ISTIO_POD, ISTIO_REVISION])
                || has(pod, "annotations", &[ISTIO_POD])
        }
        Product::Consul | Product::Dapr | Product::Kuma | Product::Templates => false,
    }
}

impl Asker<'_> {
    fn linkerd(self) -> Option<String> {
        let annotation = |object| text(object, "annotations", LINKERD_INJECT);
        let (key, disabled) = LINKERD_WEBHOOKS;
        let name = self.namespace.pointer("/metadata/name").and_then(Value::as_str);
        let is_left_out = text(self.namespace, "labels", key) == Some(disabled)
            || name.is_some_and(|name| LINKERD_LEFT_OUT.contains(&name))
            || LINKERD_OWN.iter().any(|key| text(self.pod, "labels", key).is_some());
        if is_left_out {
            return None;
        }
        let asks = |value: &&str| LINKERD_ASKS.contains(value);
        let of_pod = annotation(self.pod).filter(|value| !value.is_empty());
        match (of_pod, annotation(self.namespace).unwrap_or_default()) {
            (None, value) if asks(&value) => {
                Some(format!("the annotation {LINKERD_INJECT}: {value} of the namespace"))
            }
            // A namespace with an invalid value disables injection, also for pods that ask for it.
            (Some(value), of_namespace)
                if asks(&value)
                    && (asks(&of_namespace) || matches!(of_namespace, "" | "disabled")) =>
            {
                Some(format!("the annotation {LINKERD_INJECT}: {value} of the pod"))
            }
            _ => None,
        }
    }

    /// The namespace's label `istio-injection` comes before its label `istio.io/rev`, and both before
    /// the labels of the pod.
    fn istio(self) -> Option<String> {
        let name = self.namespace.pointer("/metadata/name").and_then(Value::as_str);
        if name.is_some_and(|name| SYSTEM_NAMESPACES.contains(&name)) {
            return None;
        }
        let label = |key| text(self.pod, "labels", key);
        let refuses = label(ISTIO_POD).or_else(|| text(self.pod, "annotations", ISTIO_POD));
        if refuses == Some("false") {
            return None;
        }
        let of_namespace = |key| text(self.namespace, "labels", key);
        if let Some(value) = of_namespace(ISTIO_NAMESPACE) {
            let text = format!("the label {ISTIO_NAMESPACE}={value} of the namespace");
            return (value == "enabled").then_some(text);
        }
        // No revision has an empty name, and no webhook selects it.
        let by_revision = |revision: &str, whose| {
            let text = format!("the label {ISTIO_REVISION}={revision} of the {whose}");
            (!revision.is_empty()).then_some(text)
        };
        if let Some(revision) = of_namespace(ISTIO_REVISION) {
            return by_revision(revision, "namespace");
        }
        if let Some(revision) = label(ISTIO_REVISION) {
            return by_revision(revision, "pod");
        }
        (label(ISTIO_POD) == Some("true")).then(|| format!("the label {ISTIO_POD}=true of the pod"))
    }
}

/// Whether no label says anything about Istio.
pub(super) fn has_no_label(pod: &Labels, namespace: &Labels) -> bool {
    let of_namespace = [ISTIO_NAMESPACE, ISTIO_REVISION];
    let of_pod = [ISTIO_POD, ISTIO_REVISION];
    !of_namespace.iter().any(|key| namespace.contains_key(*key))
        && !of_pod.iter().any(|key| pod.contains_key(*key))
}

/// The revision or tag of Istio that the label `istio.io/rev` of a namespace or a pod names; `None` if
/// other labels decide.
pub(super) fn istio_revision<'l>(pod: &'l Labels, namespace: &'l Labels) -> Option<&'l str> {
    if namespace.contains_key(ISTIO_NAMESPACE) {
        return None;
    }
    let named = namespace.get(ISTIO_REVISION).or_else(|| pod.get(ISTIO_REVISION));
    named.map(String::as_str)
}

/// The value of a label or an annotation of an object.
fn text<'o>(object: &'o Value, map: &str, key: &str) -> Option<&'o str> {
    object.get("metadata")?.get(map)?.get(key)?.as_str()
}
