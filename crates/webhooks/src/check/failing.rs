//! Conditions that fail for some requests: then the failure policy decides.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Finding, Findings, Severity,
    danger::findings,
    requests::{About, Case, cases},
};
use crate::{
    Configurations, FailurePolicy, Webhook,
    cel::{
        Program,
        absent::{Failure, Lack, MAX_WORK, Step, display, failures},
    },
};

/// The variable that the API server has for policies only.
const NAMESPACE_OBJECT: &str = "namespaceObject";

/// Variables of a request, as guards name them.
const VARIABLES: [&str; 3] = ["object", "oldObject", "request."];

/// What one condition lacks, in which requests.
struct Found<'c> {
    failure: Failure,
    cases: Vec<Case<'c>>,
    /// Whether it was looked for in more requests, and not found.
    is_everywhere: bool,
}

/// Checks the conditions of a configuration.
pub(super) fn check(object: &Value, read: &Configurations, found: &mut Vec<Finding>) {
    let written = object["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (webhook, written) in read.webhooks().iter().zip(written) {
        let programs: Option<Vec<_>> = webhook.conditions.iter().map(|it| it.program()).collect();
        // One that does not compile has an error.
        let Some(programs) = programs.filter(|programs| !programs.is_empty()) else { continue };
        let all = of_webhook(&programs, &cases(webhook, &written["rules"]));
        let mut at = findings(webhook, found);
        for (index, program) in programs.iter().enumerate() {
            let of_condition: Vec<_> =
                all.iter().filter(|it| it.failure.condition == index).collect();
            if program.reads(NAMESPACE_OBJECT) {
                report_namespace(webhook, index, &of_condition, &mut at);
            } else if !of_condition.is_empty() {
                report(webhook, index, &of_condition, &mut at);
            }
        }
    }
}

fn of_webhook<'c>(programs: &[&Program], cases: &[Case<'c>]) -> Vec<Found<'c>> {
    let mut all: Vec<Found<'_>> = Vec::new();
    let mut work = MAX_WORK;
    for case in cases {
        for failure in failures(programs, case, &mut work) {
            let known = all.iter_mut().find(|it| {
                (it.failure.condition, &it.failure.lack) == (failure.condition, &failure.lack)
            });
            match known {
                Some(known) => {
                    known.failure.is_certain &= failure.is_certain;
                    known.cases.push(case.clone());
                }
                None => {
                    all.push(Found { failure, cases: vec![case.clone()], is_everywhere: false });
                }
            }
        }
    }
    for found in &mut all {
        found.is_everywhere = found.cases.len() == cases.len();
    }
    all
}

/// Reports a condition that fails.
fn report(webhook: &Webhook, index: usize, found: &[&Found<'_>], at: &mut Findings<'_>) {
    let name = &webhook.conditions[index].name;
    let (severity, consequence) = consequence(webhook.failure_policy);
    let field = format!("matchConditions[{index}].expression");
    let lacks: Vec<_> = found.iter().map(|it| it.text()).collect();
    let problem = format!("{name}: it fails for {}; {consequence}", lacks.join(", and for "));
    at.add(severity, field, problem, advice(found));
}

/// Reports a condition that reads `namespaceObject`.
fn report_namespace(webhook: &Webhook, index: usize, found: &[&Found<'_>], at: &mut Findings<'_>) {
    let name = &webhook.conditions[index].name;
    let field = format!("matchConditions[{index}].expression");
    let null = format!("{name}: namespaceObject is always null in the conditions of webhooks");
    let advice = "Use namespaceSelector for labels of the namespace, or request.namespace for its \
                  name.";
    let failing = found.iter().find(|it| is_null(&it.failure.lack, NAMESPACE_OBJECT));
    let Some(failing) = failing else {
        return at.add(Severity::Warning, field, null, advice);
    };
    let (severity, consequence) = consequence(webhook.failure_policy);
    let is_certain = failing.failure.is_certain && failing.is_everywhere;
    let which = if is_certain { "every request" } else { "each request for which it is read" };
    at.add(severity, field, format!("{null}: it fails for {which}; {consequence}"), advice);
}

/// What an API server does about conditions that fail.
fn consequence(policy: FailurePolicy) -> (Severity, &'static str) {
    match policy {
        FailurePolicy::Fail => (Severity::Danger, "with Fail, they are rejected"),
        FailurePolicy::Ignore => {
            (Severity::Warning, "with Ignore, the webhook is not called for them")
        }
    }
}

fn is_null(lack: &Lack, root: &str) -> bool {
    matches!(lack, Lack::Null(path) if matches!(&**path, [Step::Field(name)] if **name == *root))
}

impl Found<'_> {
    /// The requests, and what they lack.
    fn text(&self) -> String {
        let mut operations: Vec<_> = self.cases.iter().map(|it| it.operation).collect();
        operations.sort_unstable();
        operations.dedup();
        let operations = operations.join(" and ");
        let objects = self.objects();
        match &self.failure.lack {
            Lack::Null(path) => {
                format!("{operations} of {objects}, where {} is null", display(path))
            }
            Lack::Absent(path) if matches!(&path[0], Step::Field(root) if **root == *"object") => {
                // Names are generated for objects that are created.
                let which = if operations == "CONNECT" { "CONNECT of " } else { "" };
                format!("{which}{objects} without {}", display(&path[1..]))
            }
            Lack::Absent(path) => {
                format!("{operations} of {objects} without {}", display(path))
            }
            Lack::NoValue => format!("{objects} for which an optional has no value"),
        }
    }

    fn objects(&self) -> String {
        let mut names = self.cases.iter().map(|it| match it.about {
            About::Builtin(builtin) => builtin.name,
            About::Custom(name) => name,
            About::Any => "objects",
        });
        let first = names.next().unwrap_or("objects");
        if names.all(|name| name == first) { first.to_owned() } else { "objects".to_owned() }
    }
}

/// The guards of all that is lacking.
fn advice(found: &[&Found<'_>]) -> String {
    let nulls = found.iter().filter_map(|it| match &it.failure.lack {
        Lack::Null(path) => Some(format!("{} != null", display(path))),
        _ => None,
    });
    let others = found.iter().filter(|it| !matches!(it.failure.lack, Lack::Null(_)));
    let others: Vec<_> = others.map(|it| it.failure.guard.clone()).collect();
    let mut guards: Vec<_> = nulls.chain(others.iter().flatten().cloned()).collect();
    let mut seen = HashSet::new();
    guards.retain(|guard| seen.insert(guard.clone()));
    if others.contains(&None) {
        return "Guard what is read: has(…) &&, 'key' in … &&, or .? with orValue(…).".to_owned();
    }
    let all = guards.join(" && ");
    // The variable of a macro is there only within it.
    if !guards.iter().all(|guard| VARIABLES.iter().any(|of| guard.contains(of))) {
        return format!("Guard what is read, where it is read: {all} && …");
    }
    let old = if is_null(&found[found.len() - 1].failure.lack, "object") {
        " For DELETE, read oldObject."
    } else {
        ""
    };
    format!(
        "Write {all} && (…) if the webhook need not be called for them, or !({all}) || (…) if it \
         must.{old}"
    )
}
