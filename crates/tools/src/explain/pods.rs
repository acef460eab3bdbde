//! The running pods of a workload that is explained: the verdict is about new pods, and those that run
//! may have been created before.
//!
//! They are judged as `injectd audit` judges them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use injectd_cluster::causes::with_causes;
use injectd_command::CommandError;
use injectd_controllers::audit::{
    Finding, Namespace, Served,
    cluster::{self as audited, Judges, Scope},
    restart_command,
    summary::{MAX_NAMED, Row, Summary},
};
use injectd_core::text::first_names;
use injectd_k8s::{
    object::texts,
    selector::{LabelSelector, Operator, Requirement, Selector},
    workload::Workload,
};
use kube::Client;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::{cluster::Cluster, target::Target};
use crate::{audit, facts::Facts, manifests::text, meshes::Meshes};

/// The kind whose pods are those of its Jobs, and their label with the name of the Job. Kubernetes also
/// sets it with a prefix since 1.27.
const CRON_JOB: &str = "CronJob";
const JOB_LABEL: &str = "job-name";

/// Workloads of the cluster, with the selectors of their pods.
#[derive(Default)]
pub(super) struct Workloads {
    /// By namespace, kind and name.
    selected: BTreeMap<[String; 3], Selected>,
    auditors: BTreeMap<String, Judges>,
    /// The sidecar templates that are in force, if they are known.
    pub(super) templates: Option<Served>,
}

/// The pods of a workload.
#[derive(Debug, Clone)]
struct Selected {
    /// The label selector.
    selector: String,
    /// The Jobs of a `CronJob`, which own the pods.
    jobs: BTreeSet<String>,
}

/// The running pods of a workload.
#[derive(Debug, Serialize)]
pub(super) struct RunningPods {
    total: u64,
    /// What is wrong with some of them.
    findings: Vec<Row>,
    /// What could not be read or judged.
    unknown: Vec<String>,
}

impl Workloads {
    /// Takes note of an object of the cluster that is explained.
    pub(super) async fn add(
        &mut self,
        cluster: &Cluster<'_>,
        target: &Target,
        object: &Value,
        facts: &mut Facts,
    ) -> Result<(), CommandError> {
        let mut jobs = BTreeSet::new();
        let selector = if target.subject.kind == CRON_JOB {
            let uid = text(object, "/metadata/uid");
            jobs = cluster.jobs_of(uid, &target.namespace, facts).await?;
            let names = jobs.iter().map(String::as_str).collect::<Vec<_>>().join(",");
            (!jobs.is_empty()).then(|| format!("{JOB_LABEL} in ({names})"))
        } else {
            selector(object)
        };
        if let Some(selector) = selector {
            self.selected.insert(key(target), Selected { selector, jobs });
        }
        Ok(())
    }

    /// The running pods of a target, if it is a workload of the cluster.
    pub(super) async fn running(
        &mut self,
        client: Option<&Client>,
        target: &Target,
        meshes: &mut Meshes<'_>,
        facts: &Facts,
    ) -> Result<Option<RunningPods>, CommandError> {
        let (Some(selected), Some(client)) = (self.selected.get(&key(target)), client) else {
            return Ok(None);
        };
        let Selected { selector, jobs } = selected.clone();
        let mut summary = Summary::default();
        let namespace = &target.namespace;
        if !self.auditors.contains_key(namespace) {
            // If they cannot be read, the explanation has a note about that.
            let Ok(webhooks) = audited::webhooks(client).await else { return Ok(None) };
            let templates = self.templates.clone();
            let auditor = audit::auditor(meshes, webhooks, templates, &mut summary).await?;
            let auditor = Arc::new(auditor);
            let known = facts.namespace(namespace).cloned().map(Namespace::new);
            let namespaces = known.map(|known| (namespace.clone(), known)).into_iter().collect();
            let judges = Judges::new(auditor, namespaces);
            self.auditors.insert(namespace.clone(), judges);
        }
        let Some(judges) = self.auditors.get(namespace) else { return Ok(None) };
        let scope = Scope { namespaces: vec![namespace.clone()], selector };
        let read = audited::audit(client, &scope, judges, &mut summary, |_| {}).await;
        let unread = read.err().map(|error| with_causes(&error));
        let is_its = |workload: &Workload| {
            let (kind, name) = (&target.subject.kind, &target.subject.name);
            // Its selector may match pods of others, too.
            match (workload.kind == *kind, &**kind) {
                (true, _) => workload.name == *name,
                (false, "ReplicaSet") => {
                    workload.kind == "Deployment" && is_replica_set(name, &workload.name)
                }
                (false, CRON_JOB) => workload.kind == "Job" && jobs.contains(&workload.name),
                (false, _) => false,
            }
        };
        Ok(Some(RunningPods::of(is_its, &summary, unread)))
    }
}

fn key(target: &Target) -> [String; 3] {
    let subject = &target.subject;
    [&subject.namespace, &subject.kind, &subject.name].map(Clone::clone)
}

