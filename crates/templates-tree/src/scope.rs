//! What the expressions of a template see.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use injectd_cel::{Datum, Fields, OWN_CONTAINERS, TAKEN_PORTS, Typed, Variables};
use injectd_core::lookups::Patience;
use injectd_templates::{
    expression::Expression,
    limits::{MAX_BYTES_OF_TEMPLATE, MAX_COST, MAX_COST_OF_TEMPLATE},
};
use serde_json::Value;

use crate::{owner::Owners, ports::Ports, trace::Trace};

/// An error of evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The path of the field.
    pub(crate) field: String,
    /// What went wrong.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn of(expression: &Expression, text: impl Into<String>) -> Self {
        Self { field: expression.field.clone(), text: text.into() }
    }
}

/// What a template has used up for a pod.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    cost: AtomicU64,
    bytes: AtomicUsize,
}

impl Spent {
    fn cost(&self, units: u64) -> Result<(), String> {
        if units > MAX_COST {
            return Err(format!("the expression costs more than {MAX_COST} units"));
        }
        // Relaxed: only the sum counts, and no other data depends on it.
        let before = self.cost.fetch_add(units, Ordering::Relaxed);
        if before.saturating_add(units) > MAX_COST_OF_TEMPLATE {
            let text = "the expressions of the template cost more than";
            return Err(format!("{text} {MAX_COST_OF_TEMPLATE} units for this pod"));
        }
        Ok(())
    }

    pub(crate) fn bytes(&self, bytes: usize) -> Result<(), String> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > MAX_BYTES_OF_TEMPLATE {
            let text = "the values of the template are longer than";
            return Err(format!("{text} {MAX_BYTES_OF_TEMPLATE} bytes for this pod"));
        }
        Ok(())
    }

    /// Units that were spent so far.
    pub(crate) fn units(&self) -> u64 {
        self.cost.load(Ordering::Relaxed)
    }
}

/// What all templates see of a request.
#[derive(Debug)]
pub(crate) struct Base<'r> {
    /// The pod as it came, with its namespace.
    pub(crate) object: &'r Value,
    pub(crate) namespace: &'r Value,
    pub(crate) service_account: Option<Datum<'r>>,
    pub(crate) controller: Option<Datum<'r>>,
    pub(crate) owners: Owners<'r>,
    /// Who wants to know what is done.
    pub(crate) trace: Option<&'r Trace>,
    /// How long the caller waits; `None`: until the end.
    pub(crate) patience: Option<&'r dyn Patience>,
}

impl Base<'_> {
    /// Whether the caller does not wait any longer: then nobody reads what becomes of the pod.
    ///
    /// # Errors
    /// That it is so, at this field.
    pub(crate) fn must_be_awaited(&self, field: &str) -> Result<(), Failure> {
        if !self.patience.is_some_and(Patience::is_over) {
            return Ok(());
        }
        let text = "the caller does not wait for the result".to_owned();
        Err(Failure { field: field.to_owned(), text })
    }
}

/// What the expressions of a template see.
#[derive(Debug, Clone)]
pub(crate) struct Scope<'s> {
    pub(crate) base: &'s Base<'s>,
    pub(crate) params: Option<&'s Typed>,
    pub(crate) variables: Option<&'s dyn Fields>,
    /// `item`, `key`, `index`, `container`; the last one of a name counts.
    pub(crate) locals: Vec<(&'static str, Datum<'s>)>,
    /// What `freePorts` knows of the pod.
    pub(crate) ports: &'s Ports,
    pub(crate) spent: &'s Spent,
    /// Whether a field that the table of Kubernetes does not have is an error.
    pub(crate) is_strict: bool,
}

impl Variables for Scope<'_> {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        if let Some((_, value)) = self.locals.iter().rev().find(|(known, _)| *known == name) {
            return Some(*value);
        }
        let optional = |value: &'_ Option<Datum<'_>>| value.is_none();
        match name {
            "object" => Some(self.base.object.into()),
            "namespaceObject" => Some(self.base.namespace.into()),
            "serviceAccount" if optional(&self.base.service_account) => Some(Datum::Absent),
            "serviceAccount" => self.base.service_account.as_ref().map(Datum::Present),
            "controller" if optional(&self.base.controller) => Some(Datum::Absent),
            "controller" => self.base.controller.as_ref().map(Datum::Present),
            "owner" => Some(self.base.owners.root().into()),
            "owners" => Some(self.base.owners.all().into()),
            "params" => self.params.map(Typed::datum),
            "variables" => self.variables.map(Datum::Map),
            OWN_CONTAINERS => Some(self.ports.own.datum()),
            TAKEN_PORTS => Some(self.ports.taken.datum()),
            _ => None,
        }
    }
}

impl<'s> Scope<'s> {
    /// The value of an expression; `None` for an optional without one.
    pub(crate) fn value(&self, expression: &Expression) -> Result<Option<Value>, Failure> {
        self.base.must_be_awaited(&expression.field)?;
        let found = expression.program.value(self);
        self.spent.cost(found.cost).map_err(|text| Failure::of(expression, text))?;
        found.value.map_err(|text| Failure::of(expression, text))
    }

    /// Whether a condition holds.
    pub(crate) fn holds(&self, expression: &Expression) -> Result<bool, Failure> {
        match self.value(expression)? {
            Some(Value::Bool(value)) => Ok(value),
            _ => Err(Failure::of(expression, "expected true or false, found another value")),
        }
    }

    /// The scope with a name more.
    pub(crate) fn with(&self, name: &'static str, value: Datum<'s>) -> Self {
        let mut scope = self.clone();
        scope.locals.push((name, value));
        scope
    }
}
