//! A template that is read: everything in it compiles, and fits its place.

use std::{cmp::Reverse, collections::BTreeMap};

use injectd_cel::TypeDef;

use crate::{
    Problem,
    expression::Expression,
    object::{
        self, Action, ContainerKind, Existing, FieldValidation, Identity, OnConflict, Position,
        Spec,
    },
    parameters::Form,
    structure::Structure,
};

/// Lists of containers in a Pod's `spec`.
pub(crate) const CONTAINER_LISTS: [&str; 2] = ["initContainers", "containers"];

/// A template.
#[derive(Debug)]
pub struct Template {
    /// Its name.
    pub identity: Identity,
    /// Its `spec` as it is written, without what is compiled.
    pub spec: Spec,
    /// The first ten hex digits of the SHA-256 of its `spec`.
    pub hash: String,
    /// What the hash is of: `spec` with its defaults, in JSON with sorted keys, without what says how it is
    /// rolled out.
    pub revision: Box<str>,
    /// How the values of its parameters are read.
    pub forms: Box<[Form]>,
    /// The type of `params`: an object with the parameters.
    pub params: TypeDef,
    /// Conditions of `match`, with their names.
    pub conditions: Box<[Condition]>,
    /// Variables, in their order.
    pub variables: Box<[Variable]>,
    /// Validations, in their order.
    pub validations: Box<[Validation]>,
    /// Steps, in their order.
    pub steps: Box<[Step]>,
    /// Whether an expression asks for free ports.
    pub asks_for_ports: bool,
    /// What is not wrong, and should be looked at.
    pub warnings: Vec<Problem>,
}

/// A condition of `match`.
#[derive(Debug)]
pub struct Condition {
    /// Its name.
    pub name: String,
    /// Whether it holds.
    pub expression: Expression,
}

/// A value with a name.
#[derive(Debug)]
pub struct Variable {
    /// Its name: `variables.NAME`.
    pub name: String,
    /// Its value.
    pub value: Structure,
}

/// A condition that denies, skips or warns if it does not hold.
#[derive(Debug)]
pub struct Validation {
    /// Whether the pod is in order.
    pub expression: Expression,
    /// What happens if it is not.
    pub action: Action,
    /// Why, for a person.
    pub message: Message,
}

/// The message of a validation.
#[derive(Debug)]
pub enum Message {
    /// It is always this.
    Constant(String),
    /// It is the value of an expression.
    Expression(Box<Expression>),
}

impl Message {
    /// The message that is written, else one that names the expression.
    pub(crate) fn of(written: &object::Validation) -> Self {
        let default = || format!("{} does not hold", written.expression.trim());
        Self::Constant(written.message.clone().unwrap_or_else(default))
    }
}

/// A part of what a template adds.
#[derive(Debug)]
pub struct Step {
    /// The path of its field, such as `spec.steps[0]`.
    pub field: String,
    /// Its name.
    pub name: String,
    /// Whether it is taken.
    pub when: Option<Box<Expression>>,
    /// It is taken once for each item.
    pub for_each: Option<Box<ForEach>>,
    /// A piece of a Pod.
    pub overlay: Option<Structure>,
    /// What happens to what the overlay meets.
    pub existing: Option<Existing>,
    /// What a container or volume of the same name does.
    pub on_conflict: Option<OnConflict>,
    /// Where init containers are put.
    pub init_containers: Place,
    /// Where containers are put.
    pub containers: Place,
    /// Changes of containers of the pod.
    pub rules: Box<[Rule]>,
}

/// A step is taken once for each item.
#[derive(Debug)]
pub struct ForEach {
    /// A list or a map.
    pub items: Expression,
    /// Values with names, for each item.
    pub variables: Box<[Variable]>,
}

/// A place in a list of containers.
#[derive(Debug, Default)]
pub struct Place {
    /// Where.
    pub position: Position,
    /// The container that `Before` and `After` name.
    pub name: Option<Structure>,
    /// Where, if there is no container of that name.
    pub otherwise: Position,
}

