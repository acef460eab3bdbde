//! What works until something fails, and calls that are not needed.

use super::{Finding, Findings, Place, Severity};
use crate::{
    Configurations, FailurePolicy, Labels, Plugin, Request, Webhook, injectors::Product,
    selector::NAMESPACE_NAME,
};

/// The path of injectd's webhook of sidecar templates, which may be for pods on the host network.
const TEMPLATES_PATH: &str = "/templates";

/// Expressions that do not compile.
pub(super) fn conditions(read: &Configurations, found: &mut Vec<Finding>) {
    for webhook in read.webhooks() {
        let mut at = findings(webhook, found);
        for (index, condition) in webhook.conditions.iter().enumerate() {
            if let Some(problem) = condition.problem() {
                // The lines after it show the place.
                let problem = problem.lines().next().unwrap_or_default();
                let problem = format!("{}: it does not compile: {problem}", condition.name);
                let field = format!("matchConditions[{index}].expression");
                at.error(field, problem, "Correct the CEL expression.");
            }
        }
    }
}

pub(super) fn all(read: &Configurations, found: &mut Vec<Finding>) {
    for webhook in read.webhooks() {
        let mut at = findings(webhook, found);
        never(webhook, &mut at);
        if webhook.failure_policy == FailurePolicy::Fail {
            locked_out(webhook, &mut at);
        }
        if webhook.plugin == Plugin::Mutating {
            needless(webhook, &mut at);
        }
    }
}

pub(super) fn findings<'f>(webhook: &Webhook, all: &'f mut Vec<Finding>) -> Findings<'f> {
    let place = Place {
        configuration: webhook.configuration.clone(),
        webhook: Some(webhook.name.clone()),
        is_mutating: webhook.plugin == Plugin::Mutating,
    };
    Findings { place, all }
}

/// Selectors that contradict themselves.
fn never(webhook: &Webhook, at: &mut Findings<'_>) {
    for (field, selector) in [
        ("namespaceSelector", &webhook.namespace_selector),
        ("objectSelector", &webhook.object_selector),
    ] {
        if selector.example().is_none() {
            let advice = "Correct the selector: the webhook is never called.";
            let problem = "no labels can meet all of its requirements";
            at.add(Severity::Danger, field, problem, advice);
        }
    }
}

/// With the failure policy Fail: what cannot be created while the webhook does not answer.
fn locked_out(webhook: &Webhook, at: &mut Findings<'_>) {
    let is_called = |namespace: &str| {
        let name = (NAMESPACE_NAME.to_owned(), namespace.to_owned());
        let labels = Labels::from([name]);
        webhook.namespace_selector.unmet(&labels).is_none()
            && webhook.object_selector.unmet(&Labels::new()).is_none()
            && creates_pods(webhook)
    };
    if is_called("kube-system") {
        let problem = "with Fail, no pod of kube-system can be created while the webhook does not \
                       answer";
        let advice = "Exclude it: namespaceSelector with key kubernetes.io/metadata.name, operator \
                      NotIn, values [kube-system].";
        at.add(Severity::Danger, "namespaceSelector", problem, advice);
    }
    // A selector that excludes objects may exclude its own pods.
    let Some(own) = webhook.namespace.as_deref().filter(|own| *own != "kube-system") else {
        return;
    };
    if is_called(own) && !webhook.object_selector.excludes() {
        let problem =
            format!("with Fail, its own pods in {own} cannot start again once none is there");
        let advice = "Exclude its namespace by namespaceSelector, or its pods by objectSelector.";
        at.add(Severity::Danger, "namespaceSelector", problem, advice);
    }
}

/// Whether a rule matches the creation of pods.
pub(super) fn creates_pods(webhook: &Webhook) -> bool {
    let pod = serde_json::Value::Null;
    let request = Request::creates_pod(&pod, "any");
    webhook.rules.iter().any(|rule| rule.mismatch(&request, &request.resource).is_none())
}

/// Calls that an injector does not need.
fn needless(webhook: &Webhook, at: &mut Findings<'_>) {
    if !creates_pods(webhook) {
        return;
    }
    if webhook.rules.iter().any(crate::rules::Rule::has_any_resource) {
        let problem = "it is called for every object, also for Leases and Events";
        let advice = "Name the resources, or add the match condition \
                      !(request.resource.resource in ['leases', 'events']).";
        at.add(Severity::Suggestion, "rules", problem, advice);
    } else if webhook.name.contains("inject")
        // injectd answers for such pods as the mesh's own injector does.
        && !webhook.is_of_injectd()
        && webhook.path != TEMPLATES_PATH
        && webhook.conditions.is_empty()
        && webhook.rules.iter().all(crate::rules::Rule::only_creates_objects)
    {
        let problem = "it is called for pods on the host network, into which meshes do not inject";
        let only_pods = webhook.rules.iter().all(|rule| rule.resources == ["pods"]);
        let others = if only_pods { "" } else { "request.resource.resource != 'pods' || " };
        // Linkerd's injector copies the annotation to pods that it does not inject, too.
        let but = if webhook.product() == Some(Product::Linkerd) {
            " Such pods then do not get config.linkerd.io/opaque-ports of their namespace."
        } else {
            ""
        };
        let advice = format!(
            "If it is the injector of a mesh, add the match condition \
             {others}!has(object.spec.hostNetwork) || \
             !object.spec.hostNetwork.{but}"
        );
        at.add(Severity::Suggestion, "matchConditions", problem, advice);
    }
}
