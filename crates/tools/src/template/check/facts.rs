//! What a check says of a template that has no problem: its cost, and whether a policy can have it.

use injectd_templates::{
    Problem, Template, costs::Costs, limits::MAX_COST_OF_TEMPLATE, portability,
};
use serde_json::{Value, json};

use injectd_command::templates::{Placed, Rule, Written};

/// What is known of a template.
#[derive(Debug)]
pub(super) struct Facts {
    costs: Costs,
    /// Why a MutatingAdmissionPolicy cannot have it.
    in_the_way: Vec<Placed>,
}

impl Facts {
    pub(super) fn of(written: &Written, template: &Template) -> Self {
        let placed = |problem: &Problem| written.placed(Rule::Portability, problem);
        let in_the_way = portability::reasons(template).iter().map(placed).collect();
        Self { costs: Costs::of(template), in_the_way }
    }

    /// What is said of costs above a tenth.
    pub(super) fn warnings(&self) -> Vec<Problem> {
        self.costs.warnings()
    }

    /// Lines for a person.
    pub(super) fn lines(&self, file: &str) -> [String; 2] {
        let portable = match self.in_the_way.first() {
            None => "  portable: yes".to_owned(),
            Some(first) => format!("  portable: no: {}", first.line_of(file, "")),
        };
        let total = self.costs.total;
        let cost = format!(
            "  cost: {total} of {MAX_COST_OF_TEMPLATE} units, for a pod of 20 containers with 100 variables each"
        );
        [portable, cost]
    }

    pub(super) fn json(&self) -> Value {
        let expressions = self
            .costs
            .expressions
            .iter()
            .map(|cost| json!({"field": cost.field, "units": cost.units, "times": cost.times}));
        let expressions: Vec<_> = expressions.collect();
        let cost = json!({
            "total": self.costs.total,
            "limit": MAX_COST_OF_TEMPLATE,
            "expressions": expressions,
        });
        json!({"portable": self.in_the_way.is_empty(), "inTheWay": self.in_the_way, "cost": cost})
    }
}
