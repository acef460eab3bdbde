//! What happens to a pod on its way into the cluster: the webhooks that the API server calls, the
//! decision of the mesh, and what may refuse the pod with its sidecar.
//!
//! Not for files, clusters and terminals: the commands and servers read the facts and show the report.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use injectd_cluster::sources::Sources;
use injectd_core::{
    explain::{Explain, Explanation, Trees},
    injector::{Injector, ReviewError},
    lookups::CallerFacts,
    object::Kind,
    outcome::Verdict,
    patch::PatchBuffer,
    review,
};
use injectd_istio::taint;
use injectd_k8s::object::labels;
use injectd_profiles::{Profile, for_mesh};
use injectd_webhooks::{
    Configurations, Labels, Request, Step,
    injectors::{self, Missed, Product},
};
use serde::Serialize;
use serde_json::Value;

pub mod completion;
pub mod later;

pub use injectd_core::explain::Workload;

/// What happens to one pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<'c> {
    /// What is explained.
    pub object: Subject,
    /// What is not known, and how the pod was made from the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The webhooks in the order of the API server; `None` if those of the cluster are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Vec<Step<'c>>>,
    /// Why the mesh is not asked; `None` if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_asked: Option<String>,
    /// Whether the API server rejects the pod without asking the mesh: it cannot decode the pod, or
    /// conditions of a webhook fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_rejected: bool,
    /// What is not known of the webhook, which may not be called; `None` if it is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// The decision of the mesh, if it is asked.
    #[serde(flatten)]
    pub injection: Explanation,
    /// What objects to the pod afterwards.
    pub later: Vec<later::Objection>,
    /// What to do; empty if nothing is to be done.
    pub advice: String,
}

/// The object that is explained.
#[derive(Debug, Clone, Serialize)]
pub struct Subject {
    /// Its kind, such as `Deployment`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name, or the prefix of the name that the API server will generate.
    pub name: String,
}

/// The pod that is created, and its namespace.
#[derive(Debug, Clone, Copy)]
pub struct Creation<'c> {
    /// The pod, as the API server sends it to webhooks.
    pub pod: &'c Value,
    /// Its namespace.
    pub namespace: &'c str,
    /// What is known of the namespace.
    pub checks: later::Checks<'c>,
}

/// A pod that the mesh has decided about.
#[derive(Debug)]
pub struct Decided {
    /// Why.
    pub explanation: Explanation,
    /// The pod with its sidecar; the same pod if it gets none.
    pub pod: Value,
    /// What the sidecar does to the pod that its author may not expect.
    pub note: Option<String>,
}

/// A pod as it would be created now.
#[derive(Debug)]
pub struct Created {
    /// The pod with its sidecar; `Ok(None)` if it gets none, and the error is the reason of a denial.
    pub pod: Result<Option<Value>, String>,
    /// What its values are counted as that change other fields than their own.
    pub tainted: Vec<&'static str>,
}

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The review fails.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// The patch of the answer does not apply.
    #[error("cannot apply the patch to the pod")]
    Patch(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Decides about the creation of a pod that may be made from a workload, and explains it.
///
/// # Errors
/// The review fails.
pub async fn decide(
    profile: &Profile,
    creation: Creation<'_>,
    workload: Option<Workload<'_>>,
    facts: CallerFacts<'_>,
) -> Result<Decided, ExplainError> {
    let mut pod = creation.pod.clone();
    let body = review_of(&pod, creation.namespace);
    let mut patch = PatchBuffer::json();
    let trees = Trees { object: &pod, workload, namespace: creation.checks.namespace };
    let mut explanation = for_mesh!(profile, injector => {
        let request = review::decode(&body).map_err(ReviewError::from)?;
        injector.explain(&request, trees, facts, &mut patch).await?
    });
    apply(&mut pod, &patch.into_bytes())?;
    let note = completion::note(creation.pod, &pod);
    let advice = &mut explanation.findings.advice;
    if note.is_some() && advice.is_empty() {
        let native = for_mesh!(profile, injector => injector.mesh().native_sidecar());
        *advice = format!("Make the sidecar a native one, which ends with the pod: {native}.");
    }
    Ok(Decided { explanation, pod, note })
}

/// The annotations of a namespace that is in no input, where there is no cluster to ask: those with
/// which `inject` decides.
#[must_use]
pub fn assumed_namespace(profile: &Profile) -> &'static [(&'static str, &'static str)] {
    fn of<M: Explain>(_: &Injector<M, Sources>) -> &'static [(&'static str, &'static str)] {
        M::ASSUMED_NAMESPACE
    }
    for_mesh!(profile, injector => of(injector))
}

