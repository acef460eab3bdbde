//! Conditions that fail for some requests: then the failure policy decides.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Finding, Findings, Severity,
    danger::findings,
    requests::{Case, cases},
};
use crate::{
    Configurations, FailurePolicy, Webhook,
    cel::{
        Program,
        absent::{Failure, Lack, Step, Work, display, failures},
    },
};

mod text;

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

/// Checks the conditions of a configuration. Takes from the work that is left for the run.
pub(super) fn check(
    object: &Value,
    read: &Configurations,
    work: &mut Work,
    found: &mut Vec<Finding>,
) {
    let written = object["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (webhook, written) in read.webhooks().iter().zip(written) {
        let programs: Option<Vec<_>> = webhook.conditions.iter().map(|it| it.program()).collect();
        // One that does not compile has an error.
        let Some(programs) = programs.filter(|programs| !programs.is_empty()) else { continue };
        let all = of_webhook(&programs, &cases(webhook, &written["rules"]), work);
        let mut at = findings(webhook, found);
        for (index, program) in programs.iter().enumerate() {
            let of_condition = all.iter().filter(|it| it.failure.condition == index);
            let is_of_namespace = |it: &&Found<'_>| is_null(&it.failure.lack, NAMESPACE_OBJECT);
            let (of_namespace, others): (Vec<_>, Vec<_>) = of_condition.partition(is_of_namespace);
            if program.reads(NAMESPACE_OBJECT) {
                report_namespace(webhook, index, of_namespace.first().copied(), &mut at);
            }
            if !others.is_empty() {
                report(webhook, index, &others, &mut at);
            }
        }
        if work.is_spent() {
            report_end(&mut at);
        }
    }
}

fn of_webhook<'c>(programs: &[&Program], cases: &[Case<'c>], work: &mut Work) -> Vec<Found<'c>> {
    let mut all: Vec<Found<'_>> = Vec::new();
    for case in cases {
        for failure in failures(programs, case, work) {
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
    let problem = format!("{name}: it fails for {}; {consequence}", text::requests(found));
    at.add(severity, field, problem, advice(found));
}

/// Reports a condition that reads `namespaceObject`, and how it fails then.
fn report_namespace(
    webhook: &Webhook,
    index: usize,
    failing: Option<&Found<'_>>,
    at: &mut Findings<'_>,
) {
    let name = &webhook.conditions[index].name;
    let field = format!("matchConditions[{index}].expression");
    let null = format!("{name}: namespaceObject is always null in the conditions of webhooks");
    let advice = "Use namespaceSelector for labels of the namespace, or request.namespace for its \
                  name.";
    let Some(failing) = failing else {
        return at.add(Severity::Warning, field, null, advice);
    };
    let (severity, consequence) = consequence(webhook.failure_policy);
    let is_certain = failing.failure.is_certain && failing.is_everywhere;
    let which = if is_certain { "every request" } else { "each request for which it is read" };
    at.add(severity, field, format!("{null}: it fails for {which}; {consequence}"), advice);
}

/// Reports that not all requests were looked at.
fn report_end(at: &mut Findings<'_>) {
    let problem = "not all requests were looked for that its conditions fail for: the search is \
                   limited, for all configurations together";
    let advice = "Check the configuration alone. If that ends as well, its conditions have too many \
                  parts with || or ?.";
    at.add(Severity::Suggestion, "matchConditions", problem, advice);
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
    matches!(lack.as_null(), Some([Step::Field(name)]) if **name == *root)
}

/// The guards of all that is lacking.
fn advice(found: &[&Found<'_>]) -> String {
    let lacks = || found.iter().map(|it| &it.failure.lack);
    let mut nulls: Vec<_> = lacks().filter_map(|lack| lack.as_null()).collect();
    // The object before its fields.
    nulls.sort_by_key(|path| path.len());
    let nulls = nulls.into_iter().map(|path| format!("{} != null", display(path)));
    let others = found.iter().filter(|it| it.failure.lack.as_null().is_none());
    let others: Vec<_> = others.map(|it| it.failure.guard.clone()).collect();
    if lacks().any(|lack| matches!(lack, Lack::Made(_))) {
        return "Compare the size before the index, such as size(…) > 0 && …, or use exists."
            .to_owned();
    }
    if others.contains(&None) {
        return "Guard what is read: has(…) &&, 'key' in … &&, or .? with orValue(…).".to_owned();
    }
    let mut guards: Vec<_> = nulls.chain(others.iter().flatten().cloned()).collect();
    let mut seen = HashSet::new();
    guards.retain(|guard| seen.insert(guard.clone()));
    let all = guards.join(" && ");
    // The variable of a macro is there only within it.
    if !guards.iter().all(|guard| VARIABLES.iter().any(|of| guard.contains(of))) {
        return format!("Guard what is read, where it is read: {all} && …");
    }
    let is_of_delete = lacks().any(|lack| is_null(lack, "object"));
    let old = if is_of_delete { " For DELETE, read oldObject." } else { "" };
    format!(
        "Write {all} && (…) if the webhook need not be called for them, or !({all}) || (…) if it \
         must.{old}"
    )
}
