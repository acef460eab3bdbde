//! The ways of a pod through the API server: a namespace for each, by how its pods are injected.

use injectd_harness::objects::{disabled, enabled};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Nothing,
    /// Between two measurements of the same there is noise alone.
    Again,
    Injectd,
    Policy,
    /// injectd, with a sidecar template.
    Template,
    /// A policy with the same effect.
    TemplatePolicy,
    /// Only the call.
    Allowed,
    /// Only the sidecar.
    Complete,
}

pub(super) const COMPARED: [Way; 6] =
    [Way::Nothing, Way::Policy, Way::Injectd, Way::TemplatePolicy, Way::Template, Way::Again];
pub(super) const ALL: [Way; 8] = [
    Way::Nothing,
    Way::Policy,
    Way::Injectd,
    Way::TemplatePolicy,
    Way::Template,
    Way::Again,
    Way::Allowed,
    Way::Complete,
];

impl Way {
    pub(super) fn namespace(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Again => "nothing-again",
            Self::Injectd => "injectd",
            Self::Policy => "policy",
            Self::Template => "template",
            Self::TemplatePolicy => "template-policy",
            Self::Allowed => "allowed",
            Self::Complete => "complete",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Nothing => "no sidecar",
            Self::Again => "no sidecar, again",
            Self::Injectd => "injectd",
            Self::Policy => "policy",
            Self::Template => "injectd, sidecar template",
            Self::TemplatePolicy => "policy, as the template",
            Self::Allowed => "injectd, only allows",
            Self::Complete => "sidecar in the request",
        }
    }

    /// The labels of the namespace, which the webhook and the policy select.
    pub(super) fn labels(self) -> Value {
        match self {
            Self::Injectd | Self::Allowed => json!({"sidecar": "webhook"}),
            Self::Policy => json!({"sidecar": "policy"}),
            Self::Template => json!({"sidecar": "template"}),
            Self::TemplatePolicy => json!({"sidecar": "template-policy"}),
            _ => json!({}),
        }
    }

    /// The annotations of the namespace.
    pub(super) fn annotations(self) -> Value {
        match self {
            Self::Injectd | Self::Policy => enabled(),
            Self::Allowed => disabled(),
            _ => json!({}),
        }
    }
}
