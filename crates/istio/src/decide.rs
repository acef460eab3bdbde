//! Decides whether a pod is injected (`pkg/kube/inject/inject.go`, `injectRequired`).

use injectd_gocompat::text::quote;
use serde_json::{Map, Value};

use crate::{
    config::{Config, Policy},
    fields::{annotation, label, labels},
    release::{Delta, Release},
    selector::Selector,
};

/// The label and the annotation that enable or disable the injection of a pod. The label wins.
///
/// From 1.27 on exactly `true` or `false`; before, `y`, `yes`, `true` and `on` in any case enable it, and
/// other texts disable it. An empty value counts as absent.
pub const INJECT_ANNOTATION: &str = "sidecar.istio.io/inject";

/// The namespaces whose pods are never injected.
pub const SYSTEM_NAMESPACES: [&str; 4] =
    ["kube-system", "kube-public", "kube-node-lease", "local-path-storage"];

/// Defines the reasons: name, code and text of each.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal: $text:literal;)*) => {
        /// Why a pod is injected, or is not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code, for metric labels.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The text, for events and the log.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The label enables injection.
    EnabledByLabel = "injection_enabled_by_label":
        r#"pod has a label "sidecar.istio.io/inject" that enables injection"#;
    /// The annotation enables injection.
    EnabledByAnnotation = "injection_enabled_by_annotation":
        r#"pod has an annotation "sidecar.istio.io/inject" that enables injection"#;
    /// An `alwaysInjectSelector` matches.
    AlwaysInjectSelector = "always_inject_selector":
        "an alwaysInjectSelector of the configuration matches the pod";
    /// The policy is `enabled`, and nothing else decides.
    PolicyEnabled = "policy_enabled": "the policy of the configuration is enabled";
    /// The pod uses the network of its node.
    HostNetwork = "host_network_enabled": "hostNetwork is enabled";
    /// The namespace is one of [`SYSTEM_NAMESPACES`].
    SystemNamespace = "system_namespace": "pods of this namespace are never injected";
    /// The label disables injection.
    DisabledByLabel = "injection_disabled_by_label":
        r#"pod has a label "sidecar.istio.io/inject" that disables injection"#;
    /// The annotation disables injection.
    DisabledByAnnotation = "injection_disabled_by_annotation":
        r#"pod has an annotation "sidecar.istio.io/inject" that disables injection"#;
    /// A `neverInjectSelector` matches.
    NeverInjectSelector = "never_inject_selector":
        "a neverInjectSelector of the configuration matches the pod";
    /// The policy is `disabled`, and nothing else decides.
    PolicyDisabled = "policy_disabled": "the policy of the configuration is disabled";
    /// The policy is neither `enabled` nor `disabled`.
    PolicyInvalid = "policy_invalid":
        r#"the policy of the configuration is neither "enabled" nor "disabled""#;
}

impl Reason {
    /// Whether it is a reason to inject.
    #[must_use]
    pub const fn injects(self) -> bool {
        matches!(
            self,
            Self::EnabledByLabel
                | Self::EnabledByAnnotation
                | Self::AlwaysInjectSelector
                | Self::PolicyEnabled
        )
    }
}

/// Whether a pod is injected, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The rule that decided.
    pub reason: Reason,
    /// What is wrong with the pod or the configuration, in Istio's words.
    pub warnings: Vec<String>,
}

impl Decision {
    fn new(reason: Reason) -> Self {
        Self { reason, warnings: Vec::new() }
    }

    /// Whether the pod is injected.
    #[must_use]
    pub fn injects(&self) -> bool {
        self.reason.injects()
    }
}

/// Decides on a pod as it was received. `namespace` is the pod's, or the request's if the pod names
/// none.
#[must_use]
pub fn decide(config: &Config, release: Release, pod: &Value, namespace: &str) -> Decision {
    // The rules of a sidecar for iptables would redirect the traffic of the node.
    if uses_host_network(pod) {
        return Decision::new(Reason::HostNetwork);
    }
    if SYSTEM_NAMESPACES.contains(&namespace) {
        return Decision::new(Reason::SystemNamespace);
    }
    let mut warnings = Vec::new();
    let asked =
        asked(release, pod, &mut warnings).or_else(|| selected(config, labels(pod), &mut warnings));
    let reason = match (&config.policy, asked) {
        (Policy::Other(text), _) => {
            warnings.push(format!(
                "Illegal value for autoInject:{text}, must be one of [disabled,enabled]. \
                 Auto injection disabled!"
            ));
            Reason::PolicyInvalid
        }
        (_, Some(reason)) => reason,
        (Policy::Enabled, None) => Reason::PolicyEnabled,
        (Policy::Disabled, None) => Reason::PolicyDisabled,
    };
    Decision { reason, warnings }
}

/// Whether the pod uses the network of its node.
pub(crate) fn uses_host_network(pod: &Value) -> bool {
    pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true))
}

/// What the pod's label or annotation asks for; `None` leaves it to selectors and policy.
pub(crate) fn asked(release: Release, pod: &Value, warnings: &mut Vec<String>) -> Option<Reason> {
    let (value, yes, no) = match label(pod, INJECT_ANNOTATION) {
        Some(value) => (value, Reason::EnabledByLabel, Reason::DisabledByLabel),
        None => (
            annotation(pod, INJECT_ANNOTATION)?,
            Reason::EnabledByAnnotation,
            Reason::DisabledByAnnotation,
        ),
    };
    if !release.has(Delta::StrictInject) {
        return match &*value.to_lowercase() {
            "y" | "yes" | "true" | "on" => Some(yes),
            "" => None,
            _ => Some(no),
        };
    }
    match value {
        "true" => Some(yes),
        "false" => Some(no),
        "" => None,
        _ => {
            warnings.push(format!(
                "Invalid value for {INJECT_ANNOTATION}: {}. Only 'true' and 'false' are accepted. \
                 Falling back to default injection policy.",
                quote(value)
            ));
            None
        }
    }
}

/// What the first selector that matches asks for.
pub(crate) fn selected(
    config: &Config,
    labels: Option<&Map<String, Value>>,
    warnings: &mut Vec<String>,
) -> Option<Reason> {
    let mut any = |list: &str, selectors: &[Selector]| {
        selectors.iter().any(|selector| match selector.matches(list, labels) {
            Ok(matches) => matches,
            Err(warning) => {
                warnings.push(warning);
                false
            }
        })
    };
    // Istio looks at it first, so it wins over the other list.
    if any("NeverInjectSelector", &config.never_inject) {
        Some(Reason::NeverInjectSelector)
    } else if any("AlwaysInjectSelector", &config.always_inject) {
        Some(Reason::AlwaysInjectSelector)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
