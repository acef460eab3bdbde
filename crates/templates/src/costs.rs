//! What the expressions of a template cost for a large pod, in units of cel-go.
//!
//! The pod is generated, and so are the values that it sets. Not for the costs of a real pod: they are counted
//! when it is injected.

use injectd_cel::{Datum, Environment, Fields, Sample, Shape, TypeDef, Typed, Variables};
use serde_json::{Map, Value};

use crate::{
    Problem, Step, Template,
    expression::Expression,
    limits::{MAX_COST, MAX_COST_OF_TEMPLATE, MAX_ITEMS, WARNED_COST, WARNED_COST_OF_TEMPLATE},
    structure::{Structure, TextPart},
    template::{ForEach, Message, Variable},
};

/// The pod that costs are computed for.
const POD: Shape = Shape::LARGE;

/// What the expressions of a template cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Costs {
    /// Each expression, in the order in which they are evaluated.
    pub expressions: Vec<Cost>,
    /// The sum of all, each as often as it is evaluated.
    pub total: u64,
}

/// What an expression costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The path of its field.
    pub field: String,
    /// Line and column of the expression in the text of the field, both from 1.
    pub place: (usize, usize),
    /// The expression.
    pub text: String,
    /// Units of one evaluation.
    pub units: u64,
    /// How often it is evaluated: for each container, and for each item of `forEach`.
    pub times: u64,
}

impl Costs {
    /// The costs of a template for a pod of 20 containers with 100 variables each.
    #[must_use]
    pub fn of(template: &Template) -> Self {
        let mut meter = Meter::new(template);
        for condition in &template.conditions {
            meter.add(&condition.expression);
        }
        meter.variables(&template.variables);
        for validation in &template.validations {
            meter.add(&validation.expression);
            if let Message::Expression(message) = &validation.message {
                meter.add(message);
            }
        }
        for step in &template.steps {
            meter.step(step);
        }
        let expressions = meter.found;
        let all = expressions.iter().map(|cost| cost.units.saturating_mul(cost.times));
        // A cost in loops may be greater than any number: the greatest one is over each limit as
        // well.
        let total = all.fold(0, u64::saturating_add);
        Self { expressions, total }
    }

    /// Expressions that cost more than a tenth of what they may, and the template, if all of them do.
    #[must_use]
    pub fn warnings(&self) -> Vec<Problem> {
        let dear = self.expressions.iter().filter(|cost| cost.units > WARNED_COST);
        let mut warnings: Vec<_> = dear.map(Cost::warning).collect();
        if self.total > WARNED_COST_OF_TEMPLATE {
            let text = format!(
                "together, the expressions cost {}",
                above(self.total, MAX_COST_OF_TEMPLATE)
            );
            warnings.push(Problem::new("spec", text));
        }
        warnings
    }
}

impl Cost {
    fn warning(&self) -> Problem {
        let text = format!("the expression costs {}", above(self.units, MAX_COST));
        Problem { field: self.field.clone(), place: Some(self.place), text }
    }
}

fn above(units: u64, limit: u64) -> String {
    let (containers, variables) = (POD.containers, POD.variables);
    let pod = format!("a pod of {containers} containers with {variables} variables each");
    let above = if units > limit {
        format!(
            "more than the limit of {limit}: such a pod is denied, or with failurePolicy Ignore the template is left \
             out"
        )
    } else {
        format!("more than a tenth of the limit of {limit}")
    };
    format!(
        "{units} units for {pod}, {above}: go through each list once, and put what is read twice into a variable"
    )
}

/// Values for the expressions of a template, and what the expressions cost.
struct Meter {
    sample: Sample,
    /// `variables` of the template and of a `forEach`.
    variables: Named,
    /// `item`, `key` and `index` of a `forEach`.
    bound: Named,
    times: u64,
    found: Vec<Cost>,
}

impl Meter {
    fn new(template: &Template) -> Self {
        let environment = Environment::templates()
            .with("params", template.params.clone())
            .with("container", TypeDef::container())
            .with("index", TypeDef::Int);
        let sample = Sample::of(&environment, POD);
        let (variables, bound) = (Named::default(), Named::default());
        Self { sample, variables, bound, times: 1, found: Vec::new() }
    }

    fn add(&mut self, expression: &Expression) {
        self.found.push(Cost {
            field: expression.field.clone(),
            place: expression.at,
            text: expression.text.clone(),
            units: expression.program.cost_for(self),
            times: self.times,
        });
    }

