//! Which pods run without the sidecar that they should have, with an outdated one, or with one that
//! they should not have.
//!
//! A pod is judged as if it were created now: by the webhooks of the cluster, and by the decision of
//! the mesh, which is the one that serves reviews. Memory grows with workloads, not with pods. The cluster
//! is behind a trait (`rim.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use injectd_core::lookups::{CallerFacts, Metadata};
use injectd_explain::{Created, ExplainError};
use injectd_k8s::{
    object::{labels, texts},
    rbac::Rule,
};
use injectd_profiles::Profile;
use injectd_webhooks::{
    Configurations, Labels, Request, Step, Webhook,
    injectors::{self, Product},
};
use jiff::Timestamp;
use serde_json::Value;

pub mod audit_log;
pub mod cluster;
pub mod metrics;
pub mod summary;

mod environment;
mod in_force;
mod memory;
mod rim;
mod sidecar;
mod subject;
mod templates;
mod workload;

pub use self::{
    environment::Webhooks,
    in_force::{InForce, in_force},
    rim::Rim,
    templates::{Meshes, Served},
    workload::{Audited, restart_command},
};
use self::{
    sidecar::Sidecar,
    subject::{Subject, without_mesh},
};

/// The permissions of an audit, without those for the configurations of meshes.
pub const RULES: &[Rule] = &[
    Rule { api_group: "", resources: &["pods", "namespaces"], verbs: &["list"] },
    Rule {
        api_group: "admissionregistration.k8s.io",
        resources: &["mutatingwebhookconfigurations"],
        verbs: &["list"],
    },
    // Sidecar templates, and what they read of pods.
    Rule {
        api_group: "injectd.dev",
        resources: &["clustersidecartemplates", "sidecartemplates"],
        verbs: &["get", "list"],
    },
    Rule {
        api_group: "",
        resources: &["serviceaccounts", "replicationcontrollers"],
        verbs: &["get"],
    },
    Rule { api_group: "apps", resources: &["replicasets"], verbs: &["get"] },
    Rule { api_group: "batch", resources: &["jobs", "cronjobs"], verbs: &["get"] },
];

/// The permissions of an audit in injectd's own namespace: the revisions of templates.
pub const NAMESPACE_RULES: &[Rule] =
    &[Rule { api_group: "apps", resources: &["controllerrevisions"], verbs: &["get", "list"] }];

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
    /// It has a sidecar. Whether it is the right one is unknown.
    NotCompared,
    /// It has no sidecar, and should have none.
    Unmeshed,
    /// It has ended, or is being deleted.
    Ended,
    /// It is a mirror of a pod that a node runs itself, without admission.
    Static,
    /// Unknown, with the reason.
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

/// A namespace of the cluster.
#[derive(Debug, Clone, Default)]
pub struct Namespace {
    /// The object.
    pub object: Value,
    metadata: Arc<Metadata>,
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
    /// Sidecar templates, if those in force are known.
    templates: Option<Served>,
    /// When the configurations of webhooks were created, as RFC 3339 texts.
    created: BTreeMap<String, String>,
    /// Digest of webhooks and meshes; empty if the webhooks are not those of a cluster.
    environment: String,
    /// The keys of namespaces' labels that webhooks select by.
    namespace_keys: BTreeSet<String>,
    /// When the audit began.
    begun: Timestamp,
    /// Whether conditions or templates may read the names of pods.
    names_decide: bool,
}

impl Namespace {
    /// The namespace of an object.
    #[must_use]
    pub fn new(object: Value) -> Self {
        let entries = |pointer| texts(&object, pointer).collect();
        let metadata = Metadata {
            labels: entries("/metadata/labels"),
            annotations: entries("/metadata/annotations"),
        };
        let labels = labels(&object);
        Self { object, metadata: Arc::new(metadata), labels }
    }
}

impl Auditor {
    /// An auditor for the webhooks of a cluster, made before pods are read; `meshes` are those of the
    /// webhooks of injectors, with sidecar templates.
    ///
    /// # Errors
    /// A mesh cannot decide about any pod.
    pub async fn new(webhooks: Webhooks, meshes: impl Into<Meshes>) -> Result<Self, ExplainError> {
        let begun = Timestamp::now();
        let meshes = meshes.into();
        let environment = environment::of(&webhooks, &meshes).await?;
        let Meshes { by_webhook: meshes, templates } = meshes;
        let Webhooks { configurations, created, namespace_keys, .. } = webhooks;
        let names_decide = configurations.has_conditions()
            || meshes.values().any(|mesh| mesh.profile.reads_names())
            || templates.as_ref().is_some_and(Served::reads_names);
        Ok(Self {
            configurations,
            meshes,
            templates,
            created,
            environment,
            namespace_keys,
            begun,
            names_decide,
        })
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
        self.judge_with(pod, namespace, &mut Vec::new()).await
    }

