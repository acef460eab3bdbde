//! Rules of webhooks (`predicates/rules/rules.go`).

use serde::Deserialize;

use crate::{Request, Resource};

/// A rule: which operations on which resources it is about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    pub(crate) resources: Vec<String>,
    scope: Option<String>,
}

/// The part of a rule that does not match, in the order in which people read rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mismatch {
    Group,
    Resource,
    Version,
    Operation,
    Scope,
}

impl Rule {
    /// The first part that does not match a request for this resource; `None` if all do.
    pub(crate) fn mismatch(&self, request: &Request<'_>, resource: &Resource) -> Option<Mismatch> {
        let has = |list: &[String], name: &str| list.iter().any(|item| item == "*" || item == name);
        let parts = [
            (Mismatch::Group, has(&self.api_groups, &resource.group)),
            (Mismatch::Resource, self.has_resource(&resource.resource, request.subresource)),
            (Mismatch::Version, has(&self.api_versions, &resource.version)),
            (Mismatch::Operation, has(&self.operations, request.operation.as_str())),
            (Mismatch::Scope, self.has_scope(request, resource)),
        ];
        parts.into_iter().find_map(|(part, matches)| (!matches).then_some(part))
    }

    /// Whether it names no resource.
    pub(crate) fn has_any_resource(&self) -> bool {
        self.resources.iter().any(|resource| matches!(&**resource, "*" | "*/*"))
    }

    /// Whether it is about the creation of objects only: then each request has an object, which is none
    /// of a subresource.
    pub(crate) fn only_creates_objects(&self) -> bool {
        self.operations == ["CREATE"]
            && !self.resources.iter().any(|resource| resource.contains('/'))
    }

    /// `pods` is without its subresources; `pods/*` is with them, and `*/*` is everything.
    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|rule| {
            let (of_rule, sub) = rule.split_once('/').unwrap_or((rule, ""));
            (of_rule == "*" || of_rule == resource) && (sub == "*" || sub == subresource)
        })
    }

    /// Namespaces themselves are cluster-scoped, although requests for them have a namespace.
    fn has_scope(&self, request: &Request<'_>, resource: &Resource) -> bool {
        let is_cluster_scoped = resource.is_namespaces() || request.namespace.is_empty();
        match self.scope.as_deref() {
            Some("Cluster") => is_cluster_scoped,
            Some("Namespaced") => !is_cluster_scoped,
            _ => true,
        }
    }

    /// What the rule asks for in that part.
    pub(crate) fn part(&self, part: Mismatch) -> String {
        let list = |items: &[String]| {
            let quoted: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
            quoted.join(", ")
        };
        match part {
            Mismatch::Group => format!("apiGroups {}", list(&self.api_groups)),
            Mismatch::Resource => format!("resources {}", list(&self.resources)),
            Mismatch::Version => format!("apiVersions {}", list(&self.api_versions)),
            Mismatch::Operation => format!("operations {}", list(&self.operations)),
            Mismatch::Scope => format!("scope {}", self.scope.as_deref().unwrap_or("*")),
        }
    }
}
