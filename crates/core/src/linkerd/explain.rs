//! Explains Linkerd's answers, by the functions that decide and that apply overrides.

#![expect(clippy::disallowed_types, reason = "an explanation is not part of a review")]

use serde_json::Value;

use super::{
    annotations::{Annotation, NATIVE_SIDECAR},
    decide,
    overrides::Overrides,
    pod::{Object, Spec},
    reasons::{ALL, Reason},
    snapshot::Snapshot,
};
use crate::{
    explain::{
        Explain, Findings, Layer, Rule, RuleResult, Trees, Workload, places::Places, sidecars,
    },
    lookups::Metadata,
    mesh::Reviewed,
    object::Kind,
    outcome::Outcome,
};

mod advice;
mod before;
mod ignored;
mod settings;

/// The field of a spec that says whether the token of the service account is mounted.
const AUTOMOUNT: &str = "spec.automountServiceAccountToken";

impl Explain for Snapshot {
    const ASSUMED_NAMESPACE: &'static [(&'static str, &'static str)] =
        &[(Annotation::Inject.key(), "enabled")];

    fn explain<'a>(
        &self,
        reviewed: Reviewed<'_, 'a, Object<'a>>,
        trees: Trees<'_>,
        namespace: &Metadata,
        outcome: &Outcome<'a>,
    ) -> Findings {
        let Reviewed { request, object, .. } = reviewed;
        let kind = request.kind;
        let pod = object.pod(kind);
        let annotations = pod.map_or(&object.metadata.annotations, |(pod, _)| &pod.annotations);
        let workload = (kind != Kind::Pod).then_some(&object.metadata.annotations);
        let of_namespace =
            namespace.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let overrides = self.overrides(annotations, workload, of_namespace);
        let Some((_, spec)) = pod else {
            let rules = vec![kind_rule(kind, false)];
            return Findings { rules, ..Findings::default() };
        };
        let raw = trees.object;
        let raw_pod = raw.pointer(kind.path_prefix()).unwrap_or(raw);
        let of_review = workload.map(|_| Workload { object: raw, prefix: kind.path_prefix() });
        let of_namespace = namespace.annotations.iter().map(|(key, value)| (&**key, &**value));
        let around = (of_review.or(trees.workload), trees.namespace);
        let places = Places::of(raw_pod, around.0, around.1, of_namespace);
        let raw_spec = raw_pod.get("spec").unwrap_or(&Value::Null);
        let sidecars = sidecars::of_spec(raw_spec, |name, image, is_init| {
            self.decider.is_sidecar(name, image, is_init)
        });
        let mut rules = vec![
            kind_rule(kind, true),
            host_network_rule(spec),
            sidecar_rule(&sidecars),
            annotation_rule(&overrides),
            self.token_rule(spec),
        ];
        if outcome.reasons.is_empty() {
            rules.push(template_rule(outcome));
        } else {
            // Linkerd asks every rule. One that asks for injection does not win over one that skips.
            for rule in rules.iter_mut().filter(|rule| rule.result == RuleResult::Injects) {
                rule.result = RuleResult::Passes;
            }
        }
        Findings {
            rules,
            settings: self.shown_settings(&overrides, spec),
            ignored: ignored::of(self, &places, &overrides, outcome),
            advice: advice::of(outcome, &sidecars),
            sidecars,
            tainted: None,
        }
    }

    fn before_injection(&self, pod: &Value, namespace: &[(String, String)]) -> Option<Value> {
        before::of(self, pod, namespace)
    }

    fn reads_names(&self) -> bool {
        false
    }

    fn native_sidecar(&self) -> String {
        let supported = NATIVE_SIDECAR.into_iter().find(|annotation| self.supports(*annotation));
        match supported {
            Some(annotation) => format!(
                "annotate the pod template {}: \"true\", or install Linkerd with \
                 proxy.nativeSidecar=true",
                annotation.key()
            ),
            None => "install a release of Linkerd with native sidecars".to_owned(),
        }
    }
}

fn kind_rule(kind: Kind, has_pod: bool) -> Rule {
    let rule = |result, text: &str| {
        let rule = Rule::new("kind", result, text);
        rule.reading(Layer::Request, "kind", Some(kind.as_str()))
    };
    if has_pod {
        return rule(RuleResult::Passes, "the object is a pod or has a pod template");
    }
    if matches!(kind, Kind::Service | Kind::Namespace) {
        return rule(RuleResult::Passes, "the object gets at most the opaque-ports annotation");
    }
    rule(RuleResult::Skips, "the kind has no pods that Linkerd knows")
        .because(code(Reason::UnsupportedResource))
}

