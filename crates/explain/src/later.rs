//! What may refuse a pod after the webhooks: validation, and the limit ranges, Pod Security and resource
//! quotas of its namespace. The API server applies them to the pod with its sidecar. A pod that it cannot
//! decode it refuses before.
//!
//! Each rule is that of the API server, whose source its module names. Pure: the pod and the objects of
//! its namespace are trees that callers read.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

mod admission;
mod beyond;
mod limits;
mod pod;
mod pod_security;
mod quota;
mod resources;
mod types;
mod validity;
mod version;

pub use self::types::IN_QUOTES;
pub use self::{
    beyond::note_on_amounts,
    types::unreadable,
    version::{NotVersion, Version},
};
use self::{limits::LimitRange, quota::Scoped};

/// Who objects to a pod that is not valid.
pub const VALIDATION: &str = "the validation of pods";

/// Who objects to a pod whose fields have values of other types.
pub const DECODING: &str = "the decoding of pods";

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

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Fields with values of another type: the API server cannot decode the pod.
    Types,
    /// Fields of the pod that are not valid.
    Validation,
    /// Amounts that a limit range does not accept.
    LimitRange,
    /// What the Pod Security level does not allow.
    PodSecurity,
    /// Amounts that a quota wants and the pod lacks.
    Missing,
    /// More than a quota leaves.
    Exceeded,
    /// A quota of which Kubernetes has not counted what is used.
    Uncounted,
}

/// A check that a pod does not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Objection {
    /// What follows.
    pub effect: Effect,
    /// What it is about.
    #[serde(skip)]
    pub cause: Cause,
    /// Who objects: the kind and name of an object, `PodSecurity` and the level, [`VALIDATION`] or
    /// [`DECODING`].
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
    /// The release of the API server. One that is not known counts as the nearest that is.
    pub version: Version,
}

/// The objections to a pod with its sidecar; `before` is the pod without it.
#[must_use]
pub fn objections(checks: Checks<'_>, before: &Value, injected: &Value) -> Vec<Objection> {
    let without_sidecar = all(checks, before, before);
    // What cannot be decoded does not come to the webhooks.
    let is_decoded = !without_sidecar.iter().any(|found| found.cause == Cause::Types);
    let injected = if is_decoded { injected } else { before };
    let without_sidecar: HashSet<_> = without_sidecar.iter().map(Found::key).collect();
    let objection = |found: Found| {
        let due_to_sidecar = !without_sidecar.contains(&found.key());
        let Found { effect, cause, by, text, .. } = found;
        Objection { effect, cause, by, text, due_to_sidecar }
    };
    all(checks, before, injected).into_iter().map(objection).collect()
}

/// A note for a pod whose objections differ between releases, if that of the cluster is not known.
#[must_use]
pub fn note_on_versions(checks: Checks<'_>, before: &Value, injected: &Value) -> Option<String> {
    let of = |version| {
        let found = all(Checks { version, ..checks }, before, injected);
        let refusals = found.into_iter().filter(|found| found.effect == Effect::Refuses);
        refusals.map(|found| found.by).collect::<Vec<_>>()
    };
    let known = of(checks.version);
    // The newest one that decides otherwise: a cluster is upgraded sooner than it goes back.
    let other = Version::supported().rev().find(|other| of(*other) != known)?;
    let version = checks.version;
    Some(format!(
        "the pod is judged by the checks of Kubernetes {version}; those of {other} refuse it for other \
         reasons or not at all: see --kubernetes-version"
    ))
}

/// What objects, in the order of the API server.
fn all(checks: Checks<'_>, before: &Value, pod: &Value) -> Vec<Found> {
    let undecoded = types::objections(pod);
    if !undecoded.is_empty() {
        return undecoded;
    }
    let version = checks.version.judged();
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
    cause: Cause,
    by: String,
    /// The check, and what it is about. Unlike the text it has no amounts, which injection changes.
    check: String,
    text: String,
}

impl Found {
    fn new(effect: Effect, cause: Cause, by: &str, check: String, text: String) -> Self {
        Self { effect, cause, by: by.to_owned(), check, text }
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

/// A number without a fraction. kubectl sends `1.0` as `1`.
fn integer(value: &Value) -> Option<i64> {
    let whole = |float: f64| format!("{float}").parse().ok();
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;
