//! Rules that match nothing, because no resource has their names, versions, scope and operations.

use std::collections::BTreeSet;

use injectd_k8s::names;
use serde_json::Value;

use super::{
    Findings, Severity,
    builtin::{self, Builtin, RELEASES},
    parts::{OPERATIONS, list},
};
use crate::walk::is_exempt;

/// Items that a finding quotes; of more it has the number.
const MAX_QUOTED: usize = 5;

/// A rule, and where it is.
struct Rule<'r> {
    groups: BTreeSet<&'r str>,
    versions: BTreeSet<&'r str>,
    operations: BTreeSet<&'r str>,
    scope: &'r str,
    path: &'r str,
    /// Whether a group may have resources that are not known here.
    is_open: bool,
    has_custom_group: bool,
}

/// Reports what of a rule matches nothing.
pub(super) fn check(rule: &Value, path: &str, at: &mut Findings<'_>) {
    let mut seen = BTreeSet::new();
    let resources = list(rule, "resources").into_iter().filter(|resource| seen.insert(*resource));
    let set = |name: &str| list(rule, name).into_iter().collect::<BTreeSet<_>>();
    let groups = set("apiGroups");
    let has_custom_group = groups.iter().any(|group| is_custom(group));
    let rule = Rule {
        is_open: has_custom_group || groups.contains("*"),
        has_custom_group,
        groups,
        versions: set("apiVersions"),
        operations: set("operations"),
        scope: rule["scope"].as_str().unwrap_or("*"),
        path,
    };
    // What is missing has an error.
    if rule.groups.is_empty() || rule.versions.is_empty() || rule.operations.is_empty() {
        return;
    }
    if !rule.is_open && !rule.groups.iter().any(|group| builtin::is_group(group)) {
        let problem =
            format!("{RELEASES} have no API group {}: nothing matches", quoted(&rule.groups));
        let advice = "Correct the group. That of pods is \"\", and a group is without its version.";
        return rule.warn("apiGroups", problem, advice, at);
    }
    if !rule.versions.iter().any(|version| *version == "*" || names::is_dns1035_label(version)) {
        let problem = format!("{} is not a version: nothing matches", quoted(&rule.versions));
        return rule.warn("apiVersions", problem, "Use the version without its group.", at);
    }
    for resource in resources {
        rule.check(resource, at);
    }
}

/// Groups of custom resources have a domain.
fn is_custom(group: &str) -> bool {
    group.contains('.') && names::is_dns_subdomain(group) && !builtin::is_group(group)
}

fn quoted(items: &BTreeSet<&str>) -> String {
    let quoted = items.iter().take(MAX_QUOTED).map(|item| format!("{item:?}"));
    let quoted = quoted.collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(MAX_QUOTED) {
        0 => quoted,
        more => format!("{quoted} and {more} more"),
    }
}

