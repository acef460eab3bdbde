//! What the expressions of a template read of a pod.

use crate::{Problem, Template, expression::Expression};

/// Values that are large as a whole.
const LARGE: [&[&str]; 2] = [&["object"], &["object", "spec"]];

fn expressions(template: &Template) -> Vec<&Expression> {
    let mut all = Vec::new();
    template.each_expression(&mut |expression| all.push(expression));
    all
}

/// Reads of fields that may be absent: the evaluation fails then.
pub(super) fn unguarded(template: &Template) -> Vec<Problem> {
    let of = |expression: &Expression| {
        let reads = expression.unguarded().into_iter().map(|read| {
            let remedy = match &read.instead {
                Some(instead) => format!("write {instead}, an optional value"),
                None => "ask with has(…) first".to_owned(),
            };
            let text =
                format!("{} may be absent, and the expression fails then: {remedy}", read.path);
            expression.problem_at(read.place, text)
        });
        reads.collect::<Vec<_>>()
    };
    expressions(template).into_iter().flat_map(of).collect()
}

/// Reads of a whole pod.
pub(super) fn whole(template: &Template) -> Vec<Problem> {
    let of = |expression: &Expression| {
        let paths = expression.program.reads_of();
        let is_large = |steps: &[String]| LARGE.iter().any(|large| steps == *large);
        let path = paths.iter().find(|path| !path.is_presence && is_large(&path.steps))?;
        let name = path.steps.join(".");
        let text = format!(
            "the expression reads {name} as a whole, and all of it becomes values for each pod: name the \
             fields that it needs"
        );
        Some(expression.problem_at((1, 1), text))
    };
    expressions(template).into_iter().filter_map(of).collect()
}
