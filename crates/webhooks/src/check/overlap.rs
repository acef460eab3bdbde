//! Webhooks that are called for the same pod.

use super::{
    Finding, Severity,
    danger::{creates_pods, findings},
};
use crate::{Configurations, Plugin, Webhook, injectors::Product};

/// Webhooks that are compared with each other: no cluster calls more for one pod. If there are more,
/// that is reported.
// Each is compared with each: more would take quadratic time.
const MAX_COMPARED: usize = 256;

pub(super) fn all(read: &Configurations, found: &mut Vec<Finding>) {
    let mutating = |webhook: &&Webhook| webhook.plugin == Plugin::Mutating && creates_pods(webhook);
    let mut webhooks: Vec<_> = read.webhooks().iter().filter(mutating).collect();
    if let Some(webhook) = webhooks.get(MAX_COMPARED) {
        let problem = format!(
            "more than {MAX_COMPARED} webhooks are called for pods: whether this one and those after \
             it are called for the same pods as others is not known"
        );
        let advice = "Check fewer configurations at once.";
        findings(webhook, found).add(Severity::Suggestion, "namespaceSelector", problem, advice);
    }
    webhooks.truncate(MAX_COMPARED);
    for (index, webhook) in webhooks.iter().enumerate() {
        let later: Vec<_> =
            webhooks[index + 1..].iter().filter(|later| meet(webhook, later)).collect();
        let twin = later.iter().find(|later| is_same_injector(webhook, later));
        let mut at = findings(webhook, found);
        // Linkerd's injector skips a pod that has the sidecar.
        if let Some(twin) = twin.filter(|_| webhook.product() == Some(Product::Linkerd)) {
            let problem = format!(
                "{} of {} is called for the same pods, finds the sidecar and does nothing",
                twin.name, twin.configuration
            );
            let advice = "Keep both while injectd runs beside Linkerd's injector; then remove one.";
            at.add(Severity::Suggestion, "namespaceSelector", problem, advice);
        } else if let Some(twin) = twin {
            let problem = format!(
                "{} of {} is called for the same pods: they are injected twice",
                twin.name, twin.configuration
            );
            let advice = "Make their selectors exclude each other, or remove one.";
            at.add(Severity::Danger, "namespaceSelector", problem, advice);
        }
        // injectd's webhooks for both meshes are meant to be so.
        let is_own = |later: &Webhook| webhook.is_of_injectd() && later.is_of_injectd();
        let other = later.iter().find(|later| !is_same_injector(webhook, later) && !is_own(later));
        if let Some(other) = other.filter(|_| !webhook.is_reinvoked) {
            let problem = format!(
                "{} of {} is called later, and what it adds to a pod is not seen",
                other.name, other.configuration
            );
            let advice = "If the later changes matter, use reinvocationPolicy IfNeeded.";
            at.add(Severity::Suggestion, "reinvocationPolicy", problem, advice);
        }
    }
}

/// Whether both are called for some pod.
fn meet(one: &Webhook, other: &Webhook) -> bool {
    let pairs = [
        (&one.namespace_selector, &other.namespace_selector),
        (&one.object_selector, &other.object_selector),
    ];
    pairs.into_iter().all(|(one, other)| one.and(other).example().is_some())
}

/// Whether both call injectors of one product. Of products that are not known, the names are the same
/// from the part on that says that they inject.
fn is_same_injector(one: &Webhook, other: &Webhook) -> bool {
    if let (Some(one), Some(other)) = (one.product(), other.product()) {
        return one == other;
    }
    let product = |webhook: &Webhook| {
        let labels: Vec<_> = webhook.name.split('.').collect();
        let from = labels.iter().rposition(|label| label.contains("inject"))?;
        Some(labels[from..].join("."))
    };
    product(one).is_some_and(|name| product(other) == Some(name))
}
