//! `SidecarTemplate` and `ClusterSidecarTemplate` (`injectd.dev/v1alpha1`) as they are written.
//!
//! The schema ([`crate::schema`]) decides which objects are read: here, fields have the defaults of the
//! schema, and nothing is checked.

mod content;
mod parameter;

use std::fmt;

use injectd_k8s::selector::LabelSelector;
use serde::Deserialize;

pub use content::{
    Condition, Conditions, Content, ForEach, Place, Placement, Rule, RulePlacement, Select, Step,
    Validation, Variable,
};
pub use parameter::{
    Bounds, Empty, OnInvalid, Parameter, ParameterKeys, ParameterSource, ParameterType, Scalar,
};

/// Where a template is from, for whom it is valid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The namespace of a `SidecarTemplate`; `None` for a `ClusterSidecarTemplate`.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// `spec` of a template, without its [`Content`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Templates with a higher priority are applied first.
    pub priority: i32,
    /// What an error of evaluation does.
    pub failure_policy: FailurePolicy,
    /// What a field that the table of Kubernetes does not know does.
    pub field_validation: FieldValidation,
    /// Which pods the template is for.
    pub r#match: Match,
    /// The label or annotation that switches the template on and off.
    pub enablement: Option<Enablement>,
    /// The prefix of annotations and labels that are parameters.
    pub parameter_keys: Option<ParameterKeys>,
    /// Values that a pod, its namespace or its ServiceAccount may set.
    pub parameters: Vec<Parameter>,
}

/// What an error of evaluation does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum FailurePolicy {
    /// It denies the pod.
    #[default]
    Fail,
    /// The whole template is left out, with a warning.
    Ignore,
}

/// What an unknown field of a Pod does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum FieldValidation {
    /// The template is rejected.
    #[default]
    Strict,
    /// There is a warning.
    Warn,
}

/// Which pods a template is for: all of it must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Match {
    /// Labels of the namespace; not in a `SidecarTemplate`. `{}` selects all.
    pub namespace_selector: Option<LabelSelector>,
    /// Labels of the pod.
    pub pod_selector: Option<LabelSelector>,
    /// Whether pods of the system are matched.
    pub system_pods: SystemPods,
}

/// Pods of `kube-system`, and pods with a system priority class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum SystemPods {
    /// They are not matched.
    #[default]
    Exclude,
    /// They are matched as others.
    Include,
}

/// The label or annotation that switches a template on and off.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enablement {
    /// The key.
    pub key: String,
    /// Where the key is looked up, the first place that has it counts.
    #[serde(default = "Enablement::places")]
    pub r#in: Vec<KeyPlace>,
    /// What a pod without the key is.
    #[serde(default)]
    pub default: Switch,
    /// What the values are.
    #[serde(default)]
    pub values: EnablementValues,
    /// Whether a pod may switch itself off.
    #[serde(default)]
    pub opt_out: OptOut,
}

impl Enablement {
    fn places() -> Vec<KeyPlace> {
        vec![KeyPlace::PodLabel, KeyPlace::NamespaceLabel]
    }
}

/// Where a key is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum KeyPlace {
    /// Labels of the pod.
    PodLabel,
    /// Annotations of the pod.
    PodAnnotation,
    /// Labels of the namespace.
    NamespaceLabel,
    /// Annotations of the namespace.
    NamespaceAnnotation,
}

/// On or off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Switch {
    /// On.
    Enabled,
    /// Off.
    #[default]
    Disabled,
}

/// What the values of the enablement key are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum EnablementValues {
    /// `enabled`, `true`, `disabled`, `false`.
    #[default]
    Switch,
    /// Names of templates, comma-separated.
    Name,
}

/// Whether a pod may switch a template off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum OptOut {
    /// It may.
    #[default]
    Honored,
    /// A pod's `disabled` and `false` do not count.
    Ignored,
}

/// What a validation that does not hold does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Action {
    /// The pod is denied.
    #[default]
    Deny,
    /// The template is left out.
    Skip,
    /// There is a warning.
    Warn,
}

/// What happens to a value of the pod that an overlay would set, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Existing {
    /// The pod's value stays.
    #[default]
    Keep,
    /// The template's value replaces it.
    Replace,
    /// The pod is denied.
    Fail,
}

/// What a container or volume of the same name that differs does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum OnConflict {
    /// The pod is denied.
    #[default]
    Fail,
    /// The step is left out.
    SkipStep,
    /// The template is left out.
    SkipTemplate,
    /// The pod's stays.
    Keep,
    /// The template's stands in its place.
    Replace,
}

impl OnConflict {
    /// What a step's fields mean for a container or a volume: of volumes, `existing` says it if `onConflict`
    /// does not.
    #[must_use]
    pub fn of(written: Option<Self>, existing: Option<Existing>, is_volume: bool) -> Self {
        let of_volumes = match existing {
            Some(Existing::Keep) => Self::Keep,
            Some(Existing::Replace) => Self::Replace,
            Some(Existing::Fail) | None => Self::Fail,
        };
        let default = if is_volume { of_volumes } else { Self::Fail };
        written.unwrap_or(default)
    }
}

/// A kind of container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ContainerKind {
    /// A container of `spec.containers`.
    Container,
    /// An init container with `restartPolicy: Always`.
    Sidecar,
    /// Any other init container.
    InitContainer,
    /// A container that another template adds to the same pod in the same call.
    Added,
}

/// A position in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Position {
    /// At the beginning.
    First,
    /// At the end.
    #[default]
    Last,
    /// Before the container of a name.
    Before,
    /// Behind the container of a name.
    After,
}
