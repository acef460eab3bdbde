//! What is printed: the explanations, of which those of equal pods are one.

use std::collections::BTreeMap;

use injectd_cluster::digest::digest;
use injectd_command::counted;
use injectd_core::text::first_names;
use injectd_explain::Report;
use injectd_k8s::workload::Workload;
use serde::Serialize;
use serde_json::Value;

use super::pods::RunningPods;

/// Most pods with an equal explanation that are named.
const MAX_NAMED: usize = 5;

/// An explanation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item<'c> {
    #[serde(flatten)]
    pub(super) report: Report<'c>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) running_pods: Option<RunningPods>,
    /// The workload of a pod; that of others is not known.
    #[serde(skip)]
    pub(super) workload: Workload,
    /// Further pods with the same explanation.
    #[serde(skip)]
    pub(super) equal: Vec<String>,
}

impl<'c> Item<'c> {
    pub(super) fn new(
        mut report: Report<'c>,
        pod: Option<&Value>,
        running_pods: Option<RunningPods>,
    ) -> Self {
        if let Some(running) = &running_pods {
            running.add_to(&mut report.notes, &mut report.advice);
        }
        let workload = Workload::of(pod.unwrap_or(&Value::Null)).named();
        Self { report, running_pods, workload, equal: Vec::new() }
    }

    /// Whether it is a pod of a workload.
    pub(super) fn is_of_workload(&self) -> bool {
        self.report.object.kind == "Pod" && self.workload.kind != "Pod"
    }

    /// Digest of all but the name of the pod.
    fn digest(&self) -> Result<String, serde_json::Error> {
        let mut tree = serde_json::to_value(&self.report)?;
        tree["object"]["name"] = Value::Null;
        let Workload { namespace, kind, name, .. } = &self.workload;
        Ok(digest([&*tree.to_string(), namespace, kind, name]))
    }
}

/// The explanations, those of equal pods of a workload as one.
pub(super) fn merged(items: Vec<Item<'_>>) -> Result<Vec<Item<'_>>, serde_json::Error> {
    let mut merged = Vec::<Item<'_>>::new();
    let mut places = BTreeMap::new();
    for item in items {
        if item.is_of_workload() {
            let place = *places.entry(item.digest()?).or_insert(merged.len());
            if let Some(first) = merged.get_mut(place) {
                first.equal.push(item.report.object.name);
                continue;
            }
        }
        merged.push(item);
    }
    Ok(merged)
}

/// A note about the pods with the same explanation, if there are any.
pub(super) fn note(item: &Item<'_>) -> Option<String> {
    let Workload { kind, name, .. } = &item.workload;
    let count = item.equal.len();
    let names = first_names(item.equal.iter().map(String::as_str), count, MAX_NAMED);
    let pods = counted(count, "further pod");
    let kind = kind.to_lowercase();
    (count > 0).then(|| format!("the same for {pods} of {kind}/{name}: {names}"))
}
