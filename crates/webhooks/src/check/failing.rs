//! Conditions that fail for some requests: then the failure policy decides.

use std::collections::HashSet;

use injectd_cel::{
    Program,
    absent::{Failure, Lack, Step, Within, Work, failures},
};
use serde_json::Value;

use super::{
    Finding, Findings, Severity,
    danger::findings,
    requests::{Case, cases},
};
use crate::{Configurations, FailurePolicy, Webhook};

mod text;

/// The variable that the API server has for policies only.
const NAMESPACE_OBJECT: &str = "namespaceObject";

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
        let programs: Option<Vec<_>> =
            webhook.conditions.iter().map(|condition| condition.program()).collect();
        // One that does not compile has an error.
        let Some(programs) = programs.filter(|programs| !programs.is_empty()) else { continue };
        // One webhook with costly conditions must not use up the check of all others.
        let mut share = work.share();
        let all = of_webhook(&programs, &cases(webhook, &written["rules"]), &mut share);
        work.give_back(&share);
        let mut at = findings(webhook, found);
        for (index, program) in programs.iter().enumerate() {
            let of_condition = all.iter().filter(|found| found.failure.condition == index);
            let is_of_namespace = |it: &&Found<'_>| is_null(&it.failure.lack, NAMESPACE_OBJECT);
            let (of_namespace, others): (Vec<_>, Vec<_>) = of_condition.partition(is_of_namespace);
            if program.reads(NAMESPACE_OBJECT) {
                report_namespace(webhook, index, of_namespace.first().copied(), &mut at);
            }
            if !others.is_empty() {
                report(webhook, index, &others, &mut at);
            }
        }
        if share.is_spent() {
            report_end(&mut at);
        }
    }
}

fn of_webhook<'c>(programs: &[&Program], cases: &[Case<'c>], work: &mut Work) -> Vec<Found<'c>> {
    let mut all: Vec<Found<'_>> = Vec::new();
    for case in cases {
        for failure in failures(programs, case, work) {
            let known = all.iter_mut().find(|known| {
                (known.failure.condition, &known.failure.lack) == (failure.condition, &failure.lack)
            });
            match known {
                Some(known) => {
                    // A finding for several requests is certain only if it is so for each.
                    known.failure.is_certain &= failure.is_certain;
                    known.failure.has_more |= failure.has_more;
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
    let more = if found.iter().any(|found| found.failure.has_more) { " and others" } else { "" };
    let requests = text::requests(found);
    let problem = format!("{name}: it fails for {requests}{more}; {consequence}");
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
    let problem = "the search for requests for which its conditions fail stopped early: all \
                   configurations together share its limit";
    let advice = "Check this configuration alone. If the search stops early again, simplify conditions \
                  with many || or ?.";
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

/// Guards for all that is lacking, and what else helps.
fn advice(found: &[&Found<'_>]) -> String {
    let failures = || found.iter().map(|found| &found.failure);
    let mut guarded: Vec<_> = failures()
        .filter_map(|failure| Some((length(&failure.lack), failure.guard.as_deref()?)))
        .collect();
    // The object before its fields.
    guarded.sort_by_key(|(length, _)| *length);
    let mut seen = HashSet::new();
    let guards = guarded.into_iter().map(|(_, guard)| guard).filter(|guard| seen.insert(*guard));
    let guards = guards.collect::<Vec<_>>().join(" && ");
    let is_whole = |it: &Failure| it.guard.is_some() && it.within != Within::Part && !it.has_more;
    if failures().all(is_whole) {
        let is_of_delete = failures().any(|failure| is_null(&failure.lack, "object"));
        let old = if is_of_delete { " For DELETE, read oldObject." } else { "" };
        // Before all parts, it would be true also where another part is false.
        let must = if failures().all(|failure| failure.within == Within::Whole) {
            format!(", or !({guards}) || (…) if it must.")
        } else {
            ". If it must, guard only the part that reads it: !(guard) || (part).".to_owned()
        };
        return format!(
            "Write {guards} && (…) if the webhook need not be called for them{must}{old}"
        );
    }
    let mut parts = Vec::new();
    if !guards.is_empty() {
        parts.push(format!("Guard what is read, where it is read: {guards}."));
    }
    for part in failures()
        .filter(|failure| failure.guard.is_none())
        .map(|failure| without_guard(&failure.lack))
    {
        if !parts.iter().any(|known| known == part) {
            parts.push(part.to_owned());
        }
    }
    parts.join(" ")
}

/// The steps to what is lacking.
fn length(lack: &Lack) -> usize {
    match lack {
        Lack::Absent(path) | Lack::Null(path) => path.len(),
        Lack::Made(_) | Lack::Least | Lack::NoValue => usize::MAX,
    }
}

/// What helps where no guard can be written.
fn without_guard(lack: &Lack) -> &'static str {
    match lack {
        Lack::Absent(_) => "Guard what is read: has(…) &&, 'key' in … &&, or .? with orValue(…).",
        Lack::Null(_) => "Compare each element that may be null: … != null && ….",
        Lack::Made(Step::Field(_) | Step::Any(_)) => {
            "Look for the key before it is read: 'key' in … && …, or read it with [?…] and orValue(…)."
        }
        Lack::Made(_) => {
            "Compare the size before the index, such as size(…) > 0 && …, or use exists."
        }
        Lack::Least => "Compare the size of the list before min() or max(): size(…) > 0 && ….",
        Lack::NoValue => "Ask the optional with hasValue() &&, or use orValue(…).",
    }
}
