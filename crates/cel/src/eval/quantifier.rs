//! The macros `exists` and `all` without the operators that they are made of.
//!
//! What is found, and what it costs, is what [`super::fold`] has for the operators.

use super::{Evaluator, Fault, NODE_BYTES, Res, Slotted, Val, chain::Cost};
use crate::{plan::Quantifier, value::List};

impl<'d> Evaluator<'d> {
    /// A step; `Ok(false)` if it is not done, because the loop ends before it. `None` if an earlier step has
    /// failed, or the costs are not left.
    pub(super) fn quantify(&mut self, of: Quantifier, outside: usize) -> Option<Res<bool>> {
        let (so_far, is_first) = match self.scope[outside].value {
            Slotted::Lazy { .. } => (!of.ends_at, true),
            Slotted::Value(Ok(Val::Bool(so_far))) => (so_far, false),
            Slotted::Value(_) => return None,
        };
        let is_through = so_far == of.ends_at;
        let Cost { units, bytes } = of.cost(is_first, is_through);
        if !self.work.pay(units, bytes) {
            return None;
        }
        if is_through {
            return Some(Ok(false));
        }
        let value = match self.eval(of.question) {
            Ok(Val::Bool(value)) => Ok(Val::Bool(value)),
            Ok(_) => Fault::overload(),
            Err(fault) => Err(fault),
        };
        Some(self.so_far(outside, value).map(|()| true))
    }

    /// Takes the steps of a loop that only compares a field of each element with a literal, up to the first
    /// element that has anything unusual. Gives their number; `None` if no step is left.
    pub(super) fn compare_each(
        &mut self,
        of: Quantifier,
        outside: usize,
        list: &List<'d>,
    ) -> Option<usize> {
        let (Some(comparison), Some(elements)) = (of.comparison, list.data()) else {
            return Some(0);
        };
        let (mut taken, mut so_far) = (0, !of.ends_at);
        let mut is_left = false;
        for element in elements {
            let is_through = so_far == of.ends_at;
            let mut cost = of.cost(taken == 0, is_through);
            let found = if is_through {
                Some(so_far)
            } else {
                self.equals_literal(comparison, element, &mut cost)
            };
            let Some(found) = found.filter(|_| self.work.pay(cost.units, cost.bytes)) else {
                is_left = true;
                break;
            };
            if is_through {
                break;
            }
            so_far = found;
            taken += 1;
        }
        if taken > 0 {
            self.scope[outside].value = Slotted::Value(Ok(Val::Bool(so_far)));
        }
        is_left.then_some(taken)
    }
}

impl Quantifier {
    /// What a step costs besides its question.
    fn cost(self, is_first: bool, is_through: bool) -> Cost {
        // The start is a node, which is evaluated when it is needed.
        let start_nodes = usize::from(is_first);
        // `@not_strictly_false(!@result)`, where `all` has no `!`, and the variable counts twice.
        let (condition_nodes, condition_units) = if self.ends_at { (4, 3) } else { (3, 2) };
        // `@result || …`.
        let (step_nodes, step_units) = if is_through { (0, 0) } else { (3, 1) };
        let nodes = start_nodes + condition_nodes + step_nodes;
        Cost { units: condition_units + step_units, bytes: nodes * NODE_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Data, Datum, Program, plan::Plan};

    /// The value of an expression, and the work for it, with comparisons as they are planned or with
    /// none.
    fn found(expression: &str, list: &Value, is_planned: bool) -> String {
        let mut program = Program::compile(expression).expect("an expression");
        for plan in &mut program.plans {
            if let Plan::Quantifier(quantifier) = plan {
                assert!(quantifier.comparison.is_some(), "{expression}");
                quantifier.comparison = quantifier.comparison.filter(|_| is_planned);
            }
        }
        let (object, null) = (json!({ "metadata": { "list": list } }), Datum::Null);
        let object = Datum::from(&object);
        let data = Data { object, old_object: null, request: null, namespace_object: null };
        let mut evaluator = program.evaluator(&data);
        let value = evaluator.eval(program.root);
        format!("{value:?} {:?}", evaluator.work)
    }

    #[test]
    fn a_comparison_of_each_element_is_as_that_of_the_operators() {
        let elements = [
            json!({"name": "x"}),
            json!({"name": "a longer name that has no equal"}),
            json!({"name": "ünïcödë is longer than its characters"}),
            json!({"name": ""}),
            json!({"name": 1}),
            json!({"name": true}),
            json!({"name": null}),
            json!({"name": ["x"]}),
            json!({}),
            json!("x"),
            json!(null),
        ];
        let mut lists = vec![json!([])];
        for one in &elements {
            lists.push(json!([one]));
            for other in &elements {
                lists.push(json!([one, other]));
                lists.push(json!([elements[1], one, other, elements[0]]));
            }
        }
        let literals =
            ["'x'", "''", "'a longer name that has no equal'", "1", "1.5", "true", "null"];
        let mut questions = Vec::new();
        for literal in literals {
            for operator in ["==", "!="] {
                questions.push(format!("c.name {operator} {literal}"));
                questions.push(format!("{literal} {operator} c['name']"));
            }
        }
        for question in &questions {
            for quantifier in ["exists", "all"] {
                let expression = format!("dyn(object.metadata.list).{quantifier}(c, {question})");
                for list in &lists {
                    let planned = found(&expression, list, true);
                    assert_eq!(planned, found(&expression, list, false), "{expression} {list}");
                }
            }
        }
    }
}
