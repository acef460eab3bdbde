//! Rules that replace a field of a container with a value that reads the field: if the mark of the pod is removed,
//! the next call applies them once more.
//!
//! Not for variables by their names: [`own_entry`](crate::own_entry) refuses those.

use injectd_cel::reads::Path;

use crate::{
    Problem, Rule, Template,
    expression::Expression,
    object::Existing,
    spot::{Spot, Variables},
    structure::Structure,
    template::CONTAINER_LISTS,
};

pub(super) fn problems(template: &Template) -> Vec<Problem> {
    let steps = 0..template.steps.len();
    let rules = steps.flat_map(|step| {
        let variables = Variables { template, step };
        Spot::rules(template, step).map(move |(rule, _)| (variables, rule))
    });
    rules.flat_map(|(variables, rule)| of_rule(variables, rule)).collect()
}

fn of_rule(variables: Variables<'_>, rule: &Rule) -> Vec<Problem> {
    let fields = rule.overlay.entries().map_or(&[][..], |entries| &entries.fields);
    let replaced = fields.iter().filter(|_| rule.existing == Some(Existing::Replace));
    let found = replaced.filter(|(_, value)| is_whole(value)).filter_map(|(name, value)| {
        let mut written = Vec::new();
        value.each_expression(&mut |expression| written.push(expression));
        let reads = |expression: &&Expression| {
            expression.program.reads_of().iter().any(|path| is_own(path, name))
        };
        let text = format!(
            "the rule replaces {name} with a value that reads {name} of the container: without the mark of the \
             pod it is applied once more. Write a value that stays the same then"
        );
        variables.with_reached(written).into_iter().find(reads).map(|expression| expression.problem_at((1, 1), text))
    });
    found.collect()
}

/// Whether a field is replaced as a whole, and not entry by entry.
fn is_whole(value: &Structure) -> bool {
    !matches!(value, Structure::List(items) if items.iter().any(|item| item.entries().is_some()))
}

/// Whether a path leads to a field of the container, or of any container of the pod.
fn is_own(path: &Path, name: &str) -> bool {
    let steps: Vec<_> = path.steps.iter().map(String::as_str).collect();
    match steps[..] {
        ["container", field, ..] => field == name,
        ["object", "spec", list, "*", field, ..] => {
            CONTAINER_LISTS.contains(&list) && field == name
        }
        _ => false,
    }
}
