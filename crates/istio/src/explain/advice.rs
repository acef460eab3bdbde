//! What to do about a pod without Istio's sidecar.

use injectd_core::{
    explain::Tainted,
    outcome::{Outcome, Verdict},
    text::first_names,
};

use crate::decide::{INJECT_ANNOTATION, Reason};

/// Most values that are named.
const MAX_NAMED: usize = 5;

/// The advice about an outcome; empty if nothing is to be done.
pub(super) fn of(outcome: &Outcome<'_>, namespace: &str, tainted: Option<&Tainted>) -> String {
    if let Some(Tainted { values, .. }) = tainted {
        let named: Vec<_> = values.iter().take(MAX_NAMED).map(|value| &*value.value).collect();
        return format!(
            "Correct {}: what is in it changes other fields of the pod.",
            first_names(named, values.len(), MAX_NAMED)
        );
    }
    if outcome.denial.is_some() {
        return "Correct the annotation or the template that the reason of the denial names."
            .to_owned();
    }
    if outcome.verdict == Verdict::Injected {
        return String::new();
    }
    let code = outcome.reasons.iter().next().map(|(_, reason)| reason.code);
    let reason = Reason::ALL.iter().find(|reason| Some(reason.as_str()) == code);
    let inject = INJECT_ANNOTATION;
    match reason {
        Some(Reason::HostNetwork) => "Istio cannot inject pods with hostNetwork: true. Remove it, \
             or leave the pod unmeshed."
            .to_owned(),
        Some(Reason::SystemNamespace) => {
            format!("Create the pod in another namespace: Istio never injects pods of {namespace}.")
        }
        Some(Reason::DisabledByLabel) => format!(
            "Set the label {inject} of the pod template to \"true\", if the pod should be meshed."
        ),
        Some(Reason::DisabledByAnnotation) => format!(
            "Remove the annotation {inject} from the pod template and set the label {inject}: \
             \"true\", if the pod should be meshed."
        ),
        Some(Reason::NeverInjectSelector) => format!(
            "Set the label {inject}: \"true\" in the pod template: it wins over neverInjectSelector."
        ),
        Some(Reason::PolicyDisabled) => format!(
            "Set the label {inject}: \"true\" in the pod template: the policy injects no pod that \
             does not ask."
        ),
        Some(Reason::PolicyInvalid) => {
            "Set the policy in the ConfigMap istio-sidecar-injector to enabled or disabled."
                .to_owned()
        }
        _ => String::new(),
    }
}