impl RunningPods {
    fn of(is_its: impl Fn(&Workload) -> bool, summary: &Summary, unread: Option<String>) -> Self {
        let unknown = summary.unknown().map(|(reason, _)| reason.to_owned());
        let unread = unread.map(|text| format!("not read: {text}"));
        let uncalled = [summary.without_webhook(), summary.not_called()];
        let uncalled = uncalled.into_iter().flatten().filter(|(_, pods)| **pods > 0);
        let uncalled = uncalled.map(|(product, _)| {
            format!("no webhook of {} would be called for new ones", product.as_str())
        });
        let uncalled: Vec<_> = uncalled.collect();
        Self {
            total: summary.total(&is_its),
            findings: summary.rows().filter(|row| is_its(&row.workload)).collect(),
            unknown: unread.into_iter().chain(unknown).chain(uncalled).collect(),
        }
    }

    /// How many there are.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Adds what is known of running pods to the explanation of new ones.
    pub(super) fn add_to(&self, notes: &mut Vec<String>, advice_of_new: &mut String) {
        let Self { total, findings, unknown } = self;
        notes.extend(unknown.iter().map(|text| format!("running pods: {text}")));
        if findings.is_empty() {
            if *total > 0 && unknown.is_empty() {
                let text = format!("its {total} running pods are as they should be");
                let one = "its running pod is as it should be".to_owned();
                notes.push(if *total == 1 { one } else { text });
            }
            return;
        }
        let mut advice = Vec::new();
        for row in findings {
            let text = what(row);
            notes.push(format!("{text}: {}: {}", row.reason, names(row)));
            advice.push(format!("{text}: {}. {}.", row.reason, remedy(row)));
        }
        if !advice_of_new.is_empty() {
            advice.push(advice_of_new.clone());
        }
        *advice_of_new = advice.join(" ");
    }
}

/// Whether a `ReplicaSet` is named as those of a Deployment.
fn is_replica_set(name: &str, deployment: &str) -> bool {
    let rest = name.strip_prefix(deployment).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|hash| !hash.contains('-'))
}

/// Such as `1 of 3 pods has no sidecar`.
fn what(row: &Row) -> String {
    let (has, it) = if row.pods == 1 { ("has", "it") } else { ("have", "they") };
    let sidecar = match row.finding {
        Finding::Missing => "no sidecar".to_owned(),
        Finding::Outdated => "an outdated sidecar".to_owned(),
        Finding::Unexpected => format!("a sidecar that {it} should not have"),
    };
    let pods = if row.total == 1 { "pod" } else { "pods" };
    format!("{} of {} {pods} {has} {sidecar}", row.pods, row.total)
}

fn remedy(row: &Row) -> String {
    match row.finding {
        _ if !row.restart_cures => "A restart changes nothing".to_owned(),
        Finding::Missing | Finding::Outdated => format!("Restart: {}", row.remedy),
        Finding::Unexpected => {
            format!("If the sidecar should go: {}", restart_command(&row.workload))
        }
    }
}

fn names(row: &Row) -> String {
    let count = usize::try_from(row.pods).unwrap_or(usize::MAX);
    first_names(row.pod_names.iter().map(String::as_str), count, MAX_NAMED)
}

/// The label selector of a workload's pods, as the API server reads it; `None` for pods, and for kinds
/// whose pods have no labels of theirs.
fn selector(object: &Value) -> Option<String> {
    let selector = object.pointer("/spec/selector")?;
    let has_parts =
        ["matchLabels", "matchExpressions"].iter().any(|key| selector[*key] != Value::Null);
    let written = if has_parts {
        LabelSelector::deserialize(selector).ok()?
    } else {
        // That of a ReplicationController is a map of labels.
        let match_labels = texts(selector, "").collect();
        LabelSelector { match_labels, ..LabelSelector::default() }
    };
    let selector = Selector::new(written).ok()?;
    let all: Vec<_> = selector.requirements().iter().map(shown).collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// A requirement as the API server reads it in a URL.
fn shown(requirement: &Requirement) -> String {
    let (key, values) = (requirement.key(), requirement.values());
    match (requirement.operator(), values) {
        (Operator::In, [value]) => format!("{key}={value}"),
        (Operator::In, _) => format!("{key} in ({})", values.join(",")),
        (Operator::NotIn, _) => format!("{key} notin ({})", values.join(",")),
        (Operator::Exists, _) => key.to_owned(),
        (Operator::DoesNotExist, _) => format!("!{key}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_selector_is_that_of_the_api_server() {
        let of = |selected: Value| selector(&json!({"spec": {"selector": selected}}));
        let expressions = json!([
            {"key": "a", "operator": "In", "values": ["b", "c"]},
            {"key": "d", "operator": "NotIn", "values": ["e"]},
            {"key": "f", "operator": "Exists"},
            {"key": "g", "operator": "DoesNotExist"},
        ]);
        for (it, expected) in [
            (json!({"matchLabels": {"app": "web", "tier": "x"}}), Some("app=web,tier=x")),
            (json!({"matchExpressions": expressions}), Some("a in (b,c),d notin (e),f,!g")),
            (json!({"app": "rc"}), Some("app=rc")),
            // It would be all pods of the namespace.
            (json!({}), None),
            (json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}), None),
        ] {
            assert_eq!(of(it).as_deref(), expected);
        }
        assert_eq!(selector(&json!({"spec": {"containers": []}})), None);
    }

    #[test]
    fn a_replica_set_is_one_of_the_deployment_it_is_named_after() {
        assert!(is_replica_set("web-5f", "web"));
        assert!(!is_replica_set("web-a-5f", "web") && !is_replica_set("webs-5f", "web"));
    }
}
