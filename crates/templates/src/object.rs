//! `SidecarTemplate` and `ClusterSidecarTemplate` (`injectd.dev/v1alpha1`) as they are written.
//!
//! The schema ([`crate::schema`]) decides which objects are read: here, fields have the defaults of the
//! schema, and nothing is checked.

mod parameter;

use std::{collections::BTreeMap, fmt};

use injectd_k8s::selector::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

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

/// `spec` of a template.
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
    /// Values with names; each may use those before it.
    pub variables: Vec<Variable>,
    /// Conditions that deny, skip or warn, in their order.
    pub validations: Vec<Validation>,
    /// What is added to the pod, in this order.
    pub steps: Vec<Step>,
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
    /// Expressions that must be true.
    pub conditions: Vec<Condition>,
    /// Whether pods of the system are matched.
    pub system_pods: SystemPods,
}

/// A condition with a name.
#[derive(Debug, Clone, Deserialize)]
pub struct Condition {
    /// Its name, for messages.
    pub name: String,
    /// CEL that gives a boolean.
    pub expression: String,
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

/// A value with a name: an expression or a structure.
#[derive(Debug, Clone, Deserialize)]
pub struct Variable {
    /// A CEL identifier: `variables.NAME`.
    pub name: String,
    /// CEL.
    pub expression: Option<String>,
    /// A structure with `${…}`.
    pub value: Option<Value>,
}

/// A condition that denies, skips or warns when it is true.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    /// CEL that gives a boolean: true for pods that are in order.
    pub expression: String,
    /// What happens if it is false.
    #[serde(default)]
    pub action: Action,
    /// Why, for a person.
    pub message: Option<String>,
    /// CEL that gives the message.
    pub message_expression: Option<String>,
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

/// A part of what a template adds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Step {
    /// A CEL identifier, for messages.
    pub name: String,
    /// CEL: whether the step is taken.
    pub when: Option<String>,
    /// The step is taken once for each item.
    pub for_each: Option<ForEach>,
    /// A piece of a Pod.
    pub overlay: Option<Value>,
    /// What happens to what the overlay meets in the pod.
    pub existing: Option<Existing>,
    /// Changes of containers of the pod.
    pub containers: Vec<Rule>,
    /// Where containers are put.
    pub placement: Placement,
    /// What a container or volume of the same name in the pod does.
    pub on_conflict: Option<OnConflict>,
}

/// A step is taken once for each item.
#[derive(Debug, Clone, Deserialize)]
pub struct ForEach {
    /// CEL that gives a list or a map.
    pub items: String,
    /// Values with names, for each item.
    #[serde(default)]
    pub variables: Vec<Variable>,
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

/// Changes of containers of the pod.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Kinds of containers.
    #[serde(default = "Rule::kinds")]
    pub kinds: Vec<ContainerKind>,
    /// Which of them; absent: all.
    pub select: Option<Select>,
    /// A piece of a Container.
    pub overlay: Value,
    /// What happens to what the overlay meets in the container.
    pub existing: Option<Existing>,
    /// Exceptions for variables, by name.
    #[serde(default)]
    pub existing_env: BTreeMap<String, Existing>,
    /// Where variables are put.
    #[serde(default)]
    pub placement: RulePlacement,
}

impl Rule {
    fn kinds() -> Vec<ContainerKind> {
        vec![ContainerKind::Container]
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

/// Which containers a rule is for.
#[derive(Debug, Clone, Deserialize)]
pub enum Select {
    /// CEL over `container` and `index` that gives a boolean.
    #[serde(rename = "expression")]
    Expression(String),
    /// Names; each is text with `${…}`, or the list is one `${…}`.
    #[serde(rename = "names")]
    Names(Value),
}

/// Where variables of a rule are put.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct RulePlacement {
    /// First: in front of those of the container.
    pub env: Option<Position>,
}

/// Where containers of a step are put, by list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// Containers of `spec.initContainers`.
    pub init_containers: Option<Place>,
    /// Containers of `spec.containers`.
    pub containers: Option<Place>,
}

/// A place in a list of containers.
#[derive(Debug, Clone, Deserialize)]
pub struct Place {
    /// Where.
    pub position: Position,
    /// The container that `Before` and `After` name; text with `${…}`.
    pub name: Option<String>,
    /// Where, if there is no container of that name.
    #[serde(default)]
    pub otherwise: Position,
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
