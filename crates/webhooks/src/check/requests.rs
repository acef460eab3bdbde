//! The requests that a webhook may be called for, and what is always there in them.
//!
//! From `pkg/endpoints/handlers` and `pkg/admission/plugin/cel` of k8s.io/apiserver, which are the same
//! in 1.34 to 1.37.

use std::collections::HashSet;

use injectd_cel::absent::{Facts, Path, Presence, Step, World};
use serde_json::Value;

use super::{
    builtin::{
        self, Builtin,
        fields::{self, State},
    },
    parts::list,
};
use crate::{Plugin, Webhook, equivalents};

/// Kinds of requests that are looked at for one webhook. Rules that name more are rare, and a condition
/// that fails for one resource mostly fails for the others.
const MAX_CASES: usize = 64;

/// What is in a request besides its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum About<'r> {
    /// A resource of Kubernetes.
    Builtin(&'static Builtin),
    /// A custom resource, by its name in the rule.
    Custom(&'r str),
    /// Any resource.
    Any,
}

/// Requests of one operation for one resource.
#[derive(Debug, Clone)]
pub(super) struct Case<'r> {
    pub(super) operation: &'static str,
    pub(super) about: About<'r>,
    scope: &'r str,
    /// Versions of the resource that the rule has; none if it has no served one.
    versions: Vec<&'static str>,
    is_mutating: bool,
    /// Labels that the object has, if there is one only.
    labels: Vec<&'r str>,
}

/// The kinds of requests that the rules of a webhook match, its rules as they are written.
pub(super) fn cases<'r>(webhook: &'r Webhook, rules: &'r Value) -> Vec<Case<'r>> {
    let labels: Vec<_> = webhook.object_selector.required_keys().collect();
    let rules = rules.as_array().into_iter().flatten();
    let mut seen = HashSet::new();
    let all = rules.flat_map(|rule| {
        let rule = Rule::read(rule);
        let resources = rule.resources.clone();
        resources.into_iter().flat_map(move |resource| rule.of_resource(resource))
    });
    // The options of CONNECT have no labels.
    let selected = all.filter(|case| labels.is_empty() || case.operation != "CONNECT");
    let new =
        selected.filter(|case| seen.insert((case.operation, case.about, case.versions.clone())));
    let is_mutating = webhook.plugin == Plugin::Mutating;
    let with_labels = |case| Case { is_mutating, labels: labels.clone(), ..case };
    new.take(MAX_CASES).map(with_labels).collect()
}

/// A rule.
struct Rule<'r> {
    groups: HashSet<&'r str>,
    versions: HashSet<&'r str>,
    operations: HashSet<&'r str>,
    resources: Vec<&'r str>,
    scope: &'r str,
    /// Whether a group may have custom resources of any name.
    is_custom: bool,
    has_subresources: bool,
}

impl<'r> Rule<'r> {
    fn read(rule: &'r Value) -> Self {
        let set = |name: &str| list(rule, name).into_iter().collect::<HashSet<_>>();
        let (groups, resources) = (set("apiGroups"), list(rule, "resources"));
        Self {
            // The wildcard alone is no sign of custom resources: resources of Kubernetes match it.
            is_custom: groups.iter().any(|group| *group != "*" && !builtin::is_group(group)),
            has_subresources: resources.iter().any(|resource| resource.contains('/')),
            scope: rule["scope"].as_str().unwrap_or("*"),
            versions: set("apiVersions"),
            operations: set("operations"),
            groups,
            resources,
        }
    }

