//! The requests that a webhook may be called for, and what is always there in them.
//!
//! From `pkg/endpoints/handlers` and `pkg/admission/plugin/cel` of k8s.io/apiserver 1.36.

use serde_json::Value;

use super::{
    builtin::{self, Builtin, fields},
    rules::list,
};
use crate::{
    Plugin, Webhook,
    cel::absent::{Facts, Path, Presence, Step, World},
    equivalents,
};

/// Kinds of requests that are looked at for one webhook. Rules that name more are rare, and a condition
/// that fails for one resource mostly fails for the others.
const MAX_CASES: usize = 64;

/// What is in a request besides its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    is_mutating: bool,
    /// Labels that the object has, if there is one only.
    labels: Vec<&'r str>,
}

/// The kinds of requests that the rules of a webhook match, its rules as they are written.
pub(super) fn cases<'r>(webhook: &'r Webhook, rules: &'r Value) -> Vec<Case<'r>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for rule in rules.as_array().into_iter().flatten() {
        for resource in list(rule, "resources") {
            for about in abouts(rule, resource) {
                for operation in operations(rule, about) {
                    let case = Case {
                        operation,
                        about,
                        scope: rule["scope"].as_str().unwrap_or("*"),
                        is_mutating: webhook.plugin == Plugin::Mutating,
                        labels: webhook.object_selector.required_keys().collect(),
                    };
                    let is_new = cases
                        .iter()
                        .all(|it| (it.operation, it.about) != (case.operation, case.about));
                    // The options of CONNECT have no labels.
                    let is_selected = case.labels.is_empty() || operation != "CONNECT";
                    if is_new && is_selected && cases.len() < MAX_CASES {
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

fn abouts<'r>(rule: &Value, resource: &'r str) -> Vec<About<'r>> {
    let (name, sub) = resource.split_once('/').unwrap_or((resource, ""));
    let groups = list(rule, "apiGroups");
    if name == "*" {
        return vec![About::Any];
    }
    let found = builtin::all().iter().filter(|it| {
        let is_sub = sub == "*" || it.subresource() == sub;
        it.parent() == name && is_sub && groups.iter().any(|of| *of == "*" || *of == it.group)
    });
    let found: Vec<_> = found.map(About::Builtin).collect();
    // What matches nothing is reported elsewhere.
    let is_custom = groups.iter().any(|it| *it != "*" && !builtin::is_group(it));
    if found.is_empty() && is_custom { vec![About::Custom(name)] } else { found }
}

fn operations(rule: &Value, about: About<'_>) -> Vec<&'static str> {
    let all = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
    let of_rule = list(rule, "operations");
    let is_named = |it: &&str| of_rule.contains(it) || of_rule.contains(&"*");
    let is_possible = |it: &&str| match about {
        About::Builtin(builtin) => builtin.operations.contains(it),
        About::Custom(_) => *it != "CONNECT",
        // Only subresources have CONNECT.
        About::Any => *it != "CONNECT" || list(rule, "resources").iter().any(|it| it.contains('/')),
    };
    all.into_iter().filter(is_named).filter(is_possible).collect()
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
        match (&*names, steps.last()) {
            // The API server leaves empty lists and maps out: one that is there has an element.
            (["metadata" | "spec", _, ..], Some(Step::Element)) => return Presence::Always,
            // Which index or key is computed is not followed.
            (["spec", _, ..], _) if is_computed => return Presence::Open,
            _ => {}
        }
        match &*names {
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
        let Some(kind) = self.kind(facts) else {
            return match self.about {
                About::Custom(_) => Presence::Open,
                _ => Presence::Maybe,
            };
        };
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
        match fields::is_always_there(kind, &field) {
            // Of a list that is never empty, only the first element is always there.
            Some(true) if matches!(steps.last(), Some(Step::Index(_))) => Presence::Maybe,
            Some(true) => Presence::Always,
            // The status of a new object is empty; later controllers fill it.
            Some(false) if field.starts_with("status.") && self.operation != "CREATE" => {
                Presence::Open
            }
            Some(false) => Presence::Maybe,
            None => Presence::Open,
        }
    }

    /// The kind of the object, also if only the condition names it.
    fn kind<'k>(&'k self, facts: &'k Facts) -> Option<&'k str> {
        if let About::Builtin(builtin) = self.about {
            return Some(builtin.kind);
        }
        let text =
            |path: &[&str]| facts.text(&path.iter().map(|it| Step::Field((*it).into())).collect());
        let of_kind =
            [&["request", "kind", "kind"][..], &["object", "kind"], &["oldObject", "kind"]];
        of_kind.into_iter().find_map(text).or_else(|| {
            let resource = text(&["request", "resource", "resource"])?;
            let found = builtin::all().iter().find(|it| it.name == resource);
            found.map(|it| it.kind)
        })
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
