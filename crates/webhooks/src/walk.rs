//! Walks the webhooks as the API server does (`generic/webhook.go`, `ShouldCallHook`).

use std::{cell::LazyCell, ops::Deref};

use injectd_cel::Budget;
use injectd_k8s::{object::labels, selector::Selector};

use crate::{
    Configurations, FailurePolicy, Labels, Operation, Request, Resource, Webhook,
    conditions::{Evaluation, Variables},
    equivalents,
    rules::Mismatch,
    selector::against,
    step::{Reason, Step, Verdict},
};

/// The group of the configurations that no webhook sees.
const ADMISSION: &str = "admissionregistration.k8s.io";
const EXEMPT: [&str; 6] = [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

const OVER_BUDGET: &str =
    "the conditions of the webhook together cost more than the limit of an API server";

impl Configurations {
    /// What the API server does about each webhook, in its order. `namespace` are the labels of the
    /// request's namespace; `None` if they are not known.
    ///
    /// A webhook sees the object as the ones before it left it; here each one sees the object of the
    /// request.
    #[must_use]
    pub fn walk(&self, request: &Request<'_>, namespace: Option<&Labels>) -> Vec<Step<'_>> {
        // Most configurations have no conditions.
        let variables = LazyCell::new(|| Variables::new(request));
        let step = |webhook| {
            let (verdict, reason) = judge(webhook, request, namespace, &variables);
            Step { webhook, verdict, reason }
        };
        self.webhooks.iter().map(step).collect()
    }
}

type Judgement = (Verdict, Reason);

fn judge<'v>(
    webhook: &Webhook,
    request: &Request<'_>,
    namespace: Option<&Labels>,
    variables: &impl Deref<Target = Variables<'v>>,
) -> Judgement {
    let not_called = |reason| (Verdict::NotCalled, reason);
    let resource = &request.resource;
    // Otherwise a broken webhook could keep others from repairing it.
    if is_exempt(&resource.group, &resource.resource) {
        return not_called(Reason::Exempt);
    }
    // What is not known is reported only if nothing else is against the call.
    let mut unknown = None;
    match namespace_mismatch(&webhook.namespace_selector, request, namespace) {
        Some(Reason::NamespaceUnknown) => unknown = Some(Reason::NamespaceUnknown),
        Some(reason) => return not_called(reason),
        None => {}
    }
    if let Some(reason) = object_mismatch(&webhook.object_selector, request) {
        return not_called(reason);
    }
    let matched = match rule(webhook, request) {
        Ok(reason) => reason,
        // A rule may match an equivalent version that only the API server knows.
        Err(reason @ Reason::VersionsUnknown(_)) => return (Verdict::Unknown, reason),
        Err(reason) => return not_called(reason),
    };
    let (verdict, reason) = conditions(webhook, variables).unwrap_or((Verdict::Called, matched));
    match unknown {
        Some(reason) if verdict != Verdict::NotCalled => (Verdict::Unknown, reason),
        _ => (verdict, reason),
    }
}

/// Whether no webhook of the API sees requests for a resource.
pub(crate) fn is_exempt(group: &str, resource: &str) -> bool {
    group == ADMISSION && EXEMPT.contains(&resource)
}

/// Cluster-scoped objects match always; a Namespace that is created or changed by its own labels.
fn namespace_mismatch(
    selector: &Selector,
    request: &Request<'_>,
    namespace: Option<&Labels>,
) -> Option<Reason> {
    let is_namespace = request.resource.resource == "namespaces";
    if selector.is_empty() || request.namespace.is_empty() && !is_namespace {
        return None;
    }
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    let own = (is_namespace && request.subresource.is_empty() && is_written)
        .then(|| request.object.map(labels).unwrap_or_default());
    let Some(found) = own.as_ref().or(namespace) else { return Some(Reason::NamespaceUnknown) };
    selector.unmet(found).map(|unmet| Reason::NamespaceSelector(against(unmet, found)))
}

/// The selector matches the new or the old object.
fn object_mismatch(selector: &Selector, request: &Request<'_>) -> Option<Reason> {
    if selector.is_empty() {
        return None;
    }
    let mut reason = None;
    for object in [request.object, request.old_object].into_iter().flatten() {
        let found = labels(object);
        // One object that matches is enough.
        let unmet = selector.unmet(&found)?;
        reason.get_or_insert_with(|| against(unmet, &found));
    }
    let no_object = || "the request has no object".to_owned();
    Some(Reason::ObjectSelector(reason.unwrap_or_else(no_object)))
}

/// The reason why a rule matches, or why none does.
fn rule(webhook: &Webhook, request: &Request<'_>) -> Result<Reason, Reason> {
    let mismatches: Vec<_> =
        webhook.rules.iter().map(|rule| rule.mismatch(request, &request.resource)).collect();
    if mismatches.contains(&None) {
        return Ok(Reason::Matches);
    }
    if webhook.is_equivalent {
        let others: Vec<_> = equivalents::of(&request.resource).collect();
        for rule in &webhook.rules {
            let matches = |other: &&Resource| rule.mismatch(request, other).is_none();
            if let Some(other) = others.iter().find(matches) {
                return Ok(Reason::MatchesEquivalent(other.to_string()));
            }
        }
        let by_version = mismatches.contains(&Some(Mismatch::Version));
        if by_version && !equivalents::are_known(&request.resource) {
            return Err(Reason::VersionsUnknown(request.resource.to_string()));
        }
    }
    // The rule that comes closest.
    let closest = webhook.rules.iter().zip(mismatches).max_by_key(|(_, mismatch)| *mismatch);
    let text = match closest {
        Some((rule, Some(part))) => {
            let subresource = match request.subresource {
                "" => String::new(),
                name => format!(", subresource {name}"),
            };
            let (operation, resource) = (request.operation.as_str(), &request.resource);
            format!("{} do not have {operation} of {resource}{subresource}", rule.part(part))
        }
        _ => "the webhook has none".to_owned(),
    };
    Err(Reason::Rules(text))
}

/// What conditions say against the call. A false one skips the webhook, even if others fail, unless
/// all of them cost too much.
fn conditions<'v>(
    webhook: &Webhook,
    variables: &impl Deref<Target = Variables<'v>>,
) -> Option<Judgement> {
    let mut budget = Budget::of_conditions();
    let mut is_false = None;
    let mut failed = None;
    let mut unknown = None;
    // As in the API server, all are evaluated: those behind a false one cost as well.
    for condition in &webhook.conditions {
        let name = condition.name.clone();
        match condition.evaluate(variables, &mut budget) {
            Evaluation::True => {}
            Evaluation::False => {
                is_false.get_or_insert(Reason::Condition(name));
            }
            Evaluation::Fails(problem) => {
                failed.get_or_insert(Reason::ConditionFails { name, problem });
            }
            Evaluation::Unknown(problem) => {
                unknown.get_or_insert(Reason::ConditionUnknown { name, problem });
            }
            Evaluation::OverBudget => {
                let problem = OVER_BUDGET.to_owned();
                return Some((failure(webhook), Reason::ConditionFails { name, problem }));
            }
        }
    }
    if let Some(reason) = is_false {
        return Some((Verdict::NotCalled, reason));
    }
    // A condition that is not evaluated may be false.
    if let Some(reason) = unknown {
        let is_skipped = failed.is_some() && webhook.failure_policy == FailurePolicy::Ignore;
        return if is_skipped {
            failed.map(|reason| (Verdict::NotCalled, reason))
        } else {
            Some((Verdict::Unknown, reason))
        };
    }
    failed.map(|reason| (failure(webhook), reason))
}

/// What follows from conditions that fail.
fn failure(webhook: &Webhook) -> Verdict {
    match webhook.failure_policy {
        FailurePolicy::Fail => Verdict::Rejected,
        FailurePolicy::Ignore => Verdict::NotCalled,
    }
}
