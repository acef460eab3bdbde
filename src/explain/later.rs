//! What may refuse a pod after the webhooks: validation, and the limit ranges, Pod Security and resource
//! quotas of its namespace. The API server applies them to the pod with its sidecar.
//!
//! Each rule is that of the API server, whose source its module names. Pure: the pod and the objects of
//! its namespace are trees that callers read.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

mod admission;
mod limits;
mod pod;
mod pod_security;
mod quota;
mod resources;
mod validity;
mod version;

pub use self::version::{NotVersion, Version};
use self::{limits::LimitRange, quota::Scoped};

/// Who objects to a pod that is not valid.
pub const VALIDATION: &str = "the validation of pods";

/// What the API server does with the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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
    /// Who objects: the kind and name of an object, `PodSecurity` and the level, or [`VALIDATION`].
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
    /// The release of the API server.
    pub version: Version,
}

/// The objections to a pod with its sidecar; `before` is the pod without it.
#[must_use]
pub fn objections(checks: Checks<'_>, before: &Value, injected: &Value) -> Vec<Objection> {
    let without_sidecar = all(checks, before, before);
    let without_sidecar: HashSet<_> = without_sidecar.iter().map(Found::key).collect();
    let objection = |found: Found| {
        let due_to_sidecar = !without_sidecar.contains(&found.key());
        let Found { effect, by, text, .. } = found;
        Objection { effect, by, text, due_to_sidecar }
    };
    all(checks, before, injected).into_iter().map(objection).collect()
}

/// A note for a pod whose objections differ between releases, if that of the cluster is not known.
#[must_use]
pub fn note_on_versions(checks: Checks<'_>, before: &Value, injected: &Value) -> Option<String> {
    let of = |version| {
        let found = all(Checks { version, ..checks }, before, injected);
        let refusals = found.into_iter().filter(|it| it.effect == Effect::Refuses);
        refusals.map(|it| it.by).collect::<Vec<_>>()
    };
    let known = of(checks.version);
    let other = Version::supported().rev().find(|other| of(*other) != known)?;
    let version = checks.version;
    Some(format!(
        "what objects to the pod is that of Kubernetes {version}; {other} differs: see \
         --kubernetes-version"
    ))
}

/// What objects, in the order of the API server.
fn all(checks: Checks<'_>, before: &Value, pod: &Value) -> Vec<Found> {
    let version = checks.version;
    let ranges: Vec<_> = checks.limit_ranges.iter().map(LimitRange::read).collect();
    let resources = admission::admitted(&ranges, version, before, pod);
    let mut found = validity::objections(pod, &resources);
    found.extend(ranges.iter().flat_map(|range| range.objections(&resources)));
    found.extend(pod_security::objections(checks.namespace, version, pod));
    let scoped = Scoped { pod, resources: &resources, version };
    found.extend(quota::objections(checks.quotas, scoped));
    found
}

/// An objection, and the check that it comes from.
#[derive(Debug)]
struct Found {
    effect: Effect,
    by: String,
    /// The check, and what it is about. Unlike the text it has no amounts, which injection changes.
    check: String,
    text: String,
}

impl Found {
    fn new(effect: Effect, by: &str, (check, text): (String, String)) -> Self {
        Self { effect, by: by.to_owned(), check, text }
    }

    /// Equal for the same check of the pod without its sidecar.
    fn key(&self) -> (Effect, &str, &str) {
        (self.effect, &self.by, &self.check)
    }
}

/// Every container of a pod, init containers first.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"];
    lists.into_iter().flat_map(|list| items(pod.pointer(list)))
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The value at a place, unless it is null: a null is as good as absent.
fn present<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    value.pointer(pointer).filter(|value| !value.is_null())
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
