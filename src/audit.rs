//! Which pods run without the sidecar that they should have, with an outdated one, or with one that
//! they should not have.
//!
//! A pod is judged as if it were created now: by the webhooks of the cluster, and by the decision of
//! the mesh, which is the one that serves reviews. Memory grows with workloads, not with pods.

#![expect(clippy::disallowed_types, reason = "pods of a cluster have any shape")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use injectd_webhooks::{Configurations, Labels, Request, Step, Verdict as Call};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    explain::{
        self, Creation, ExplainError,
        injectors::{self, Product},
        later::Checks,
    },
    lookups::{Annotations, CallerFacts},
    profiles::Profile,
    restart::Rule,
};

pub mod audit_log;
pub mod cluster;
pub mod metrics;
pub mod summary;

mod environment;
mod sidecar;
mod workload;

use self::sidecar::Sidecar;
pub use self::{
    environment::Webhooks,
    workload::{Audited, Workload, restart_command},
};

/// The permissions of an audit, without those for the configurations of meshes.
pub const RULES: &[Rule] = &[
    Rule { api_group: "", resources: &["pods", "namespaces"], verbs: &["list"] },
    Rule {
        api_group: "admissionregistration.k8s.io",
        resources: &["mutatingwebhookconfigurations"],
        verbs: &["list"],
    },
];

/// What is wrong with a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// It has no sidecar and should have one.
    Missing,
    /// Its sidecar differs from the one that it would get now.
    Outdated,
    /// It has a sidecar and should have none.
    Unexpected,
}

/// The judgement on a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It has the sidecar that it should have.
    Meshed,
    /// It has a sidecar, and whether that is the one that it should have cannot be told.
    NotCompared,
    /// It has no sidecar, and should have none.
    Unmeshed,
    /// It has ended, or is being deleted.
    Ended,
    /// It is a mirror of a pod that a node runs itself, without admission.
    Static,
    /// That cannot be told; the reason.
    Unknown(String),
    /// Something is wrong; the reason.
    Wrong(Finding, String),
}

/// A namespace of the cluster.
#[derive(Debug, Clone, Default)]
pub struct Namespace {
    /// The object.
    pub object: Value,
    annotations: Annotations,
    labels: Labels,
}

/// A mesh that decides for a webhook.
#[derive(Debug, Clone)]
pub struct Mesh {
    /// The mesh with its configuration.
    pub profile: Profile,
    /// The decoded path of the webhook's URL.
    pub path: String,
}

/// Judges pods.
#[derive(Debug)]
pub struct Auditor {
    configurations: Configurations,
    /// By the names of configuration and webhook; webhooks whose mesh cannot be read are missing.
    meshes: BTreeMap<(String, String), Arc<Mesh>>,
    /// When the configurations of webhooks were created, as RFC 3339 texts.
    created: BTreeMap<String, String>,
    /// Digest of webhooks and meshes; empty if the webhooks are not those of a cluster.
    environment: String,
    /// The keys of namespaces' labels that webhooks select by.
    namespace_keys: BTreeSet<String>,
    /// When the audit began.
    begun: Timestamp,
}

impl Namespace {
    /// The namespace of an object.
    #[must_use]
    pub fn new(object: Value) -> Self {
        let texts = |key: &str| {
            let map = object.pointer(&format!("/metadata/{key}")).and_then(Value::as_object);
            let texts = map.into_iter().flatten();
            texts
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect::<Vec<_>>()
        };
        let annotations = texts("annotations").into();
        let labels = texts("labels").into_iter().collect();
        Self { object, annotations, labels }
    }
}

impl Auditor {
    /// An auditor for the webhooks of a cluster, made before pods are read; `meshes` are those of the
    /// webhooks of injectors.
    ///
    /// # Errors
    /// A mesh cannot decide about any pod.
    pub async fn new(
        webhooks: Webhooks,
        meshes: BTreeMap<(String, String), Arc<Mesh>>,
    ) -> Result<Self, ExplainError> {
        let begun = Timestamp::now();
        let environment = environment::of(&webhooks, &meshes).await?;
        let Webhooks { configurations, created, namespace_keys, .. } = webhooks;
        Ok(Self { configurations, meshes, created, environment, namespace_keys, begun })
    }

