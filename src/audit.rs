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

use injectd_webhooks::{
    Configurations, Labels, Request, Step, Verdict as Call,
    injectors::{self, Missed, Product},
};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    explain::{self, Creation, ExplainError, later::Checks},
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
    /// It has its sidecar, and no webhook would be called: a new pod would get none.
    Unserved {
        /// The mesh.
        product: Product,
        /// Whether the mesh has a webhook.
        has_webhook: bool,
    },
    /// It has no sidecar, something asks for one, and no webhook would be called: a restart changes
    /// nothing.
    Uncalled {
        /// The mesh whose sidecar it should have.
        product: Product,
        /// What asks, and why no webhook is called.
        reason: String,
        /// Whether the mesh has a webhook.
        has_webhook: bool,
    },
    /// Something is wrong; the reason.
    Wrong(Finding, String),
}

/// A pod that is judged, and what is known of it.
#[derive(Debug, Clone, Copy)]
struct Subject<'s> {
    pod: &'s Value,
    /// `None` if it is not known.
    namespace: Option<&'s Namespace>,
    steps: &'s [Step<'s>],
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
        let name = pod.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        let request = Request::creates_pod(pod, name);
        let steps = self.configurations.walk(&request, namespace.map(|it| &it.labels));
        self.judge_creation(Subject { pod, namespace, steps: &steps }).await
    }

    /// Judges by the first mesh that injects the pod. The webhooks of several may be called: Linkerd's
    /// is called for most pods.
    async fn judge_creation(&self, subject: Subject<'_>) -> Result<Judgement, ExplainError> {
        let found = Sidecar::of(subject.pod);
        let mut decided = Vec::new();
        let mut unknown = None;
        let called = injectors::called(subject.steps);
        for (product, step) in called.filter(|(product, _)| product.is_known()) {
            let key = (step.webhook.configuration.clone(), step.webhook.name.clone());
            let Some(mesh) = self.meshes.get(&key) else {
                unknown = Some(product);
                continue;
            };
            decided.push(product);
            match inject(mesh, subject).await? {
                Ok(None) => {}
                Ok(Some(injected)) => {
                    let now = Sidecar::of(&injected);
                    return Ok(self.compared(found.as_ref(), now.as_ref(), subject, step));
                }
                Err(denial) => {
                    let reason = format!("the pod would be denied now: {denial}");
                    return Ok(Judgement::Unknown(reason));
                }
            }
        }
        Ok(match unknown {
            Some(product) => without_mesh(product, found.as_ref()),
            None => subject.not_injected(found.as_ref(), &decided),
        })
    }

    /// The judgement on a pod that would be injected now.
    fn compared(
        &self,
        found: Option<&Sidecar>,
        now: Option<&Sidecar>,
        subject: Subject<'_>,
        step: &Step<'_>,
    ) -> Judgement {
        // A proxy of the pod's own template is no sidecar before Istio injects it; Linkerd leaves it as
        // it is.
        let is_sidecar = |found: &&Sidecar| found.is_injected || found.product != Product::Istio;
        let Some(found) = found.filter(is_sidecar) else {
            let created = subject.pod.pointer("/metadata/creationTimestamp");
            let created = created.and_then(Value::as_str).unwrap_or_default();
            return Judgement::Wrong(Finding::Missing, self.why_missing(created, step));
        };
        if !found.is_injected {
            return Judgement::NotCompared;
        }
        match found.differs(now) {
            Some(difference) => Judgement::Wrong(Finding::Outdated, difference),
            None => Judgement::Meshed,
        }
    }

    fn why_missing(&self, created: &str, step: &Step<'_>) -> String {
        let webhook = self.created.get(&step.webhook.configuration);
        match webhook {
            // RFC 3339 times in UTC compare as texts.
            Some(webhook) if !created.is_empty() && created < webhook.as_str() => {
                format!("created {created}, before the webhook, which was created {webhook}")
            }
            _ if created.is_empty() => "the webhook failed when it was created, or what asks for \
                                        injection came later"
                .to_owned(),
            _ => format!(
                "created {created}: the webhook failed then, or what asks for injection came later"
            ),
        }
    }
}

