//! Whether a quota is about a pod: its scopes.

use serde_json::Value;

use super::super::{
    integer, items, present,
    resources::{Side, names::is_compute, pod::PodResources},
    text,
    version::Version,
};

/// A pod as scopes see it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Scoped<'p> {
    pub(in super::super) pod: &'p Value,
    /// Its resources with defaults.
    pub(in super::super) resources: &'p PodResources,
    pub(in super::super) version: Version,
}

impl Scoped<'_> {
    /// Whether the pod is in all scopes of a quota.
    pub(super) fn is_in(self, quota: &Value) -> bool {
        let scopes = items(quota.pointer("/spec/scopes")).iter();
        let mut names = scopes.filter_map(Value::as_str);
        let selector = items(quota.pointer("/spec/scopeSelector/matchExpressions"));
        names.all(|name| self.has(name, &Value::Null))
            && selector.iter().all(|expression| {
                self.has(text(expression, "/scopeName").unwrap_or_default(), expression)
            })
    }

    /// Whether the pod is in one scope; only that of priority classes reads operator and values. A
    /// scope that is not about pods, such as `VolumeAttributesClass`, has none.
    fn has(self, scope: &str, requirement: &Value) -> bool {
        match scope {
            "Terminating" => self.is_terminating(),
            "NotTerminating" => !self.is_terminating(),
            "BestEffort" => self.is_best_effort(),
            "NotBestEffort" => !self.is_best_effort(),
            "PriorityClass" => self.has_priority_class(requirement),
            "CrossNamespacePodAffinity" => self.has_affinity_across_namespaces(),
            _ => false,
        }
    }

    fn is_terminating(self) -> bool {
        let seconds = present(self.pod, "/spec/activeDeadlineSeconds");
        seconds.and_then(integer).is_some_and(|seconds| seconds >= 0)
    }

    /// Whether nothing of CPU or memory is asked for (`ComputePodQOS`). The pod's own resources count
    /// in place of those of its containers.
    fn is_best_effort(self) -> bool {
        let pod = self.resources;
        let is_ignored = self.version.ignores_empty_pod_resources() && !pod.has_own();
        let own = pod.own.as_ref().filter(|_| !is_ignored);
        let containers = pod.all().filter(|_| own.is_none()).map(|container| &container.resources);
        let mut all = own.into_iter().chain(containers);
        !all.any(|resources| {
            let mut amounts = Side::BOTH.iter().flat_map(|side| resources.side(*side));
            amounts.any(|(name, amount)| is_compute(name) && amount.is_positive())
        })
    }

    fn has_priority_class(self, requirement: &Value) -> bool {
        let class = text(self.pod, "/spec/priorityClassName").filter(|class| !class.is_empty());
        let is_named = || {
            let mut names = items(requirement.pointer("/values")).iter().filter_map(Value::as_str);
            names.any(|name| Some(name) == class)
        };
        match text(requirement, "/operator") {
            None | Some("Exists") => class.is_some(),
            Some("DoesNotExist") => class.is_none(),
            Some("In") => is_named(),
            Some("NotIn") => !is_named(),
            Some(_) => false,
        }
    }

    fn has_affinity_across_namespaces(self) -> bool {
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
            let of =
                |list| items(self.pod.pointer(&format!("/spec/affinity/{kind}/{list}"))).iter();
            let terms = of(preferred).filter_map(|weighted| weighted.get("podAffinityTerm"));
            terms.chain(of(required)).any(|term| {
                !items(term.get("namespaces")).is_empty()
                    || present(term, "/namespaceSelector").is_some()
            })
        })
    }
}
