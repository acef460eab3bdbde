//! Why an object is injected or not: what every rule read, where, and what it said.
//!
//! Made beside an answer, never for it: the answer of a review costs the same whether or not somebody
//! may ask for its explanation.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use serde::Serialize;
use serde_json::Value;

use crate::{
    lookups::Metadata,
    mesh::{Mesh, Reviewed},
    outcome::{Outcome, Verdict},
};

mod ignored;
pub mod keys;
pub mod places;
pub mod sidecars;
mod tainted;

pub use self::{
    ignored::{Ignored, IgnoredList, MAX_IGNORED},
    places::{Trees, Workload},
    tainted::{Tainted, TaintedMode, TaintedValue},
};

/// A mesh that can explain its answers.
pub trait Explain: Mesh {
    /// The annotations that a namespace has without a cluster and without an object of its own, so that
    /// `explain` and `inject` say the same of a manifest.
    const ASSUMED_NAMESPACE: &'static [(&'static str, &'static str)];

    /// Explains the outcome of a review in a namespace with these labels and annotations.
    fn explain<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Self::Object<'a>>,
        trees: Trees<'_>,
        namespace: &Metadata,
        outcome: &Outcome<'a>,
    ) -> Findings;

    /// A running pod as it was before its injection into a namespace with these annotations, as far
    /// as the pod shows; `None` if it was not injected.
    fn before_injection(&self, pod: &Value, namespace: &[(String, String)]) -> Option<Value>;

    /// Whether what a pod gets may depend on its name, or on that of its node.
    fn reads_names(&self) -> bool;

    /// How the sidecar becomes a native one, which ends with the pod's own containers.
    fn native_sidecar(&self) -> String;
}

/// The explanation of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Name of the mesh.
    pub mesh: &'static str,
    /// Release of the mesh that the configuration is for.
    pub release: String,
    /// The verdict: `injected`, `annotated`, `skipped`, `allowed` or `denied`.
    pub verdict: &'static str,
    /// Why the pod is not injected, in the mesh's order.
    pub reasons: Vec<Reason>,
    /// Why the object is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
    /// What the mesh found.
    #[serde(flatten)]
    pub findings: Findings,
}

/// What the rules of a mesh say of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// The rules in the order in which they are asked.
    pub rules: Vec<Rule>,
    /// The settings of the sidecar, if the object has pods.
    pub settings: Vec<Setting>,
    /// Annotations and labels without effect, and values that were changed.
    pub ignored: Vec<Ignored>,
    /// Sidecars of any mesh that the pod has already.
    pub sidecars: Vec<sidecars::Sidecar>,
    /// Values of the pod that change other fields than their own; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tainted: Option<Tainted>,
    /// What to do; empty if nothing is to be done.
    pub advice: String,
}

/// A skip reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Its code, as in metric labels.
    pub code: &'static str,
    /// Its text, as in events.
    pub text: &'static str,
}

/// A rule of the decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// Name of the rule.
    pub rule: &'static str,
    /// The fields that it read.
    pub read: Vec<Read>,
    /// What follows from it.
    pub result: RuleResult,
    /// The skip reason, if the rule has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The result in words.
    pub text: String,
}

/// What follows from a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleResult {
    /// The rule has nothing against injection.
    Passes,
    /// The rule asks for injection.
    Injects,
    /// The pod is not injected.
    Skips,
    /// The object is denied.
    Denies,
    /// An earlier rule has decided.
    NotAsked,
}

/// A field that a rule read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Read {
    /// Where the field is.
    pub layer: Layer,
    /// Path of the field, or the key of the annotation or label.
    pub field: String,
    /// Its value; `None` if it is absent.
    pub value: Option<String>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// The admission request.
    Request,
    /// The configuration of the mesh.
    Configuration,
    /// The namespace of the pod.
    Namespace,
    /// A `ProxyConfig` of the cluster.
    ProxyConfig,
    /// The workload under review.
    Workload,
    /// The pod, or the pod template of the workload.
    Pod,
}

/// A setting of the sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The key in the values of the mesh's chart.
    pub name: String,
    /// The value in use.
    pub value: String,
    /// Where the value comes from.
    pub origin: Layer,
    /// The annotation that sets it; absent for values of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotation: Option<String>,
}

impl Explanation {
    /// The explanation of an outcome.
    #[must_use]
    pub fn new(mesh: &'static str, outcome: &Outcome<'_>, findings: Findings) -> Self {
        let reasons = outcome.reasons.iter();
        Self {
            mesh,
            release: outcome.configuration.release.clone(),
            verdict: outcome.verdict.as_str(),
            reasons: reasons
                .map(|(_, reason)| Reason { code: reason.code, text: reason.text })
                .collect(),
            denial: outcome.denial.as_deref().map(str::to_owned),
            findings,
        }
    }

    /// Whether the pod gets a sidecar.
    #[must_use]
    pub fn injects(&self) -> bool {
        self.verdict == Verdict::Injected.as_str()
    }
}

impl Rule {
    /// A rule with a result.
    #[must_use]
    pub fn new(rule: &'static str, result: RuleResult, text: impl Into<String>) -> Self {
        Self { rule, read: Vec::new(), result, reason: None, text: text.into() }
    }

    /// The same rule with the skip reason that it has.
    #[must_use]
    pub fn because(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), result: RuleResult::Skips, ..self }
    }

    /// The same rule, which read this field too.
    #[must_use]
    pub fn reading(mut self, layer: Layer, field: &str, value: Option<impl ToString>) -> Self {
        let value = value.map(|value| value.to_string());
        self.read.push(Read { layer, field: field.to_owned(), value });
        self
    }
}

impl RuleResult {
    /// The result in one word or two.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Injects => "injects",
            Self::Skips => "skips",
            Self::Denies => "denies",
            Self::NotAsked => "not asked",
        }
    }
}

impl Layer {
    /// The name of the layer.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Configuration => "configuration",
            Self::Namespace => "namespace",
            Self::ProxyConfig => "ProxyConfig",
            Self::Workload => "workload",
            Self::Pod => "pod",
        }
    }
}