    /// The same; `tainted` gets what values of the pod are counted as that change other fields than
    /// their own.
    async fn judge_with(
        &self,
        pod: &Value,
        namespace: Option<&Namespace>,
        tainted: &mut Vec<&'static str>,
    ) -> Result<Judgement, ExplainError> {
        if has_ended(pod) {
            return Ok(Judgement::Ended);
        }
        // A kubelet runs it from a file of its node: a webhook changes only the copy of it that the
        // API server has.
        if pod.pointer("/metadata/annotations/kubernetes.io~1config.mirror").is_some() {
            return Ok(Judgement::Static);
        }
        let name = pod.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        let found = Sidecar::of(pod);
        // A new pod has no sidecar yet, and conditions may look for one.
        let before = found.as_ref().and_then(|found| self.before_injection(found, pod, namespace));
        let (written, found) = (before.as_ref().unwrap_or(pod), found.as_ref());
        let request = Request::creates_pod(written, name);
        let steps =
            self.configurations.walk(&request, namespace.map(|namespace| &namespace.labels));
        let subject = Subject { pod: written, found, namespace, steps: &steps };
        let of_mesh = self.judge_creation(subject, tainted).await?;
        Ok(self.and_templates(of_mesh, pod, subject).await)
    }

    /// The pod without its sidecar, by the configuration of the mesh that added it: of the same
    /// revision, if it is known. `None` if nothing is known of that mesh.
    fn before_injection(
        &self,
        found: &Sidecar,
        pod: &Value,
        namespace: Option<&Namespace>,
    ) -> Option<Value> {
        let webhooks = self.configurations.webhooks().iter();
        let own = webhooks.filter(|webhook| webhook.product() == Some(found.product));
        let known = own.filter_map(|webhook| {
            let mesh = self.mesh_of(webhook)?;
            Some((found.revision.as_deref() == Some(webhook.istio_revision()), mesh))
        });
        // Of several, the first.
        let (_, mesh) = known.reduce(|one, other| if other.0 && !one.0 { other } else { one })?;
        let annotations = namespace.map(|namespace| &*namespace.metadata.annotations);
        let annotations = annotations.unwrap_or_default();
        injectd_explain::before_injection(&mesh.profile, pod, annotations)
    }

    /// The mesh that decides for a webhook, if it is known.
    fn mesh_of(&self, webhook: &Webhook) -> Option<&Arc<Mesh>> {
        self.meshes.get(&(webhook.configuration.clone(), webhook.name.clone()))
    }

    /// Judges by the first mesh that injects the pod. The webhooks of several may be called: Linkerd's
    /// is called for most pods.
    async fn judge_creation(
        &self,
        subject: Subject<'_>,
        tainted: &mut Vec<&'static str>,
    ) -> Result<Judgement, ExplainError> {
        if let Some(rejected) = injectors::rejected(subject.steps) {
            return Ok(subject.rejected(&rejected));
        }
        let found = subject.found;
        let mut decided = Vec::new();
        let mut unknown = None;
        let called = injectors::called(subject.steps);
        let is_mesh = |product: Product| product.is_known() && product != Product::Templates;
        for (product, step) in called.filter(|(product, _)| is_mesh(*product)) {
            let Some(mesh) = self.mesh_of(step.webhook) else {
                unknown = Some(product);
                continue;
            };
            decided.push(product);
            let created = inject(mesh, subject).await?;
            tainted.extend(created.tainted);
            match created.pod {
                Ok(None) => {}
                Ok(Some(injected)) => {
                    let now = Sidecar::of(&injected);
                    return Ok(self.compared(now.as_ref(), subject, step));
                }
                Err(denial) => {
                    let reason = format!("the pod would be denied now: {denial}");
                    return Ok(Judgement::Unknown(reason));
                }
            }
        }
        Ok(match unknown {
            Some(product) => without_mesh(product, found),
            None => subject.not_injected(&decided),
        })
    }

    /// The judgement on a pod that would be injected now.
    fn compared(&self, now: Option<&Sidecar>, subject: Subject<'_>, step: &Step<'_>) -> Judgement {
        // A proxy of the pod's own template is no sidecar before Istio injects it; Linkerd leaves it as
        // it is.
        let is_sidecar = |found: &Sidecar| found.is_injected || found.product != Product::Istio;
        let Some(found) = subject.found.filter(|found| is_sidecar(found)) else {
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
            _ if created.is_empty() => {
                "the webhook failed when it was created, or injection was enabled later".to_owned()
            }
            _ => {
                format!(
                    "created {created}: the webhook failed then, or injection was enabled later"
                )
            }
        }
    }
}

/// What a mesh makes of the pod now.
async fn inject(mesh: &Mesh, subject: Subject<'_>) -> Result<Created, ExplainError> {
    let facts = CallerFacts {
        namespace: subject.namespace.map(|namespace| Arc::clone(&namespace.metadata)),
        path: &mesh.path,
        ..CallerFacts::default()
    };
    injectd_explain::inject(&mesh.profile, subject.creation(), facts).await
}

fn has_ended(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    matches!(phase, Some("Succeeded" | "Failed"))
        || pod.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

#[cfg(test)]
mod tests;
