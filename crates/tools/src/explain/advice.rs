//! What to do about a pod.

use injectd_controllers::audit::restart_command;
use injectd_core::explain::Explanation;
use injectd_explain::later::{Cause, Effect, IN_QUOTES, Objection};
use injectd_istio::decide::Reason;
use injectd_k8s::workload::Workload;
use injectd_webhooks::injectors::{Missed, Product};
use serde_json::Value;

/// The codes of reasons that no call of a webhook changes: the network of the node, for both meshes, and
/// a namespace of Kubernetes, for Istio.
const FINAL_REASONS: [&str; 2] = [Reason::HostNetwork.as_str(), Reason::SystemNamespace.as_str()];

/// What to do about a running pod that has no sidecar and would get one now.
pub(super) fn left_out(pod: &Value) -> String {
    let remedy = restart_command(&Workload::of(pod));
    format!(
        "The pod has no sidecar, although it would get one now: it was created before the webhook or \
         before what asks for injection, or while the webhook failed. Create it anew: {remedy}."
    )
}

/// What to do: first about the webhooks, then about the mesh's decision, then about what objects to the
/// pod. Empty if the pod is created as its author wished.
pub(super) fn of(missed: Option<&Missed>, injection: &Explanation, later: &[Objection]) -> String {
    let decided = || advice_of(injection, later);
    // Such a pod does not come to the webhooks.
    if later.iter().any(is_undecoded) {
        return about_refusal(later).unwrap_or_default();
    }
    match missed {
        Some(missed) if missed.is_doubt() => {
            [missed.advice.clone(), decided()].join(" ").trim_end().to_owned()
        }
        // The pod comes no further.
        Some(missed) if missed.is_rejected() => missed.advice.clone(),
        Some(missed) => {
            let refusal = about_refusal(later).unwrap_or_default();
            [refusal, before_call(missed, injection)].join(" ").trim().to_owned()
        }
        None => decided(),
    }
}

/// Whether the API server cannot decode the pod that its author wrote.
pub(super) fn is_undecoded(objection: &Objection) -> bool {
    objection.cause == Cause::Types && !objection.due_to_sidecar
}

/// What to do for a pod whose webhook is not called. Once it is called, the mesh decides: what it would
/// refuse for another reason is said as well.
fn before_call(missed: &Missed, injection: &Explanation) -> String {
    let has = |codes: &[&str]| injection.reasons.iter().any(|reason| codes.contains(&reason.code));
    let decided = &injection.findings.advice;
    let is_open = !missed.is_rejected() && !missed.is_as_wished();
    if !is_open || injection.injects() || injection.denial.is_some() {
        return missed.advice.clone();
    }
    if has(&FINAL_REASONS) {
        return decided.clone();
    }
    // What Istio's webhooks select by is what its injector reads.
    if Product::of_mesh(injection.mesh) == Some(Product::Linkerd) {
        return [&*missed.advice, decided].join(" ").trim_end().to_owned();
    }
    missed.advice.clone()
}

fn advice_of(injection: &Explanation, later: &[Objection]) -> String {
    if injection.denial.is_some() {
        return match &*injection.findings.advice {
            "" => "Correct the field that the denial names.".to_owned(),
            advice => advice.to_owned(),
        };
    }
    about_refusal(later).unwrap_or_else(|| injection.findings.advice.clone())
}

/// What to do if something refuses the pod. What the author can mend alone comes first.
fn about_refusal(later: &[Objection]) -> Option<String> {
    let refused = later.iter().filter(|objection| objection.effect == Effect::Refuses);
    // False is less than true, and the first of equal ones is taken.
    let refusal = refused.min_by_key(|objection| objection.due_to_sidecar)?;
    Some(if refusal.due_to_sidecar { of_sidecar(refusal) } else { of_pod(refusal) })
}

/// What to do about a pod that is refused with or without a sidecar.
fn of_pod(Objection { cause, by, text, .. }: &Objection) -> String {
    let what = match cause {
        Cause::Types => {
            let what = match text.strip_suffix(IN_QUOTES) {
                Some(field) => format!("Quote the value in the manifest: {field}a string"),
                None => format!("Correct the type of the field: {text}"),
            };
            return format!(
                "{what}. The API server cannot read the field, and calls no webhook for the pod."
            );
        }
        Cause::Uncounted => return of_uncounted(by),
        Cause::Validation => format!("Correct the pod: {text}"),
        Cause::LimitRange | Cause::PodSecurity | Cause::Missing => {
            format!("Change the pod as {by} asks: {text}")
        }
        Cause::Exceeded => format!("Reduce what the pod takes, or raise {by}: {text}"),
    };
    format!("{what}. It is refused without a sidecar as well.")
}

/// What to do about a pod that is refused because of its sidecar.
fn of_sidecar(Objection { cause, by, text, .. }: &Objection) -> String {
    match cause {
        Cause::Types | Cause::Validation => {
            format!("Change the settings of the sidecar, with which the pod is not valid: {text}.")
        }
        Cause::LimitRange | Cause::Missing | Cause::Exceeded => format!(
            "Change the resources of the sidecar by annotations, or {by}: the pod is refused once it \
             has its sidecar: {text}."
        ),
        Cause::PodSecurity => format!(
            "Change {by} of the namespace, or the settings of the sidecar: the pod is refused once it \
             has its sidecar: {text}."
        ),
        Cause::Uncounted => of_uncounted(by),
    }
}

fn of_uncounted(by: &str) -> String {
    format!(
        "In a cluster, wait until Kubernetes has counted what is used for {by}: it takes seconds, unless \
         kube-controller-manager does not run. In a file, remove status from {by}: then nothing counts as \
         used."
    )
}
