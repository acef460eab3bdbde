//! Parameters without `pattern` that become a part of a text which a program reads: a command line, or a value
//! in JSON. injectd does not know the language of such a text, so that it quotes nothing.

use std::collections::HashSet;

use injectd_cel::{Program, reads::Path};

use crate::{
    Problem, Template,
    expression::Expression,
    object::{Bounds, Parameter, ParameterType, Scalar},
    spot::{Part, Spot, Variables},
    structure::{Structure, TextPart},
};

/// Fields of containers whose texts a program reads.
const READ: [&str; 2] = ["command", "args"];

/// The places where such a parameter is joined to text.
pub(super) fn problems(template: &Template) -> Vec<Problem> {
    let mut found = Vec::new();
    for step in 0..template.steps.len() {
        let mut finder = Finder { variables: Variables { template, step }, seen: HashSet::new() };
        let overlay = Spot::overlay(template, step);
        let rules = Spot::rules(template, step).map(|(_, overlay)| overlay);
        for spot in overlay.into_iter().chain(rules) {
            finder.commands(&spot, &mut found);
        }
        finder.json(&mut found);
    }
    found
}

struct Finder<'t> {
    variables: Variables<'t>,
    /// Places that were looked at: many may name one variable.
    seen: HashSet<String>,
}

impl<'t> Finder<'t> {
    /// Texts of commands and arguments.
    fn commands(&mut self, spot: &Spot<'t>, found: &mut Vec<Problem>) {
        if !self.seen.insert(spot.field().to_owned()) {
            return;
        }
        for (name, field) in spot.fields() {
            let (items, open) = spot.list(name);
            if READ.contains(&name) {
                for spot in items.iter().chain(&open) {
                    let part = spot.part();
                    found.extend(part.into_iter().flat_map(|part| self.part(part, name)));
                }
                continue;
            }
            self.commands(&field, found);
            for item in &items {
                self.commands(item, found);
            }
        }
    }

    /// Texts below `toJson`: in the expression itself, and in the variables that it names.
    fn json(&self, found: &mut Vec<Problem>) {
        let step = format!("spec.steps[{}].", self.variables.step);
        let is_here = |field: &str| !field.starts_with("spec.steps[") || field.starts_with(&step);
        let mut all: Vec<&Expression> = Vec::new();
        self.variables.template.each_expression(&mut |expression| all.push(expression));
        all.retain(|of| is_here(&of.field) && of.text.contains("toJson("));
        for expression in &all {
            found.extend(self.expression(expression, false, "a text below toJson"));
        }
        for variable in self.variables.reached(&all, Program::flows) {
            self.structure(&variable.value, found);
        }
    }

    fn structure(&self, structure: &'t Structure, found: &mut Vec<Problem>) {
        found.extend(self.part(structure.into(), "a text below toJson"));
        match structure {
            Structure::List(items) => items.iter().for_each(|item| self.structure(item, found)),
            Structure::Map(entries) => {
                entries.fields.iter().for_each(|(_, field)| self.structure(field, found));
            }
            _ => {}
        }
    }

    fn part(&self, part: Part<'t>, place: &str) -> Vec<Problem> {
        let has_text = match part {
            Part::Text(parts) => {
                parts.len() > 1 && parts.iter().any(|part| matches!(part, TextPart::Constant(_)))
            }
            _ => false,
        };
        let expressions = part.expressions().into_iter();
        expressions.filter_map(|expression| self.expression(expression, has_text, place)).collect()
    }

    /// An expression that is joined to text, or joins texts itself.
    fn expression(
        &self,
        expression: &'t Expression,
        is_joined: bool,
        place: &str,
    ) -> Option<Problem> {
        if !is_joined && !expression.program.joins() {
            return None;
        }
        let reached = self.variables.reached(&[expression], Program::flows);
        let mut paths = expression.program.flows();
        for variable in reached {
            variable.value.each_expression(&mut |inner| paths.extend(inner.program.flows()));
        }
        let parameters = &self.variables.template.spec.parameters;
        let name =
            parameters.iter().find(|parameter| is_open(parameter) && is_read(parameter, &paths));
        let name = &name?.name;
        let text = format!(
            "parameter {name} has no pattern and is joined to text in {place}: what a pod writes there may \
             mean something to the program that reads it; give the parameter a pattern, or pass it alone"
        );
        Some(expression.problem_at((1, 1), text))
    }
}

fn is_read(parameter: &Parameter, paths: &[Path]) -> bool {
    paths.iter().any(|path| match &*path.steps {
        [root] => root == "params",
        [root, name, ..] => root == "params" && *name == parameter.name,
        [] => false,
    })
}

/// Whether a value of a parameter may be any text.
fn is_open(parameter: &Parameter) -> bool {
    let is_open = |of: ParameterType, bounds: &Bounds| {
        of == ParameterType::String && bounds.pattern.is_none() && bounds.r#enum.is_none()
    };
    let items = |scalar: &Option<Scalar>| {
        scalar.as_ref().is_none_or(|scalar| is_open(scalar.r#type, &scalar.bounds))
    };
    match parameter.r#type {
        ParameterType::List => items(&parameter.items),
        ParameterType::Map => items(&parameter.values),
        of => is_open(of, &parameter.bounds),
    }
}
