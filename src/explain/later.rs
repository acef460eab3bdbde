//! What may refuse a pod after the webhooks: Pod Security, resource quotas and limit ranges of its
//! namespace. The API server applies them to the pod with its sidecar.

use serde::Serialize;
use serde_json::Value;

mod limits;
mod pod_security;

/// What the API server does with the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// It refuses the pod.
    Refuses,
    /// It accepts the pod with a warning.
    Warns,
    /// It accepts the pod and notes it in the audit log.
    Audits,
}

/// A check that a pod does not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Objection {
    /// What follows.
    pub effect: Effect,
    /// Who objects: the kind and name of an object, or `PodSecurity` and the level.
    pub by: String,
    /// What it objects to.
    pub text: String,
    /// Whether the pod without its sidecar would pass this check.
    pub due_to_sidecar: bool,
}

/// The objects of a namespace that check its pods.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checks<'c> {
    /// The Namespace itself, if it is known.
    pub namespace: Option<&'c Value>,
    /// Its `ResourceQuota`s.
    pub quotas: &'c [Value],
    /// Its `LimitRange`s.
    pub limit_ranges: &'c [Value],
}

/// The objections to a pod with its sidecar; `before` is the pod without it.
#[must_use]
pub fn objections(checks: Checks<'_>, before: &Value, injected: &Value) -> Vec<Objection> {
    let without_sidecar = all(checks, before);
    let mut objections = all(checks, injected);
    for objection in &mut objections {
        objection.due_to_sidecar = !without_sidecar.contains(objection);
    }
    objections
}

fn all(checks: Checks<'_>, pod: &Value) -> Vec<Objection> {
    let mut found = pod_security::objections(checks.namespace, pod);
    let pod = limits::with_defaults(checks.limit_ranges, pod);
    found.extend(limits::of_ranges(checks.limit_ranges, &pod));
    found.extend(limits::of_quotas(checks.quotas, &pod));
    found
}

fn objection(effect: Effect, by: impl Into<String>, text: impl Into<String>) -> Objection {
    Objection { effect, by: by.into(), text: text.into(), due_to_sidecar: false }
}

/// Every container of a pod, init containers first.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"];
    lists.into_iter().flat_map(|list| items(pod.pointer(list)))
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