    fn of_resource(&self, resource: &'r str) -> Vec<Case<'r>> {
        let mut cases = Vec::new();
        for about in self.abouts(resource) {
            cases.extend(self.operations(about).map(|operation| Case {
                operation,
                about,
                scope: self.scope,
                versions: self.versions(about),
                is_mutating: false,
                labels: Vec::new(),
            }));
        }
        cases
    }

    fn abouts(&self, resource: &'r str) -> Vec<About<'r>> {
        let (name, sub) = resource.split_once('/').unwrap_or((resource, ""));
        if name == "*" {
            return vec![About::Any];
        }
        let found = builtin::all().iter().filter(|known| {
            let is_sub = sub == "*" || known.subresource() == sub;
            let is_group = self.groups.contains("*") || self.groups.contains(known.group);
            known.parent() == name && is_sub && is_group
        });
        let found: Vec<_> = found.map(About::Builtin).collect();
        // What matches nothing is reported elsewhere.
        if found.is_empty() && self.is_custom { vec![About::Custom(name)] } else { found }
    }

    fn operations(&self, about: About<'r>) -> impl Iterator<Item = &'static str> {
        let is_named = |it: &&str| self.operations.contains(it) || self.operations.contains("*");
        let is_possible = move |it: &&str| match about {
            About::Builtin(builtin) => builtin.operations.contains(it),
            About::Custom(_) => *it != "CONNECT",
            // Only subresources have CONNECT.
            About::Any => *it != "CONNECT" || self.has_subresources,
        };
        let all = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
        all.into_iter().filter(is_named).filter(is_possible)
    }

    fn versions(&self, about: About<'r>) -> Vec<&'static str> {
        let About::Builtin(builtin) = about else { return Vec::new() };
        let is_named = |it: &&str| self.versions.contains("*") || self.versions.contains(it);
        builtin.versions.iter().copied().filter(is_named).collect()
    }
}

impl World for Case<'_> {
    fn presence(&self, path: &Path, facts: &Facts) -> Presence {
        let Some((Step::Field(root), steps)) = path.split_first() else { return Presence::Open };
        let has_object = self.operation != "DELETE";
        let has_old = matches!(self.operation, "UPDATE" | "DELETE");
        match &**root {
            "object" if !has_object => Presence::Null,
            "oldObject" if !has_old => Presence::Null,
            "object" | "oldObject" => self.in_object(steps, facts),
            "request" => self.in_request(steps),
            // An API server has none for webhooks.
            "namespaceObject" => Presence::Null,
            _ => Presence::Open,
        }
    }
}

impl Case<'_> {
    fn in_object(&self, steps: &[Step], facts: &Facts) -> Presence {
        let names: Vec<_> = steps.iter().map(name).collect();
        let is_computed = steps.iter().any(|step| matches!(step, Step::Any(_)));
        // The API server leaves empty lists and maps out: one that is there has an element. One that it
        // never leaves out may be empty.
        if let Some((Step::Element, of)) = steps.split_last() {
            let is_open = matches!(&*names, ["metadata" | "spec", _, ..]);
            match self.state(of, facts) {
                Some(State::Maybe | State::Always) => return Presence::Always,
                None if is_open => return Presence::Always,
                _ => {}
            }
        }
        match &*names {
            // Which index or key is computed is not followed.
            ["spec", _, ..] if is_computed => Presence::Open,
            // Options of a connection.
            ["metadata", ..] if self.operation == "CONNECT" => Presence::Never,
            [] | ["apiVersion" | "metadata"] => Presence::Always,
            ["kind"] => match self.about {
                About::Builtin(builtin) => Presence::Text(builtin.kind.to_owned()),
                _ => Presence::Always,
            },
            ["metadata", names @ ..] => self.in_metadata(names, facts),
            _ => self.in_fields(steps, facts),
        }
    }

    fn in_metadata(&self, names: &[&str], facts: &Facts) -> Presence {
        let is_new = self.operation == "CREATE";
        let always = |is_always: bool| if is_always { Presence::Always } else { Presence::Maybe };
        match names {
            // The API server generates names, times and more behind the mutating webhooks.
            ["name" | "uid" | "creationTimestamp"] => always(!is_new || !self.is_mutating),
            ["resourceVersion"] => always(!is_new),
            ["generation" | "managedFields", ..] => Presence::Open,
            ["namespace"] => self.in_namespace(),
            ["labels"] => {
                always(!self.required_labels().is_empty() || self.kind(facts) == Some("Namespace"))
            }
            ["labels", key] => always(
                self.required_labels().contains(key)
                    || (self.kind(facts) == Some("Namespace")
                        && *key == crate::selector::NAMESPACE_NAME),
            ),
            ["ownerReferences", "[]", field] => {
                always(matches!(*field, "apiVersion" | "kind" | "name" | "uid"))
            }
            _ => Presence::Maybe,
        }
    }

    /// Labels that a selector demands. For UPDATE one of both objects has them.
    fn required_labels(&self) -> &[&str] {
        if self.operation == "UPDATE" { &[] } else { &self.labels }
    }

    fn in_namespace(&self) -> Presence {
        let is_namespaced = match (self.about, self.scope) {
            (About::Builtin(builtin), _) => builtin.is_namespaced,
            (_, "Namespaced") => true,
            (_, "Cluster") => false,
            (About::Custom(_), _) => return Presence::Open,
            (About::Any, _) => return Presence::Maybe,
        };
        if is_namespaced { Presence::Always } else { Presence::Never }
    }

    fn in_fields(&self, steps: &[Step], facts: &Facts) -> Presence {
        let Some(state) = self.state(steps, facts) else {
            return match self.about {
                About::Any if self.of(facts).is_none() => Presence::Maybe,
                _ => Presence::Open,
            };
        };
        // The status of a new object is empty; later controllers fill it.
        let is_filled =
            self.operation != "CREATE" && steps.len() > 1 && name(&steps[0]) == "status";
        match state {
            // Of a list that is never empty, only the first element is always there.
            State::Always if matches!(steps.last(), Some(Step::Index(_))) => Presence::Maybe,
            State::Always => Presence::Always,
            _ if is_filled => Presence::Open,
            State::Nullable => Presence::Nullable,
            State::Maybe => Presence::Maybe,
        }
    }

    /// What is known of a field; `None` if the kind is not known.
    fn state(&self, steps: &[Step], facts: &Facts) -> Option<State> {
        let of = self.of(facts)?;
        let mut field = String::new();
        for step in steps {
            match name(step) {
                "[]" => field.push_str("[]"),
                name if field.is_empty() => field.push_str(name),
                name => {
                    field.push('.');
                    field.push_str(name);
                }
            }
        }
        fields::state(of, &field)
    }

    /// The kind of the object, also if only the condition names it.
    fn of<'k>(&'k self, facts: &'k Facts) -> Option<fields::Of<'k>> {
        if let About::Builtin(Builtin { kind, kind_group, .. }) = self.about {
            return Some(fields::Of { group: Some(kind_group), versions: &self.versions, kind });
        }
        let text = |path: &[&str]| {
            facts.text(&path.iter().map(|name| Step::Field((*name).into())).collect())
        };
        let of_kind =
            [&["request", "kind", "kind"][..], &["object", "kind"], &["oldObject", "kind"]];
        let any = |group, kind| fields::Of { group, versions: &[], kind };
        of_kind.into_iter().find_map(text).map(|kind| any(None, kind)).or_else(|| {
            let resource = text(&["request", "resource", "resource"])?;
            let found = builtin::all().iter().find(|known| known.name == resource);
            found.map(|known| any(Some(known.kind_group), known.kind))
        })
    }

    fn kind<'k>(&'k self, facts: &'k Facts) -> Option<&'k str> {
        self.of(facts).map(|of| of.kind)
    }

    fn in_request(&self, steps: &[Step]) -> Presence {
        let names: Vec<_> = steps.iter().map(name).collect();
        match &*names {
            ["operation"] => Presence::Text(self.operation.to_owned()),
            ["subResource" | "requestSubResource"] => match self.about {
                About::Builtin(builtin) if builtin.subresource().is_empty() => Presence::Never,
                About::Builtin(builtin) => Presence::Text(builtin.subresource().to_owned()),
                _ => Presence::Maybe,
            },
            [of @ ("kind" | "resource" | "requestKind" | "requestResource"), field] => {
                self.resource(of, field)
            }
            // Names are generated later, and a deletion of many objects has none.
            ["name"] => match self.operation {
                "CREATE" if self.is_mutating => Presence::Maybe,
                "DELETE" => Presence::Maybe,
                _ => Presence::Always,
            },
            ["namespace"] => match self.about {
                // Requests for a Namespace have its own name.
                About::Builtin(builtin) if builtin.parent() == "namespaces" => Presence::Always,
                _ => self.in_namespace(),
            },
            // Everybody who is authenticated has a group, and so has who is not.
            ["userInfo", "groups", ..] if steps.last() == Some(&Step::Element) => Presence::Always,
            ["userInfo", "uid" | "extra"] | ["userInfo", "extra" | "groups", _, ..] => {
                Presence::Maybe
            }
            // CONNECT has none.
            ["options", _, ..] if self.operation == "CONNECT" => Presence::Open,
            ["options", "kind" | "apiVersion"] => Presence::Always,
            ["options", _, ..] => Presence::Maybe,
            _ => Presence::Always,
        }
    }

    fn resource(&self, of: &str, field: &str) -> Presence {
        let About::Builtin(builtin) = self.about else { return Presence::Always };
        let resource = crate::Resource::new(builtin.group, builtin.versions[0], builtin.name);
        // A rule may match by another group or version.
        let has_others = equivalents::of(&resource).next().is_some();
        match field {
            "group" if !has_others => Presence::Text(builtin.group.to_owned()),
            "kind" if matches!(of, "kind" | "requestKind") => {
                Presence::Text(builtin.kind.to_owned())
            }
            "resource" if matches!(of, "resource" | "requestResource") => {
                Presence::Text(builtin.parent().to_owned())
            }
            _ => Presence::Always,
        }
    }
}

/// A step as a word.
fn name(step: &Step) -> &str {
    match step {
        Step::Field(name) => name,
        Step::Element | Step::Index(_) => "[]",
        Step::Any(_) => "",
    }
}