/// The pod with the sidecar that it would get now, without an explanation.
///
/// # Errors
/// The review fails.
pub async fn inject(
    profile: &Profile,
    creation: Creation<'_>,
    facts: CallerFacts<'_>,
) -> Result<Created, ExplainError> {
    let body = review_of(creation.pod, creation.namespace);
    let mut patch = PatchBuffer::json();
    let outcome = for_mesh!(profile, injector => {
        let request = review::decode(&body).map_err(ReviewError::from)?;
        let outcome = injector.answer(&request, facts, &mut patch).await?;
        (outcome.verdict, outcome.denial, outcome.tainted)
    });
    let (verdict, denial, tainted) = outcome;
    let pod = match (verdict, denial) {
        (_, Some(denial)) => Err(denial.into_owned()),
        (Verdict::Injected, None) => {
            let mut pod = creation.pod.clone();
            apply(&mut pod, &patch.into_bytes())?;
            Ok(Some(pod))
        }
        _ => Ok(None),
    };
    Ok(Created { pod, tainted: taint::names(tainted).collect() })
}

/// Applies the patch of an answer; an empty one changes nothing.
fn apply(pod: &mut Value, patch: &[u8]) -> Result<(), ExplainError> {
    if patch.is_empty() {
        return Ok(());
    }
    let patch: json_patch::Patch =
        serde_json::from_slice(patch).map_err(|error| ExplainError::Patch(error.into()))?;
    json_patch::patch(pod, &patch).map_err(|error| ExplainError::Patch(error.into()))
}

/// A running pod in a namespace with these annotations as it was before its injection; `None` if it has
/// none of the mesh's. The annotations that it inherited are not its own.
#[must_use]
pub fn before_injection(
    profile: &Profile,
    pod: &Value,
    namespace: &[(String, String)],
) -> Option<Value> {
    for_mesh!(profile, injector => injector.mesh().before_injection(pod, namespace))
}

/// What the API server does about each webhook when a pod is created. Without the namespace, its
/// labels are not known.
#[must_use]
pub fn webhooks<'c>(configurations: &'c Configurations, creation: Creation<'_>) -> Vec<Step<'c>> {
    let request = Request::creates_pod(creation.pod, creation.namespace);
    configurations.walk(&request, creation.labels().as_ref())
}

/// Why no webhook of a product is called when a pod is created; `None` if one is called.
#[must_use]
pub fn missed(steps: &[Step<'_>], product: Product, creation: Creation<'_>) -> Option<Missed> {
    let request = Request::creates_pod(creation.pod, creation.namespace);
    injectors::missed(steps, product, &request, creation.labels().as_ref())
}

impl Creation<'_> {
    /// The labels of the namespace; `None` if they are not known.
    fn labels(self) -> Option<Labels> {
        self.checks.namespace.map(labels)
    }
}

/// The review that the API server sends for the creation of a pod.
fn review_of(pod: &Value, namespace: &str) -> Vec<u8> {
    let kind = Kind::Pod.as_str();
    let request = serde_json::json!({
        "uid": "explain",
        "kind": {"group": "", "version": "v1", "kind": kind},
        "operation": "CREATE",
        "namespace": namespace,
        "object": pod,
    });
    serde_json::json!({ "request": request }).to_string().into_bytes()
}