    fn structure(&mut self, of: &Structure) {
        of.each_expression(&mut |expression| self.add(expression));
    }

    fn variables(&mut self, variables: &[Variable]) {
        for variable in variables {
            self.structure(&variable.value);
            let value = self.value(&variable.value);
            let value = Typed::of(&variable.value.type_of(), value.as_ref());
            self.variables.0.push((variable.name.clone(), value));
        }
    }

    fn step(&mut self, step: &Step) {
        let known = self.variables.0.len();
        if let Some(each) = &step.for_each {
            self.items(each);
        }
        if let Some(when) = &step.when {
            self.add(when);
        }
        let names = [&step.init_containers.name, &step.containers.name];
        step.overlay.iter().chain(names.into_iter().flatten()).for_each(|of| self.structure(of));
        let times = self.times;
        self.times = times.saturating_mul(POD.containers as u64);
        for rule in &step.rules {
            rule.each_expression(&mut |expression| self.add(expression));
        }
        self.times = 1;
        self.bound.0.clear();
        self.variables.0.truncate(known);
    }

    /// Binds the first item; what follows is evaluated for each.
    fn items(&mut self, each: &ForEach) {
        self.add(&each.items);
        let (count, key, item) = match self.evaluated(&each.items) {
            Some(Value::Array(items)) => (items.len(), 0.into(), items.into_iter().next()),
            Some(Value::Object(entries)) => {
                let count = entries.len();
                let (key, item) = entries.into_iter().next().unzip();
                (count, key.into(), item)
            }
            _ => (1, Value::Null, None),
        };
        let of = match &each.items.of {
            TypeDef::List(of) | TypeDef::Map(of) => (**of).clone(),
            _ => TypeDef::Dyn,
        };
        self.times = count.clamp(1, MAX_ITEMS) as u64;
        self.bound.0 = vec![
            ("item".to_owned(), Typed::of(&of, item.as_ref())),
            ("key".to_owned(), Typed::of(&TypeDef::Dyn, Some(&key))),
            ("index".to_owned(), Typed::of(&TypeDef::Int, Some(&0.into()))),
        ];
        self.variables(&each.variables);
    }

    fn evaluated(&self, expression: &Expression) -> Option<Value> {
        expression.program.value(self).value.ok().flatten()
    }

    /// About what a structure becomes, for the expressions that read it.
    fn value(&self, of: &Structure) -> Option<Value> {
        Some(match of {
            Structure::Constant(value) => value.to_value(),
            Structure::Slot(slot) => return self.evaluated(&slot.expression),
            Structure::Text(parts) => {
                parts.iter().map(|part| self.text(part)).collect::<String>().into()
            }
            Structure::List(items) => items.iter().filter_map(|item| self.value(item)).collect(),
            Structure::Map(entries) => {
                let base = entries.from.as_ref().and_then(|base| self.evaluated(&base.expression));
                let mut fields = match base {
                    Some(Value::Object(fields)) => fields,
                    _ => Map::new(),
                };
                for (name, field) in &entries.fields {
                    fields.extend(self.value(field).map(|value| (name.to_string(), value)));
                }
                fields.into()
            }
        })
    }

    fn text(&self, part: &TextPart) -> String {
        match part {
            TextPart::Constant(text) => text.to_string(),
            TextPart::Expression(expression) => match self.evaluated(expression) {
                Some(Value::String(text)) => text,
                Some(value) => value.to_string(),
                None => String::new(),
            },
        }
    }
}

impl Variables for Meter {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        match name {
            "variables" => Some(Datum::Map(&self.variables)),
            name => self.bound.get(name).or_else(|| self.sample.get(name)),
        }
    }
}

/// Values with names; the last one of a name counts.
#[derive(Debug, Default)]
struct Named(Vec<(String, Typed)>);

