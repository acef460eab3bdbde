//! `PodDisruptionBudgets`: whether one allows that a workload's pods are replaced.

use injectd_k8s::{
    object::Labels,
    selector::{LabelSelector, Selector},
};
use kube::api::ApiResource;
use serde::Deserialize;

/// What the API server has of a budget; other fields are skipped.
pub(super) type Object = kube::core::Object<Spec, Status>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spec {
    selector: Option<LabelSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    observed_generation: i64,
    disruptions_allowed: i64,
}

/// A `PodDisruptionBudget`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// Whether it allows no disruption now, or does not say so of its current specification.
    pub is_exhausted: bool,
    selector: Selects,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Selects {
    /// No selector.
    Nothing,
    These(Selector),
    /// The selector is not understood. It may select any pod.
    Unknown,
}

impl Budget {
    /// A budget with this selector; without one, it selects no pods.
    #[must_use]
    pub fn new(name: impl Into<String>, selector: Option<LabelSelector>, allowed: i64) -> Self {
        let selector = match selector.map(Selector::new) {
            None => Selects::Nothing,
            Some(Ok(selector)) => Selects::These(selector),
            Some(Err(_)) => Selects::Unknown,
        };
        Self { name: name.into(), is_exhausted: allowed < 1, selector }
    }

    /// Whether it covers pods with these labels.
    #[must_use]
    pub fn covers(&self, pod_labels: &Labels) -> bool {
        match &self.selector {
            Selects::Nothing => false,
            Selects::These(selector) => selector.unmet(pod_labels).is_none(),
            Selects::Unknown => true,
        }
    }

    pub(super) fn of(object: Object) -> Self {
        let Object { metadata, spec, status, .. } = object;
        let status = status.unwrap_or_default();
        let is_current = status.observed_generation >= metadata.generation.unwrap_or_default();
        // The status of an earlier generation may allow what the budget now forbids.
        let allowed = if is_current { status.disruptions_allowed } else { 0 };
        Self::new(metadata.name.unwrap_or_default(), spec.selector, allowed)
    }

    /// The resource of the API.
    pub(super) fn resource() -> ApiResource {
        ApiResource {
            group: "policy".to_owned(),
            version: "v1".to_owned(),
            api_version: "policy/v1".to_owned(),
            kind: "PodDisruptionBudget".to_owned(),
            plural: "poddisruptionbudgets".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(json: &str) -> Budget {
        Budget::of(serde_json::from_str(json).expect("a budget"))
    }

    fn labels(labels: &[(&str, &str)]) -> Labels {
        labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn a_budget_that_does_not_say_allows_nothing() {
        let of = |generation: i64, status: &str| {
            let metadata = format!(r#"{{"name": "b", "generation": {generation}}}"#);
            budget(&format!(r#"{{"metadata": {metadata}, "spec": {{}}{status}}}"#)).is_exhausted
        };
        let allowed = r#", "status": {"observedGeneration": 2, "disruptionsAllowed": 1}"#;
        assert!(!of(2, allowed));
        assert!(of(3, allowed), "a status of an earlier specification");
        assert!(of(1, ""), "no status");
        assert!(of(2, r#", "status": {"observedGeneration": 2, "disruptionsAllowed": 0}"#));
    }

    #[test]
    fn an_empty_selector_covers_all_pods_and_no_selector_covers_none() {
        let of = |spec: &str| budget(&format!(r#"{{"metadata": {{}}, "spec": {spec}}}"#));
        let (web, none) = (labels(&[("app", "web")]), labels(&[]));
        assert!(of(r#"{"selector": {}}"#).covers(&web));
        assert!(!of("{}").covers(&web));
        let app = of(r#"{"selector": {"matchLabels": {"app": "web"}}}"#);
        assert!(app.covers(&web) && !app.covers(&none));
        let not_in = of(r#"{"selector": {"matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": ["db"]}]}}"#);
        assert!(not_in.covers(&web) && not_in.covers(&none));
        assert!(!not_in.covers(&labels(&[("app", "db")])));
        let unknown = r#"{"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}}"#;
        assert!(of(unknown).covers(&web));
    }
}
