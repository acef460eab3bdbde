//! Resource quotas: what containers must set, and whether enough is left.
//!
//! From k8s.io/kubernetes v1.37.2, `pkg/quota/v1/evaluator/core/pods.go`, and k8s.io/apiserver v0.37.2,
//! `pkg/admission/plugin/resourcequota/controller.go` (`CheckRequest`); the same since 1.34.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Cause, Effect, Found, present,
    resources::{
        Amount, Amounts, Resources, Side, amounts,
        names::{HUGE_PAGES, REQUESTS, is_counted_by_quotas, is_extended_request, is_huge_page},
        pod::PodResources,
    },
    text,
};

mod scopes;

pub(super) use self::scopes::Scoped;

/// The resources that both sides of a pod's resources count for, besides huge pages.
const COUNTED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The names that stand for one pod.
const PODS: [&str; 2] = ["pods", "count/pods"];

/// What a quota that limits one of these wants every container to set. Quotas of other resources do
/// not: Kubernetes calls it a mistake that it keeps for compatibility.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// What quotas object to: amounts that containers do not set, and sums that exceed what is left.
pub(super) fn objections(quotas: &[Value], scoped: Scoped<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for quota in quotas {
        let Status { hard, used } = Status::read(quota);
        let names: Vec<_> = hard.keys().filter(|name| counts_pods(name)).collect();
        if names.is_empty() || !scoped.is_in(quota) {
            continue;
        }
        let by = format!("ResourceQuota {}", text(quota, "/metadata/name").unwrap_or_default());
        let mut refuse = |cause, problems: Vec<_>| {
            let of = |(check, text)| Found::new(Effect::Refuses, cause, &by, check, text);
            found.extend(problems.into_iter().map(of));
        };
        refuse(Cause::Missing, missing(&names, scoped.resources));
        match used {
            Some(used) => refuse(Cause::Exceeded, exceeded(&hard, &used, scoped.resources)),
            None => refuse(Cause::Uncounted, vec![uncounted()]),
        }
    }
    found
}

/// What a quota allows, and what is used of it.
#[derive(Debug)]
struct Status {
    hard: Amounts,
    /// `None` if Kubernetes has not counted it.
    used: Option<Amounts>,
}

impl Status {
    /// The API server reads both from the status, which a controller writes; in a file without a
    /// status, all of `spec.hard` is left.
    fn read(quota: &Value) -> Self {
        let map = |pointer| amounts(present(quota, pointer));
        let (hard, used) = (map("/status/hard"), map("/status/used"));
        if hard.is_empty() {
            return Self { hard: map("/spec/hard"), used: Some(used) };
        }
        let mut names = hard.keys().filter(|name| counts_pods(name));
        let is_counted = names.all(|name| used.contains_key(name));
        Self { hard, used: is_counted.then_some(used) }
    }
}

/// `hasUsageStats`.
fn uncounted() -> (String, String) {
    let text =
        "Kubernetes has not counted yet what is used (status.used); until then it refuses pods";
    ("used".to_owned(), text.to_owned())
}

/// Whether a name in a quota limits what pods use.
fn counts_pods(name: &str) -> bool {
    let request = name.strip_prefix(REQUESTS);
    let counted = request.or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
    COUNTED.contains(&counted)
        || PODS.contains(&name)
        || request.unwrap_or(name).starts_with(HUGE_PAGES)
        || is_extended_request(name)
}

/// What containers do not set. The pod's own resources do without.
fn missing(names: &[&String], pod: &PodResources) -> Vec<(String, String)> {
    if pod.has_own() {
        return Vec::new();
    }
    let required = names.iter().filter(|name| REQUIRED.contains(&name.as_str()));
    let of = |name: &&&String| {
        let lacks = |resources: &Resources| {
            !usage(&resources.requests, &resources.limits).contains_key(name.as_str())
        };
        let lacking = pod.all().filter(|container| lacks(&container.resources));
        // Kubernetes names them in this order, each once.
        let lacking: BTreeSet<_> = lacking.map(|container| &*container.name).collect();
        let lacking: Vec<_> = lacking.into_iter().collect();
        let (side, resource) = match name.strip_prefix("limits.") {
            Some(resource) => (Side::Limits, resource),
            None => (Side::Requests, name.strip_prefix(REQUESTS).unwrap_or(name)),
        };
        let text = format!(
            "{name}: every container must have a {resource} {}; without one: {}",
            side.one(),
            lacking.join(", ")
        );
        (!lacking.is_empty()).then(|| (format!("{name} for {}", lacking.join(" ")), text))
    };
    required.filter_map(|name| of(&name)).collect()
}

/// What is not left. A pod that takes nothing of a resource does not exceed it, whatever is used.
fn exceeded(hard: &Amounts, used: &Amounts, pod: &PodResources) -> Vec<(String, String)> {
    let mut taken = usage(&pod.taken(Side::Requests), &pod.taken(Side::Limits));
    taken.insert("count/pods".to_owned(), Amount::of(1));
    let mut found = Vec::new();
    for (name, amount) in taken {
        let Some(hard) = hard.get(&name).filter(|_| amount.is_positive()) else { continue };
        let used = used.get(&name);
        let sum = used.map_or_else(|| amount.clone(), |used| used.plus(&amount));
        if sum > *hard {
            let used = used.map_or_else(|| "0".to_owned(), Amount::to_string);
            let text = format!(
                "{name}: the pod takes {amount}, {used} is used, and the quota allows {hard}"
            );
            found.push((format!("{name} exhausted"), text));
        }
    }
    found
}

/// What requests and limits count for, by the names that quotas have for it.
fn usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), Amount::of(1))]);
    for (name, amount) in requests {
        let is_counted = COUNTED.contains(&name.as_str()) || is_huge_page(name);
        if is_counted {
            usage.insert(name.clone(), amount.clone());
        }
        if is_counted || is_counted_by_quotas(name) {
            usage.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COUNTED.contains(&name.as_str())) {
        usage.insert(format!("limits.{name}"), amount.clone());
    }
    usage
}
