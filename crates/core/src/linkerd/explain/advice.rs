//! What to do about a pod without Linkerd's sidecar.

use crate::{
    explain::sidecars::Sidecar,
    linkerd::reasons::{ALL, Reason},
    outcome::{Outcome, Verdict},
};

/// The advice about an outcome; empty if nothing is to be done.
pub(super) fn of(outcome: &Outcome<'_>, sidecars: &[Sidecar]) -> String {
    if outcome.denial.is_some() {
        return "Correct the annotation or the value that the reason of the denial names."
            .to_owned();
    }
    if outcome.verdict == Verdict::Injected {
        return match sidecars.iter().find(|sidecar| !sidecar.recognised) {
            Some(sidecar) => format!(
                "Remove container {}, or annotate the pod linkerd.io/inject: disabled: it looks like \
                 {}, and Linkerd does not recognise it.",
                sidecar.container, sidecar.product
            ),
            None => String::new(),
        };
    }
    let has = |reason: Reason| {
        let code = ALL[reason as usize].code;
        outcome.reasons.iter().any(|(_, reason)| reason.code == code)
    };
    // First what nothing else can cure.
    let text = if has(Reason::HostNetwork) {
        "Linkerd cannot inject pods with hostNetwork: true. Remove it, or leave the pod unmeshed."
    } else if has(Reason::SidecarExists) {
        "Nothing, if the pod was injected before. Else remove the sidecar from the manifest \
         (injectd uninject) and let the webhook add it."
    } else if has(Reason::InvalidNamespaceAnnotation) {
        "Set linkerd.io/inject on the namespace to enabled, ingress or disabled."
    } else if has(Reason::InvalidPodAnnotation) {
        "Set linkerd.io/inject in the pod template to enabled, ingress or disabled."
    } else if has(Reason::DisabledByPod) {
        "Remove linkerd.io/inject: disabled from the pod template, if the pod should be meshed."
    } else if has(Reason::NotEnabled) {
        "Annotate the namespace or the pod template with linkerd.io/inject: enabled, and create the \
         pod anew."
    } else if has(Reason::NoServiceAccountToken) {
        "Mount the service account's token (remove automountServiceAccountToken: false), or install \
         Linkerd with identity.serviceAccountTokenProjection=true."
    } else {
        ""
    };
    text.to_owned()
}