/// What a mesh makes of the pod now.
async fn inject(
    mesh: &Mesh,
    subject: Subject<'_>,
) -> Result<Result<Option<Value>, String>, ExplainError> {
    let before = explain::before_injection(&mesh.profile, subject.pod);
    let facts = CallerFacts {
        namespace_annotations: subject.namespace.map(|it| Arc::clone(&it.annotations)),
        path: &mesh.path,
        ..CallerFacts::default()
    };
    let creation = subject.creation();
    let creation = Creation { pod: before.as_ref().unwrap_or(subject.pod), ..creation };
    explain::inject(&mesh.profile, creation, facts).await
}

impl<'s> Subject<'s> {
    fn creation(self) -> Creation<'s> {
        Creation {
            pod: self.pod,
            namespace: self.namespace_name(),
            checks: Checks { namespace: self.namespace.map(|it| &it.object), ..Checks::default() },
        }
    }

    /// The judgement on a pod that no mesh would inject now; those that decided so are named.
    fn not_injected(self, found: Option<&Sidecar>, decided: &[Product]) -> Judgement {
        let known = [Product::Istio, Product::Linkerd].into_iter();
        let undecided: Vec<_> = known.filter(|product| !decided.contains(product)).collect();
        let namespace = self.namespace.map_or(&Value::Null, |it| &it.object);
        let asks = |product| injectors::asks_for(product, self.pod, namespace);
        let asked = undecided.iter().find_map(|product| Some((*product, asks(*product)?)));
        match (asked, found) {
            (Some((product, by)), found) if found.is_none_or(|it| it.product != product) => {
                self.uncalled(product, &by)
            }
            (Some((product, _)), _) => self.unserved(product),
            (None, None) => {
                // Linkerd injects only what asks for it, and none of the network of its node.
                let may_ask =
                    |product: &&Product| **product != Product::Linkerd || self.namespace.is_none();
                let mut undecided = undecided.iter().filter(may_ask);
                let doubt = undecided.find_map(|product| self.may_be_called(*product));
                doubt.unwrap_or(Judgement::Unmeshed)
            }
            (None, Some(found)) => self.unexpected(found, decided),
        }
    }

    /// The judgement on a sidecar that nothing asks for.
    fn unexpected(self, found: &Sidecar, decided: &[Product]) -> Judgement {
        let product = found.product;
        if !found.is_injected {
            return Judgement::NotCompared;
        }
        if decided.contains(&product) {
            let name = product.as_str();
            let why = format!("{name} would not inject the pod now; injectd explain says why");
            return Judgement::Wrong(Finding::Unexpected, why);
        }
        if !self.has_webhook(product) {
            return Judgement::Unserved { product, has_webhook: false };
        }
        match self.missed(product) {
            Some(missed) if missed.is_doubt => Judgement::Unknown(missed.text),
            Some(missed) => Judgement::Wrong(Finding::Unexpected, missed.text),
            None => Judgement::NotCompared,
        }
    }

    /// The judgement on a pod without the sidecar that something asks for.
    fn uncalled(self, product: Product, by: &str) -> Judgement {
        match self.missed(product) {
            Some(missed) if missed.is_doubt => Judgement::Unknown(missed.text),
            Some(missed) => Judgement::Uncalled {
                product,
                reason: format!("{by} asks for the sidecar, but {}", missed.text),
                has_webhook: self.has_webhook(product),
            },
            None => without_mesh(product, None),
        }
    }

    /// The judgement on a pod that has the sidecar that something asks for.
    fn unserved(self, product: Product) -> Judgement {
        match self.missed(product) {
            Some(missed) if missed.is_doubt => Judgement::Unknown(missed.text),
            Some(_) => Judgement::Unserved { product, has_webhook: self.has_webhook(product) },
            None => Judgement::NotCompared,
        }
    }

    /// Why no webhook of a product would be called.
    fn missed(self, product: Product) -> Option<Missed> {
        let request = Request::creates_pod(self.pod, self.namespace_name());
        injectors::missed(self.steps, product, &request, self.namespace.map(|it| &it.labels))
    }

    fn namespace_name(self) -> &'s str {
        let name = self.pod.pointer("/metadata/namespace").and_then(Value::as_str);
        name.unwrap_or_default()
    }

    fn has_webhook(self, product: Product) -> bool {
        injectors::furthest(self.steps, product).is_some()
    }

    /// A judgement if the webhook of a product may be called.
    fn may_be_called(self, product: Product) -> Option<Judgement> {
        let step = injectors::furthest(self.steps, product)?;
        let text = || format!("{}: {}", step.webhook.name, step.reason);
        (step.verdict == Call::Unknown).then(|| Judgement::Unknown(text()))
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
