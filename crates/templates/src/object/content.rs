//! What a template adds to a pod, and on which conditions, as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Action, ContainerKind, Existing, OnConflict, Position};

/// The part of `spec` that is compiled when the template is read. It is not kept: the compiled form has all
/// of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Content {
    /// Which pods the template is for.
    pub r#match: Conditions,
    /// Values with names; each may use those before it.
    pub variables: Vec<Variable>,
    /// Conditions that deny, skip or warn, in their order.
    pub validations: Vec<Validation>,
    /// What is added to the pod, in this order.
    pub steps: Vec<Step>,
}

/// The part of `match` that is compiled.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Expressions that must be true.
    pub conditions: Vec<Condition>,
}

/// A condition with a name.
#[derive(Debug, Clone, Deserialize)]
pub struct Condition {
    /// Its name, for messages.
    pub name: String,
    /// CEL that gives a boolean.
    pub expression: String,
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