impl Rule<'_> {
    fn check(&self, resource: &str, at: &mut Findings<'_>) {
        let (name, sub) = resource.split_once('/').unwrap_or((resource, ""));
        if name == "*" || name.is_empty() {
            return;
        }
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            let problem = format!("{resource:?}: resources are in lower case: nothing matches");
            let advice = self.plural(name, "Use the plural in lower case, such as pods.");
            return self.warn("resources", problem, &advice, at);
        }
        let of_name = builtin::all().iter().filter(|resource| resource.parent() == name);
        let of_name: Vec<_> = of_name.filter(|resource| self.has_group(resource.group)).collect();
        if of_name.is_empty() {
            return self.check_unknown(resource, name, at);
        }
        let has_sub = |it: &&Builtin| sub == "*" || it.subresource() == sub;
        let found: Vec<_> = of_name.into_iter().filter(has_sub).collect();
        if !found.is_empty() {
            self.check_known(resource, &found, at);
        } else if !self.is_open {
            let problem = format!("{name} have no subresource {sub:?}: nothing matches");
            self.warn("resources", problem, "Correct the subresource.", at);
        }
    }

    fn has_group(&self, group: &str) -> bool {
        self.groups.contains("*") || self.groups.contains(group)
    }

    /// No group of the rule has a resource of this name, as far as is known.
    fn check_unknown(&self, resource: &str, name: &str, at: &mut Findings<'_>) {
        let others: Vec<_> = builtin::all().iter().filter(|other| other.parent() == name).collect();
        let also = builtin::all().iter().find(|known| known.is_also_called(name));
        if let Some(also) = also.filter(|also| others.is_empty() && self.has_group(also.group)) {
            let problem = format!("{resource:?} is not the name of a resource: nothing matches");
            let advice = format!("Use the plural: {}.", also.name);
            return self.warn("resources", problem, &advice, at);
        }
        if self.is_open {
            return;
        }
        if let Some(other) = others.first() {
            let problem = format!("{name} are in the API group {:?}: nothing matches", other.group);
            return self.warn("apiGroups", problem, "Add the group.", at);
        }
        let groups = quoted(&self.groups);
        let problem =
            format!("{RELEASES} have no {resource:?} in the API group {groups}: nothing matches");
        self.warn("resources", problem, "Correct the resource or the group.", at);
    }

    fn check_known(&self, resource: &str, found: &[&Builtin], at: &mut Findings<'_>) {
        let is_of_rule =
            |version: &&str| self.versions.contains("*") || self.versions.contains(version);
        let is_served = found.iter().any(|known| known.versions.iter().any(is_of_rule));
        if !self.is_open && !is_served {
            let served = found[0].versions.join(", ");
            let problem = format!("{RELEASES} serve {resource} as {served} only: nothing matches");
            return self.warn("apiVersions", problem, "Correct the version.", at);
        }
        if self.has_custom_group {
            return;
        }
        let in_scope = |it: &&Builtin| match self.scope {
            "Cluster" => !it.is_namespaced,
            "Namespaced" => it.is_namespaced,
            _ => true,
        };
        if !found.iter().any(in_scope) {
            let problem = format!("{resource} are never of scope {}: nothing matches", self.scope);
            return self.warn("scope", problem, "Correct the scope.", at);
        }
        let has_operation = |it: &&Builtin| {
            let named = |of: &&str| self.operations.contains(of) || self.operations.contains("*");
            it.operations.iter().any(named)
        };
        if !found.iter().any(has_operation) {
            return self.check_operations(resource, found, at);
        }
        self.check_never_asked(resource, found, at);
    }

    fn check_operations(&self, resource: &str, found: &[&Builtin], at: &mut Findings<'_>) {
        let mut all: Vec<_> = found.iter().flat_map(|known| &known.operations).copied().collect();
        all.dedup();
        if all.is_empty() {
            let problem = format!("{resource} can only be read: no webhook is called");
            return self.warn("resources", problem, "Remove the resource.", at);
        }
        // Others have an error.
        let known = OPERATIONS.into_iter().filter(|known| self.operations.contains(known));
        let operations = known.collect::<Vec<_>>().join(" or ");
        if operations.is_empty() {
            return;
        }
        let problem = format!("{resource} never have {operations}: nothing matches");
        let connected = builtin::all().iter().find(|known| {
            known.operations.contains(&"CONNECT")
                && known.parent() == resource
                && known.group.is_empty()
        });
        let advice = match connected.filter(|_| self.operations.contains("CONNECT")) {
            Some(known) => format!("Name the subresource, such as {}.", known.name),
            None => format!("Use {}.", all.join(" or ")),
        };
        self.warn("operations", problem, &advice, at);
    }

    /// Resources about which the API server asks no webhook.
    fn check_never_asked(&self, resource: &str, found: &[&Builtin], at: &mut Findings<'_>) {
        if found.iter().all(|known| is_exempt(known.group, known.parent())) && !at.place.is_static()
        {
            let problem = format!("no webhook is called for {resource}");
            let advice = "Remove the resource. Only configurations that an API server of 1.36 or \
                          later loads from its own files are called.";
            return self.warn("resources", problem, advice, at);
        }
        if found.iter().all(|known| known.is_virtual()) {
            let problem = format!("API servers of 1.37 and later call no webhook for {resource}");
            let advice = "Do not rely on the call. 1.36 and earlier make it; in 1.37 the feature gate \
                          ExcludeAdmissionWebhookVirtualResources, on by default, ends it.";
            self.warn("resources", problem, advice, at);
        }
    }

    fn plural(&self, name: &str, otherwise: &str) -> String {
        let lower = name.to_ascii_lowercase();
        let is_it = |it: &&Builtin| it.name == lower || it.is_also_called(&lower);
        let found = builtin::all().iter().filter(is_it).find(|known| self.has_group(known.group));
        found.map_or_else(|| otherwise.to_owned(), |known| format!("Use {}.", known.name))
    }

    fn warn(&self, part: &str, problem: String, advice: &str, at: &mut Findings<'_>) {
        at.add(Severity::Warning, format!("{}.{part}", self.path), problem, advice);
    }
}
