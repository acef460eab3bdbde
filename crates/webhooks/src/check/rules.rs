//! `rules`: which requests a webhook is called for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::{
    Findings, Severity, nothing,
    parts::{OPERATIONS, list},
};

const SCOPES: [&str; 3] = ["Cluster", "Namespaced", "*"];
/// Rules that differ, up to which all are compared with each other; more are compared with equal ones
/// only, and that is reported. People do not write so many by hand.
const MAX_COMPARED: usize = 256;

/// A list whose order does not matter.
type Part<'r> = BTreeSet<&'r str>;

/// What a rule matches.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Matched<'r> {
    operations: Part<'r>,
    groups: Part<'r>,
    versions: Part<'r>,
    resources: Part<'r>,
    scope: &'r str,
}

pub(super) fn check(rules: &Value, at: &mut Findings<'_>) {
    let rules = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() {
        let advice = "Add a rule.";
        at.add(Severity::Warning, "rules", "no rule: the webhook is never called", advice);
    }
    for (index, rule) in rules.iter().enumerate() {
        check_rule(rule, &format!("rules[{index}]"), at);
    }
    check_covered(rules, at);
}

/// Rules that match nothing which an earlier one does not match: each group of them once.
fn check_covered(rules: &[Value], at: &mut Findings<'_>) {
    let mut firsts: HashMap<Matched<'_>, usize> = HashMap::new();
    let mut compared: Vec<(usize, Matched<'_>)> = Vec::new();
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let matched = Matched::of(rule);
        let covering = compared.iter().find(|(_, earlier)| earlier.covers(&matched));
        let covering = covering.map(|(earlier, _)| *earlier);
        match covering.or_else(|| firsts.get(&matched).copied()) {
            Some(earlier) => groups.entry(earlier).or_default().push(index),
            None if compared.len() < MAX_COMPARED => compared.push((index, matched)),
            None => drop(firsts.insert(matched, index)),
        }
    }
    if !firsts.is_empty() {
        let problem = format!(
            "more than {MAX_COMPARED} rules differ: whether the later ones are needed is not known"
        );
        at.add(Severity::Suggestion, "rules", problem, "Join rules.");
    }
    for (earlier, covered) in groups {
        let others = match covered.len() - 1 {
            0 => String::new(),
            1 => format!(", and all that rules[{}] matches", covered[1]),
            more => format!(", and all that {more} others after it match"),
        };
        let problem = format!("rules[{earlier}] matches all that it matches{others}");
        let advice = if covered.len() == 1 { "Remove the rule." } else { "Remove these rules." };
        at.add(Severity::Warning, format!("rules[{}]", covered[0]), problem, advice);
    }
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
    if resources.contains(&"*")
        && resources.iter().any(|resource| *resource != "*" && !resource.contains('/'))
    {
        at.error(field, "* stands beside other resources", "Use * alone.");
    }
    let mut earlier = BTreeSet::new();
    for resource in resources {
        if let Some((name, sub)) = resource.split_once('/') {
            let wildcards = [format!("{name}/*"), format!("*/{sub}")];
            if let Some(wildcard) = wildcards.iter().find(|wildcard| earlier.contains(&***wildcard))
            {
                let problem = format!("{wildcard} includes {resource}");
                at.error(field, problem, "Remove one of them.");
            }
        }
        earlier.insert(*resource);
    }
}

impl<'r> Matched<'r> {
    fn of(rule: &'r Value) -> Self {
        let part = |name| list(rule, name).into_iter().collect();
        Self {
            operations: part("operations"),
            groups: part("apiGroups"),
            versions: part("apiVersions"),
            resources: part("resources"),
            // The API server has the same default.
            scope: rule["scope"].as_str().unwrap_or("*"),
        }
    }

    /// Whether it matches everything that another one matches.
    fn covers(&self, other: &Self) -> bool {
        let parts = [
            (&self.operations, &other.operations),
            (&self.groups, &other.groups),
            (&self.versions, &other.versions),
        ];
        let has = |resource: &&str| {
            let (name, sub) = resource.split_once('/').unwrap_or((resource, ""));
            let of = |name: &str, sub: &str| match sub {
                "" => self.resources.contains(name),
                sub => self.resources.contains(&*format!("{name}/{sub}")),
            };
            of(name, sub) || of("*", sub) || of(name, "*") || of("*", "*")
        };
        parts
            .into_iter()
            .all(|(of_self, of_other)| of_self.contains("*") || of_other.is_subset(of_self))
            && !other.resources.is_empty()
            && other.resources.iter().all(has)
            && (self.scope == "*" || self.scope == other.scope)
    }
}
