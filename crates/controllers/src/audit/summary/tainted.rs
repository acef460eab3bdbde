//! Pods with values that change other fields than their own, by workload.

use std::collections::{BTreeMap, BTreeSet};

use injectd_k8s::workload::Workload;
use serde::Serialize;

use super::{Audited, MAX_NAMED, MAX_WORKLOADS};

/// The pods with such values.
#[derive(Debug, Default)]
pub(super) struct Tainted {
    pods: u64,
    workloads: BTreeMap<Workload, Group>,
}

#[derive(Debug, Default)]
struct Group {
    pods: u64,
    names: Vec<String>,
    values: BTreeSet<&'static str>,
}

/// A workload with such pods.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaintedRow {
    /// The workload.
    #[serde(flatten)]
    pub workload: Workload,
    /// How many of its pods have such values.
    pub pods: u64,
    /// The names of the first of them, at most [`MAX_NAMED`].
    pub pod_names: Vec<String>,
    /// The annotations of the values, or what else has one: `label`, `name`, or `other` for an annotation
    /// that is not counted by its name.
    pub values: Vec<&'static str>,
}

impl Tainted {
    /// Adds a pod, if it has such values. Of more workloads than a summary has, the pods are only counted.
    pub(super) fn add(&mut self, pod: &Audited) {
        if pod.tainted.is_empty() {
            return;
        }
        self.pods += 1;
        let all = &mut self.workloads;
        if all.len() >= MAX_WORKLOADS && !all.contains_key(&pod.workload) {
            return;
        }
        let group = all.entry(pod.workload.clone()).or_default();
        group.pods += 1;
        group.values.extend(&pod.tainted);
        if group.names.len() < MAX_NAMED {
            group.names.push(pod.name.clone());
        }
    }

    /// How many there are.
    pub(super) fn pods(&self) -> u64 {
        self.pods
    }

    /// A row for each workload.
    pub(super) fn rows(&self) -> impl Iterator<Item = TaintedRow> {
        self.workloads.iter().map(|(workload, group)| TaintedRow {
            workload: workload.clone(),
            pods: group.pods,
            pod_names: group.names.clone(),
            values: group.values.iter().copied().collect(),
        })
    }
}