impl Fields for Named {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, name: &str) -> Option<Datum<'_>> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.datum())
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_> {
        Box::new(self.0.iter().map(|(name, value)| (name.as_str(), value.datum())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{SECRET_AGENT, read};

    fn template(variables: &str, steps: &str) -> Template {
        read(&format!(
            "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {{name: one}}
spec:
  match: {{namespaceSelector: {{}}}}
  parameters:
  - {{name: items, type: List, default: '', from: [{{podAnnotation: items}}]}}
  variables: {variables}
  steps: {steps}
"
        ))
    }

    fn times(costs: &Costs) -> Vec<(&str, u64)> {
        costs.expressions.iter().map(|cost| (cost.field.as_str(), cost.times)).collect()
    }

    #[test]
    fn all_expressions_of_the_example_have_a_cost() {
        let template = read(SECRET_AGENT);
        let costs = Costs::of(&template);
        let mut expressions = 0;
        template.each_expression_before_steps(&mut |_| expressions += 1);
        template.steps[0].each_expression(&mut |_| expressions += 1);
        assert_eq!(costs.expressions.len(), expressions);
        assert!(costs.expressions.iter().all(|cost| cost.units > 0), "{costs:?}");
        assert!(costs.warnings().is_empty());
    }

    #[test]
    fn what_is_evaluated_for_each_item_and_container_counts_so_often() {
        let steps = "
  - name: tails
    forEach: {items: params.items}
    overlay: {spec: {containers: [{name: 'tail-${index}', image: '${item}'}]}}
    containers:
    - select: {expression: \"container.name != 'x'\"}
      overlay: {env: [{name: A, value: '${item}'}]}
  - name: last
    when: object.spec.?hostNetwork.orValue(false)
    overlay: {spec: {hostIPC: true}}";
        let costs = Costs::of(&template("[]", steps));
        let expected = [
            ("spec.steps[0].forEach.items", 1),
            ("spec.steps[0].overlay.spec.containers[0].name", 16),
            ("spec.steps[0].overlay.spec.containers[0].image", 16),
            ("spec.steps[0].containers[0].select.expression", 320),
            ("spec.steps[0].containers[0].overlay.env[0].value", 320),
            ("spec.steps[1].when", 1),
        ];
        assert_eq!(times(&costs), expected);
        let sum: u64 = costs.expressions.iter().map(|cost| cost.units * cost.times).sum();
        assert_eq!(costs.total, sum);
    }

    #[test]
    fn variables_have_the_values_that_they_become() {
        let of = |variables: &str| {
            let steps =
                "[{name: one, overlay: {metadata: {annotations: {a: '${variables.b.size()}'}}}}]";
            Costs::of(&template(variables, steps)).expressions.pop().expect("a cost").units
        };
        let long = "[{name: a, expression: 'object.spec.containers.map(c, c.name)'}, \
            {name: b, expression: \"variables.a.join('')\"}]";
        assert_eq!(of("[{name: b, value: text}]"), of(long));
        let map =
            "[{name: m, value: {from: {name: x}}}, {name: b, value: 'x-${variables.m.from.name}'}]";
        assert_eq!(of(map), of(long));
    }

    #[test]
    fn what_costs_more_than_a_tenth_is_warned_of() {
        let all = "object.spec.containers.exists(c, c.?env.orValue([]).exists(e, \
            object.spec.containers.exists(d, d.name == e.name)))";
        let one = format!("[{{name: one, when: \"{all}\", overlay: {{spec: {{hostIPC: true}}}}}}]");
        let found = Costs::of(&template("[]", &one)).warnings();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        let [warning] = &*found else { panic!("{found:?}") };
        assert!(
            warning.starts_with("spec.steps[0].when: line 1, column 1: the expression costs "),
            "{warning}"
        );
        assert!(warning.contains("more than a tenth of the limit of 1000000: "), "{warning}");
        let dear = format!(
            "[{{name: one, when: \"[{}].exists(x, x)\", overlay: {{spec: {{hostIPC: true}}}}}}]",
            [all; 4].join(", ")
        );
        let found = Costs::of(&template("[]", &dear)).warnings();
        let warning = found[0].to_string();
        assert!(
            warning.contains(
                "more than the limit of 1000000: such a pod is denied, or with failurePolicy"
            ),
            "{warning}"
        );
        let each = "object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.name == 'x'))";
        let select = [each; 6].join(" || ");
        let rule = format!(
            "[{{name: one, containers: [{{select: {{expression: \"{select}\"}}, overlay: {{tty: true}}}}]}}]"
        );
        let found = Costs::of(&template("[]", &rule)).warnings();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        let [warning] = &*found else { panic!("{found:?}") };
        assert!(warning.starts_with("spec: together, the expressions cost "), "{warning}");
    }
}
