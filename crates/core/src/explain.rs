//! Why an object is injected or not: what every rule read, where, and what it said.
//!
//! Made beside an answer, never for it: the answer of a review costs the same whether or not somebody
//! may ask for its explanation.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use serde::Serialize;
use serde_json::Value;

use crate::{
    lookups::Annotations,
    mesh::{Mesh, Reviewed},
    outcome::{Outcome, Verdict},
};

pub mod sidecars;

/// Maximum number of annotations and labels without effect in an explanation: more than a person
/// reads.
pub const MAX_IGNORED: usize = 100;
/// Maximum length of a key of annotations and labels: a DNS subdomain, a slash and a name.
const MAX_KEY_BYTES: usize = 253 + 1 + 63;

/// A mesh that can explain its answers.
pub trait Explain: Mesh {
    /// Explains the outcome of a review in a namespace with these annotations. `raw` is the object
    /// of the review with all its fields.
    fn explain<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Self::Object<'a>>,
        raw: &Value,
        namespace: &Annotations,
        outcome: &Outcome<'a>,
    ) -> Findings;
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

/// An annotation or label without effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ignored {
    /// Where it is; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// The key.
    pub key: String,
    /// The value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why it has no effect.
    pub text: String,
}

/// Collects [`Findings::ignored`]: the first [`MAX_IGNORED`] entries, and how many more there are. A
/// pod can have thousands, and a suggestion for each is expensive.
#[derive(Debug, Default)]
pub struct IgnoredList {
    listed: Vec<Ignored>,
    omitted: usize,
}

impl IgnoredList {
    /// Adds an entry, which is made only if the list has room.
    pub fn add(&mut self, make: impl FnOnce() -> Ignored) {
        if self.listed.len() < MAX_IGNORED {
            self.listed.push(make());
        } else {
            self.omitted += 1;
        }
    }

    /// The entries. The last one has the number of those that are not listed.
    #[must_use]
    pub fn finish(mut self) -> Vec<Ignored> {
        if self.omitted > 0 {
            let text = format!("{} more annotations and labels without effect", self.omitted);
            self.listed.push(Ignored { layer: None, key: String::new(), value: None, text });
        }
        self.listed
    }
}

/// The known key of which another one is a mistyped form, if there is one.
pub fn most_like<'k>(known: impl Iterator<Item = &'k str>, key: &str) -> Option<&'k str> {
    /// The least likeness.
    const LIKENESS: f64 = 0.85;
    // The time grows with the square of the length, and a client may send any key.
    if key.len() > MAX_KEY_BYTES {
        return None;
    }
    let likeness = known.map(|known| (strsim::jaro_winkler(known, key), known));
    let most = likeness.max_by(|(one, _), (other, _)| one.total_cmp(other));
    most.filter(|(likeness, _)| *likeness >= LIKENESS).map(|(_, known)| known)
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