fn host_network_rule(spec: &Spec<'_>) -> Rule {
    let rule = |result, text: &str| {
        let rule = Rule::new("hostNetwork", result, text);
        rule.reading(Layer::Pod, "spec.hostNetwork", spec.host_network)
    };
    if spec.host_network == Some(true) {
        return rule(RuleResult::Skips, "the pod uses the network of its node")
            .because(code(Reason::HostNetwork));
    }
    rule(RuleResult::Passes, "the pod has a network of its own")
}

fn sidecar_rule(sidecars: &[sidecars::Sidecar]) -> Rule {
    let mut recognised = sidecars.iter().filter(|sidecar| sidecar.recognised).peekable();
    let Some(first) = recognised.peek() else {
        let text = "no container has the name or image of a sidecar";
        return Rule::new("sidecar", RuleResult::Passes, text);
    };
    let text = format!("container {} is a sidecar already", first.container);
    let rule = Rule::new("sidecar", RuleResult::Skips, text).because(code(Reason::SidecarExists));
    recognised.fold(rule, |rule, sidecar| {
        rule.reading(Layer::Pod, &format!("container {}", sidecar.container), Some(&sidecar.image))
    })
}

/// As [`decide::disabled_by_annotation`] says.
fn annotation_rule(overrides: &Overrides<'_>) -> Rule {
    let (namespace, pod) =
        (overrides.of_namespace(Annotation::Inject), overrides.of_pod(Annotation::Inject));
    let disabled = decide::disabled_by_annotation(overrides);
    let text = match disabled {
        None if decide::annotation_at(overrides) == "namespace" => {
            "the namespace enables injection, and the pod does not disable it"
        }
        None => "the pod enables injection",
        Some(Reason::InvalidNamespaceAnnotation) => {
            "the namespace's value is none of enabled, ingress and disabled: no pod of the \
             namespace is injected, whatever it says itself"
        }
        Some(Reason::InvalidPodAnnotation) => {
            "the pod's value is none of enabled, ingress and disabled"
        }
        Some(Reason::DisabledByPod) => "the namespace enables injection, but the pod disables it",
        Some(_) => "neither the namespace nor the pod enables injection",
    };
    let rule = Rule::new("annotation", RuleResult::Injects, text)
        .reading(Layer::Namespace, Annotation::Inject.key(), namespace)
        .reading(Layer::Pod, Annotation::Inject.key(), pod);
    match disabled {
        Some(reason) => rule.because(code(reason)),
        None => rule,
    }
}

fn template_rule(outcome: &Outcome<'_>) -> Rule {
    match &outcome.denial {
        Some(denial) => Rule::new("template", RuleResult::Denies, denial.clone()),
        None => Rule::new("template", RuleResult::Passes, "the sidecar is rendered"),
    }
}

impl Snapshot {
    fn token_rule(&self, spec: &Spec<'_>) -> Rule {
        if !self.decider.needs_mounted_token() {
            let text = "the sidecar mounts a token of its own";
            return Rule::new("token", RuleResult::Passes, text).reading(
                Layer::Configuration,
                "identity.serviceAccountTokenProjection",
                Some(true),
            );
        }
        let mount = spec.service_account_mount().map(|mount| mount.mount_path.to_string());
        let rule = |result, text: &str| {
            Rule::new("token", result, text)
                .reading(
                    Layer::Configuration,
                    "identity.serviceAccountTokenProjection",
                    Some(false),
                )
                .reading(Layer::Pod, AUTOMOUNT, spec.automount_service_account_token)
                .reading(Layer::Pod, "spec.containers[0].volumeMounts", mount.as_ref())
        };
        if self.decider.lacks_token(spec) {
            let text = "the first container does not mount the service account's token, which Linkerd's \
                 proxy would use";
            return rule(RuleResult::Skips, text).because(code(Reason::NoServiceAccountToken));
        }
        rule(RuleResult::Passes, "the token of the service account is mounted")
    }
}

/// The code of a reason.
fn code(reason: Reason) -> &'static str {
    ALL[reason as usize].code
}

#[cfg(test)]
mod tests;
