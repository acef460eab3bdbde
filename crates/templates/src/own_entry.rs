//! Rules that replace a variable of a container with a value that reads the variable itself: each call would
//! add to it once more. Only `appended` has nothing twice.

use crate::{
    Problem, Template,
    expression::Expression,
    object::Existing,
    spot::{Part, Spot, Variables},
};

/// The problems of all rules.
pub(crate) fn problems(template: &Template) -> Vec<Problem> {
    let mut found = Vec::new();
    for step in 0..template.steps.len() {
        let variables = Variables { template, step };
        for (rule, overlay) in Spot::rules(template, step) {
            for entry in overlay.list("env").0 {
                let Some(name) = entry.get("name").and_then(|name| name.text()) else { continue };
                let existing = rule.existing_env.get(name).copied().or(rule.existing);
                let value = entry.get("value").filter(|_| existing == Some(Existing::Replace));
                let written = value.and_then(|value| value.part());
                let written = written.map_or_else(Vec::new, Part::expressions);
                let all = variables.with_reached(written).into_iter();
                found.extend(all.flat_map(|expression| of_expression(expression, name)));
            }
        }
    }
    found
}

fn of_expression(expression: &Expression, name: &str) -> Vec<Problem> {
    let reads = expression.program.env_reads(&expression.text);
    let own = reads.iter().filter(|read| read.name == Some(name));
    let text = format!(
        "the value of {name} reads the variable that it replaces, and would grow with each call: write \
         appended(env(…).value, SEPARATOR, ADDITION), which has nothing twice"
    );
    own.map(|read| expression.problem_at(read.place, &*text)).collect()
}