    /// Judges a pod of a namespace, which is `None` if it is not known.
    ///
    /// # Errors
    /// The mesh cannot decide about the pod.
    pub async fn judge(
        &self,
        pod: &Value,
        namespace: Option<&Namespace>,
    ) -> Result<Judgement, ExplainError> {
        if has_ended(pod) {
            return Ok(Judgement::Ended);
        }
        if pod.pointer("/metadata/annotations/kubernetes.io~1config.mirror").is_some() {
            return Ok(Judgement::Static);
        }
        let found = Sidecar::of(pod);
        let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("/metadata/namespace");
        let request = Request::creates_pod(pod, name);
        let steps = self.configurations.walk(&request, namespace.map(|it| &it.labels));
        let called: Vec<_> =
            injectors::called(&steps).filter(|(product, _)| product.is_known()).collect();
        if called.is_empty() {
            return Ok(not_called(&steps, found.as_ref()));
        }
        self.judge_by(&called, pod, namespace, found).await
    }

    /// Judges by the first mesh that injects the pod. The webhooks of several may be called: Linkerd's
    /// is called for most pods.
    async fn judge_by(
        &self,
        called: &[(Product, &Step<'_>)],
        pod: &Value,
        namespace: Option<&Namespace>,
        found: Option<Sidecar>,
    ) -> Result<Judgement, ExplainError> {
        let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let mut unknown = None;
        for &(product, step) in called {
            let webhook = step.webhook;
            let key = (webhook.configuration.clone(), webhook.name.clone());
            let Some(mesh) = self.meshes.get(&key) else {
                unknown = Some(product);
                continue;
            };
            let before = explain::before_injection(&mesh.profile, pod);
            let facts = CallerFacts {
                namespace_annotations: namespace.map(|it| Arc::clone(&it.annotations)),
                path: &mesh.path,
                ..CallerFacts::default()
            };
            let creation = Creation {
                pod: before.as_ref().unwrap_or(pod),
                namespace: text("/metadata/namespace"),
                checks: Checks::default(),
            };
            match explain::inject(&mesh.profile, creation, facts).await? {
                Ok(None) => {}
                Ok(Some(injected)) => {
                    let now = Sidecar::of(&injected);
                    return Ok(match found {
                        None => {
                            let created = text("/metadata/creationTimestamp");
                            let why = self.why_missing(created, step);
                            Judgement::Wrong(Finding::Missing, why)
                        }
                        Some(found) => match found.differs(now.as_ref()) {
                            Some(difference) => Judgement::Wrong(Finding::Outdated, difference),
                            None => Judgement::Meshed,
                        },
                    });
                }
                Err(denial) => {
                    let reason = format!("the pod would be denied now: {denial}");
                    return Ok(Judgement::Unknown(reason));
                }
            }
        }
        Ok(match (unknown, found) {
            (Some(product), found) => without_mesh(product, found.as_ref()),
            (None, None) => Judgement::Unmeshed,
            (None, Some(found)) => {
                let product = found.product.as_str();
                let why =
                    format!("{product} would not inject the pod now; injectd explain says why");
                Judgement::Wrong(Finding::Unexpected, why)
            }
        })
    }

    fn why_missing(&self, created: &str, step: &Step<'_>) -> String {
        let webhook = self.created.get(&step.webhook.configuration);
        match webhook {
            // RFC 3339 times in UTC compare as texts.
            Some(webhook) if !created.is_empty() && created < webhook.as_str() => {
                format!("created {created}, before the webhook, which was created {webhook}")
            }
            _ => format!(
                "created {created}: the webhook failed then, or what asks for injection came later"
            ),
        }
    }
}

/// The judgement if no webhook of an injector is called.
fn not_called(steps: &[Step<'_>], found: Option<&Sidecar>) -> Judgement {
    let mut injectors =
        steps.iter().filter(|step| Product::of(step.webhook).is_some_and(Product::is_known));
    if let Some(step) = injectors.find(|step| step.verdict == Call::Unknown) {
        return Judgement::Unknown(format!("{}: {}", step.webhook.name, step.reason));
    }
    match found {
        None => Judgement::Unmeshed,
        Some(found) => {
            let why = match injectors::not_called(steps, found.product) {
                Some(missed) => missed.text,
                None => "no webhook of an injector is called".to_owned(),
            };
            Judgement::Wrong(Finding::Unexpected, why)
        }
    }
}

/// The judgement if a webhook is called whose mesh cannot decide here.
fn without_mesh(product: Product, found: Option<&Sidecar>) -> Judgement {
    match found {
        Some(_) => Judgement::NotCompared,
        None => {
            Judgement::Unknown(format!("the configuration of {} is not known", product.as_str()))
        }
    }
}

fn has_ended(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
        || pod.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

#[cfg(test)]
mod tests;
