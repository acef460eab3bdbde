//! A container beside those of a Job: the Job ends only when all of its containers do.

use injectd_cel::Program;

use crate::{
    Problem, Template,
    expression::Expression,
    object::Action,
    spot::{DELETE, Spot, Variables},
};

/// What conditions look for.
const KIND: &str = "Job";

/// Where the first container is added, if nothing asks for Jobs.
pub(super) fn problem(template: &Template) -> Option<Problem> {
    let mut steps = 0..template.steps.len();
    let container = steps.find_map(|step| added(template, step))?;
    let text = "a container beside those of a Job keeps the Job from ending: write it as an init container with \
        restartPolicy: Always, or leave Jobs out with a condition such as !(owner.kind in ['Job', 'CronJob'])";
    (!asks_for_jobs(template)).then(|| container.problem(text))
}

/// The first container that a step adds to `spec.containers`.
fn added(template: &Template, step: usize) -> Option<Spot<'_>> {
    let (containers, open) = Spot::overlay(template, step)?.get("spec")?.list("containers");
    let is_removed = |container: &Spot<'_>| container.directive() == Some(DELETE);
    containers.into_iter().find(|container| !is_removed(container)).or(open)
}

/// Whether a condition, a validation that skips, or a `when` names Jobs.
fn asks_for_jobs(template: &Template) -> bool {
    let skips = template.validations.iter().filter(|one| one.action == Action::Skip);
    let conditions = template.conditions.iter().map(|condition| &condition.expression);
    let steps = template.steps.iter().filter_map(|step| step.when.as_deref());
    let asked: Vec<_> = conditions.chain(skips.map(|one| &one.expression)).chain(steps).collect();
    let reached = (0..template.steps.len())
        .flat_map(|step| Variables { template, step }.reached(&asked, Program::reads_of));
    let names_one = |expression: &Expression| expression.text.contains(KIND);
    let in_variables = reached.into_iter().any(|variable| {
        let mut found = false;
        variable.value.each_expression(&mut |expression| found |= names_one(expression));
        found
    });
    in_variables || asked.iter().any(|expression| names_one(expression))
}
