//! `rules`: which requests a webhook is called for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Findings, Severity, nothing};

const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"];
const SCOPES: [&str; 3] = ["Cluster", "Namespaced", "*"];
type Part<'r> = BTreeSet<&'r str>;

pub(super) fn check(rules: &Value, at: &mut Findings<'_>) {
    let rules = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() {
        let advice = "Add a rule.";
        at.add(Severity::Warning, "rules", "no rule: the webhook is never called", advice);
    }
    for (index, rule) in rules.iter().enumerate() {
        check_rule(rule, &format!("rules[{index}]"), at);
        for (other, earlier) in rules[..index].iter().enumerate() {
            if covers(earlier, rule) {
                let problem = format!("rules[{other}] matches all that it matches");
                let advice = "Remove the rule.";
                at.add(Severity::Warning, format!("rules[{index}]"), problem, advice);
            }
        }
    }
}

pub(super) fn list<'r>(rule: &'r Value, name: &str) -> Vec<&'r str> {
    let items = rule[name].as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap_or_default()).collect()
}

fn part<'r>(rule: &'r Value, name: &str) -> Part<'r> {
    list(rule, name).into_iter().collect()
}

fn check_rule(rule: &Value, path: &str, at: &mut Findings<'_>) {
    for name in ["operations", "apiGroups", "apiVersions", "resources"] {
        let (field, items) = (format!("{path}.{name}"), list(rule, name));
        if items.is_empty() {
            at.error(field, "it is required", "Name at least one, or * for all.");
        } else if name != "resources" && items.contains(&"*") && items.len() > 1 {
            at.error(field, "* stands beside others", "Use * alone.");
        } else if matches!(name, "apiVersions" | "resources") && items.contains(&"") {
            at.error(field, "a name is empty", "Remove it, or name it.");
        }
    }
    for operation in list(rule, "operations") {
        if !OPERATIONS.contains(&operation) {
            let advice = "Use CREATE, UPDATE, DELETE, CONNECT or *.";
            at.error(format!("{path}.operations"), format!("{operation:?} is not known"), advice);
        }
    }
    let scope = &rule["scope"];
    if !scope.is_null() && !scope.as_str().is_some_and(|scope| SCOPES.contains(&scope)) {
        let advice = "Use Namespaced, Cluster or *.";
        at.error(format!("{path}.scope"), format!("{scope} is not known"), advice);
    }
    check_wildcards(&list(rule, "resources"), &format!("{path}.resources"), at);
    nothing::check(rule, path, at);
}

/// `validateResources`: a wildcard excludes what it includes, if that comes later.
fn check_wildcards(resources: &[&str], field: &str, at: &mut Findings<'_>) {
    if resources.contains(&"*/*") && resources.len() > 1 {
        at.error(field, "*/* stands beside others", "Use */* alone.");
    }
    if resources.contains(&"*") && resources.iter().any(|it| *it != "*" && !it.contains('/')) {
        at.error(field, "* stands beside other resources", "Use * alone.");
    }
    for (index, resource) in resources.iter().enumerate() {
        let Some((name, sub)) = resource.split_once('/') else { continue };
        let wildcards = [format!("{name}/*"), format!("*/{sub}")];
        let earlier = resources[..index].iter().find(|it| wildcards.iter().any(|of| of == **it));
        if let Some(earlier) = earlier {
            let problem = format!("{earlier} includes {resource}");
            at.error(field, problem, "Remove one of them.");
        }
    }
}

/// Whether a rule matches everything that another one matches.
fn covers(rule: &Value, other: &Value) -> bool {
    let all = ["operations", "apiGroups", "apiVersions"].into_iter().all(|name| {
        let (of_rule, of_other) = (part(rule, name), part(other, name));
        of_rule.contains("*") || of_other.is_subset(&of_rule)
    });
    let has = |resource: &str| {
        let (name, sub) = resource.split_once('/').unwrap_or((resource, ""));
        part(rule, "resources").into_iter().any(|it| {
            let (of_rule, of_sub) = it.split_once('/').unwrap_or((it, ""));
            (of_rule == "*" || of_rule == name) && (of_sub == "*" || of_sub == sub)
        })
    };
    let scope = |rule: &Value| rule["scope"].as_str().unwrap_or("*").to_owned();
    let resources = part(other, "resources");
    all && !resources.is_empty()
        && resources.into_iter().all(has)
        && (scope(rule) == "*" || scope(rule) == scope(other))
}