/// Changes of containers of the pod.
#[derive(Debug)]
pub struct Rule {
    /// The path of its field, such as `spec.steps[0].containers[1]`.
    pub field: String,
    /// Kinds of containers.
    pub kinds: Vec<ContainerKind>,
    /// Which of them; `None`: all.
    pub select: Option<Select>,
    /// A piece of a Container.
    pub overlay: Structure,
    /// What happens to what the overlay meets.
    pub existing: Option<Existing>,
    /// Exceptions for variables, by name.
    pub existing_env: BTreeMap<String, Existing>,
    /// Whether variables are put in front.
    pub env_first: bool,
}

/// Which containers a rule is for.
#[derive(Debug)]
pub enum Select {
    /// For which this is true.
    Expression(Box<Expression>),
    /// With these names: a list of texts.
    Names(Structure),
}

impl Template {
    /// Whether a field that the table of Kubernetes does not have is an error.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.spec.field_validation == FieldValidation::Strict
    }

    /// The constant names of containers in its overlays.
    pub fn container_names(&self) -> impl Iterator<Item = &str> {
        let overlays = self.steps.iter().filter_map(|step| step.overlay.as_ref());
        let specs = overlays.filter_map(|overlay| overlay.field("spec"));
        let lists =
            specs.flat_map(|spec| CONTAINER_LISTS.into_iter().filter_map(|list| spec.field(list)));
        let containers = lists.flat_map(|list| match list {
            Structure::List(containers) => &**containers,
            _ => &[],
        });
        containers.filter_map(|container| match container.field("name") {
            Some(Structure::Constant(name)) => name.as_str(),
            _ => None,
        })
    }

    /// Calls a function for each expression in it.
    pub fn each_expression<'t>(&'t self, then: &mut impl FnMut(&'t Expression)) {
        self.each_expression_before_steps(then);
        self.steps.iter().for_each(|step| step.each_expression(then));
    }

    /// Templates are applied in the order of these: cluster templates first, then by priority and name.
    #[must_use]
    pub fn order(&self) -> impl Ord + use<> {
        (self.identity.namespace.is_some(), Reverse(self.spec.priority), self.key())
    }

    /// The key of the template in the mark: its name, behind its namespace if it has one.
    #[must_use]
    pub fn key(&self) -> String {
        match &self.identity.namespace {
            None => self.identity.name.clone(),
            Some(_) => self.identity.to_string(),
        }
    }

    /// Calls a function for each expression of conditions, variables and validations.
    pub(crate) fn each_expression_before_steps<'t>(
        &'t self,
        then: &mut impl FnMut(&'t Expression),
    ) {
        self.conditions.iter().for_each(|condition| then(&condition.expression));
        self.variables.iter().for_each(|variable| variable.value.each_expression(then));
        for validation in &self.validations {
            then(&validation.expression);
            if let Message::Expression(message) = &validation.message {
                then(message);
            }
        }
    }
}

impl Step {
    /// Calls a function for each expression of the step and its rules.
    pub(crate) fn each_expression<'s>(&'s self, then: &mut impl FnMut(&'s Expression)) {
        if let Some(each) = &self.for_each {
            then(&each.items);
            each.variables.iter().for_each(|variable| variable.value.each_expression(then));
        }
        self.when.iter().for_each(|when| then(when));
        self.overlay.iter().for_each(|overlay| overlay.each_expression(then));
        for place in [&self.init_containers, &self.containers] {
            place.name.iter().for_each(|name| name.each_expression(then));
        }
        self.rules.iter().for_each(|rule| rule.each_expression(then));
    }
}

impl Rule {
    /// Calls a function for each expression of the rule.
    pub(crate) fn each_expression<'r>(&'r self, then: &mut impl FnMut(&'r Expression)) {
        match &self.select {
            Some(Select::Expression(expression)) => then(expression),
            Some(Select::Names(names)) => names.each_expression(then),
            None => {}
        }
        self.overlay.each_expression(then);
    }
}
