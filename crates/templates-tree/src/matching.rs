//! Which pods a template selects. Not for conditions in CEL, and not for injectd's own namespace.

use injectd_k8s::selector::{InvalidSelector, LabelSelector, Selector};
use injectd_templates::{
    matching::{SYSTEM_NAMESPACE, SYSTEM_PRIORITY_CLASSES},
    named::member,
    object::{Identity, Match, SystemPods},
};
use serde_json::Value;

use crate::layers::Layers;

/// Whether a pod, whose namespace is filled in, is one that a template selects by namespace, labels and priority
/// class.
///
/// # Errors
/// A selector is invalid.
pub fn selected(
    identity: &Identity,
    rules: &Match,
    layers: &Layers,
    pod: &Value,
) -> Result<bool, InvalidSelector> {
    unselected(identity, rules, layers, pod).map(|reason| reason.is_none())
}

/// Why a template does not select a pod, whose namespace is filled in.
///
/// # Errors
/// A selector is invalid.
pub fn unselected(
    identity: &Identity,
    rules: &Match,
    layers: &Layers,
    pod: &Value,
) -> Result<Option<&'static str>, InvalidSelector> {
    unselected_at(identity, rules, layers, PodPlace::of(pod))
}

/// What is looked at of a pod besides its labels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PodPlace<'p> {
    pub(crate) namespace: Option<&'p str>,
    is_of_system: bool,
}

impl<'p> PodPlace<'p> {
    /// Of a pod whose namespace is filled in.
    pub(crate) fn of(pod: &'p Value) -> Self {
        let text = |path: [&str; 2]| member(member(pod, path[0])?, path[1])?.as_str();
        let namespace = text(["metadata", "namespace"]);
        let class = text(["spec", "priorityClassName"]);
        let is_of_system = namespace == Some(SYSTEM_NAMESPACE)
            || class.is_some_and(|class| SYSTEM_PRIORITY_CLASSES.contains(&class));
        Self { namespace, is_of_system }
    }
}

pub(crate) fn unselected_at(
    identity: &Identity,
    rules: &Match,
    layers: &Layers,
    pod: PodPlace<'_>,
) -> Result<Option<&'static str>, InvalidSelector> {
    if identity.namespace.is_some() && identity.namespace.as_deref() != pod.namespace {
        return Ok(Some("the template is for pods of its own namespace"));
    }
    if rules.system_pods == SystemPods::Exclude && pod.is_of_system {
        return Ok(Some("systemPods: a pod of the system"));
    }
    if !meets(rules.namespace_selector.as_ref(), &layers.namespace_labels)? {
        return Ok(Some("namespaceSelector"));
    }
    Ok((!meets(rules.pod_selector.as_ref(), &layers.pod_labels)?).then_some("podSelector"))
}

/// Without a selector, and with an empty one, all labels do.
fn meets(
    selector: Option<&LabelSelector>,
    labels: &injectd_k8s::object::Labels,
) -> Result<bool, InvalidSelector> {
    let Some(selector) = selector else { return Ok(true) };
    if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
        return Ok(true);
    }
    Ok(Selector::valid(selector.clone())?.unmet(labels).is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_selected(identity: &Identity, rules: &Value, pod: &Value) -> bool {
        let rules = serde_json::from_value(rules.clone()).expect("a match");
        let namespace = json!({"labels": {"team": "a"}});
        let layers = Layers::new(pod, &namespace, None);
        selected(identity, &rules, &layers, pod).expect("selectors are valid")
    }

    fn of_cluster() -> Identity {
        Identity { namespace: None, name: "agent".to_owned() }
    }

    fn pod(namespace: &str) -> Value {
        json!({"metadata": {"namespace": namespace, "labels": {"app": "web"}}, "spec": {}})
    }

    #[test]
    fn all_selectors_must_be_met() {
        let selector = |key: &str, value: &str| json!({"matchLabels": {key: value}});
        for (rules, expected) in [
            (json!({}), true),
            (json!({"namespaceSelector": {}}), true),
            (json!({"namespaceSelector": selector("team", "a")}), true),
            (json!({"namespaceSelector": selector("team", "b")}), false),
            (json!({"podSelector": selector("app", "web")}), true),
            (json!({"podSelector": selector("app", "db")}), false),
            (json!({"podSelector": selector("team", "a")}), false),
            (
                json!({"namespaceSelector": selector("team", "a"), "podSelector": selector("app", "db")}),
                false,
            ),
            (
                json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}}),
                true,
            ),
            (
                json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}),
                false,
            ),
        ] {
            assert_eq!(is_selected(&of_cluster(), &rules, &pod("x")), expected, "{rules}");
        }
    }

    #[test]
    fn an_invalid_selector_is_an_error() {
        let rules = json!({"podSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}});
        let rules = serde_json::from_value(rules).expect("a match");
        let found = selected(&of_cluster(), &rules, &Layers::default(), &pod("x"));
        assert_eq!(found, Err(InvalidSelector::Operator("Is".to_owned())));
    }

    #[test]
    fn a_namespaced_template_selects_pods_of_its_own_namespace_only() {
        let identity = Identity { namespace: Some("x".to_owned()), name: "agent".to_owned() };
        assert!(is_selected(&identity, &json!({}), &pod("x")));
        assert!(!is_selected(&identity, &json!({}), &pod("y")));
        assert!(!is_selected(&identity, &json!({}), &json!({"metadata": {}})));
    }

    #[test]
    fn pods_of_the_system_are_selected_only_if_they_are_included() {
        let with_class = |class: &str| {
            let mut pod = pod("x");
            pod["spec"]["priorityClassName"] = class.into();
            pod
        };
        for (pod, is_of_system) in [
            (pod("kube-system"), true),
            (pod("kube-public"), false),
            (with_class("system-cluster-critical"), true),
            (with_class("system-node-critical"), true),
            (with_class("system"), false),
        ] {
            assert_eq!(is_selected(&of_cluster(), &json!({}), &pod), !is_of_system, "{pod}");
            assert!(is_selected(&of_cluster(), &json!({"systemPods": "Include"}), &pod));
        }
    }
}
