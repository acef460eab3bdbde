//! Digests of what decides about the sidecars of new pods: restarts that did not help are repeated only
//! after one of them has changed.

use std::collections::{BTreeMap, BTreeSet};

use injectd_cluster::digest::digest;
use injectd_core::lookups::{CallerFacts, Metadata};
use injectd_explain::{Creation, ExplainError, later::Checks};
use injectd_k8s::selector::LabelSelector;
use injectd_webhooks::Configurations;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Auditor, Finding, Mesh, Meshes, Namespace, Served};
use crate::restart::Evidence;

/// The domains of the labels and annotations of a namespace that injectors read. Others are written by
/// any controller, for any reason.
const DOMAINS: [&str; 2] = ["linkerd.io", "istio.io"];
/// The namespace of the pod that shows what a mesh injects. No namespace has a name with a dot, so that
/// this one has no annotations and no objects.
const NO_NAMESPACE: &str = "injectd.sample";

/// The webhooks of a cluster.
#[derive(Debug)]
pub struct Webhooks {
    /// All of them.
    pub configurations: Configurations,
    /// When their configurations were created, as RFC 3339 texts.
    pub created: BTreeMap<String, String>,
    /// Digest of those of injectors; empty if they are not those of a cluster.
    pub digest: String,
    /// The keys of namespaces' labels that the injectors' webhooks select by.
    pub namespace_keys: BTreeSet<String>,
}

impl Webhooks {
    /// The webhooks of these objects. The digest has all fields of injectors' webhooks, their
    /// `caBundle` included.
    pub(super) fn new(configurations: Configurations, objects: &[Value]) -> Self {
        let text = |object: &Value, field: &str| Some(object.pointer(field)?.as_str()?.to_owned());
        let created = objects.iter().filter_map(|object| {
            let name = text(object, "/metadata/name")?;
            Some((name, text(object, "/metadata/creationTimestamp")?))
        });
        let created = created.collect();
        let of_injectors = of_injectors(&configurations, objects);
        let texts = of_injectors
            .iter()
            .flat_map(|(name, webhook)| [(*name).to_owned(), webhook.to_string()]);
        let texts: Vec<_> = texts.collect();
        let digest = digest(texts.iter().map(String::as_str));
        let namespace_keys =
            of_injectors.iter().flat_map(|(_, webhook)| selected_keys(webhook)).collect();
        Self { configurations, created, digest, namespace_keys }
    }

    /// Webhooks of files.
    #[must_use]
    pub fn of_files(configurations: Configurations) -> Self {
        let (created, namespace_keys) = (BTreeMap::new(), BTreeSet::new());
        Self { configurations, created, digest: String::new(), namespace_keys }
    }
}

/// The webhooks of injectors as they are written, each with the name of its configuration.
fn of_injectors<'o>(
    configurations: &Configurations,
    objects: &'o [Value],
) -> Vec<(&'o str, &'o Value)> {
    let injectors = configurations.webhooks().iter().filter(|webhook| webhook.injector.is_some());
    let injectors: BTreeSet<_> =
        injectors.map(|webhook| (&*webhook.configuration, &*webhook.name)).collect();
    let mut found = Vec::new();
    for object in objects {
        let configuration = object.pointer("/metadata/name").and_then(Value::as_str);
        let configuration = configuration.unwrap_or_default();
        for webhook in object["webhooks"].as_array().into_iter().flatten() {
            let name = webhook["name"].as_str().unwrap_or_default();
            if injectors.contains(&(configuration, name)) {
                found.push((configuration, webhook));
            }
        }
    }
    found
}

/// The keys of a webhook's namespaceSelector.
fn selected_keys(webhook: &Value) -> impl Iterator<Item = String> {
    let selector = LabelSelector::deserialize(&webhook["namespaceSelector"]).unwrap_or_default();
    let expressions = selector.match_expressions.into_iter().map(|expression| expression.key);
    selector.match_labels.into_keys().chain(expressions)
}

/// Digest of webhooks and meshes; empty for webhooks of files.
pub(super) async fn of(webhooks: &Webhooks, meshes: &Meshes) -> Result<String, ExplainError> {
    if webhooks.digest.is_empty() {
        return Ok(String::new());
    }
    let mut texts = vec![webhooks.digest.clone()];
    for ((configuration, webhook), mesh) in &meshes.by_webhook {
        texts.extend([configuration.clone(), webhook.clone(), injected(mesh).await?]);
    }
    texts.extend(meshes.templates.iter().flat_map(Served::revisions));
    Ok(digest(texts.iter().map(String::as_str)))
}

/// What a mesh makes of a pod that asks each mesh for a sidecar: its configuration shows there.
async fn injected(mesh: &Mesh) -> Result<String, ExplainError> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "injectd", "namespace": NO_NAMESPACE,
            "annotations": {"linkerd.io/inject": "enabled"},
            "labels": {"sidecar.istio.io/inject": "true"},
        },
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    });
    let facts = CallerFacts {
        namespace: Some(Metadata::none()),
        path: &mesh.path,
        ..CallerFacts::default()
    };
    let creation = Creation { pod: &pod, namespace: NO_NAMESPACE, checks: Checks::default() };
    Ok(match injectd_explain::inject(&mesh.profile, creation, facts).await?.pod {
        Ok(Some(pod)) => pod.to_string(),
        Ok(None) => String::new(),
        Err(denial) => denial,
    })
}

impl Auditor {
    /// Digest of the environment; empty if the webhooks are not those of a cluster.
    #[must_use]
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// When the audit began.
    #[must_use]
    pub fn begun(&self) -> Timestamp {
        self.begun
    }

    /// What a restart must know of a finding about a pod of a namespace; nothing if the environment is
    /// not known.
    pub(super) fn evidence(&self, finding: Finding, namespace: Option<&Namespace>) -> Evidence {
        if self.environment.is_empty() {
            return Evidence::default();
        }
        Evidence {
            audited: self.begun.to_string(),
            environment: self.environment.clone(),
            cause: self.cause(finding, namespace),
            ..Evidence::default()
        }
    }

    /// Digest of a finding, of the environment and of what injectors read of the pod's namespace.
    fn cause(&self, finding: Finding, namespace: Option<&Namespace>) -> String {
        let mut texts = vec![format!("{finding:?}"), self.environment.clone()];
        if let Some(namespace) = namespace {
            let annotations = namespace.metadata.annotations.iter();
            let annotations = annotations.map(|(key, value)| (&**key, &**value));
            let labels = namespace.labels.iter().map(|(key, value)| (&**key, &**value));
            let of_templates = self.templates.as_ref().map(Served::namespace_reads);
            let of_templates = of_templates.unwrap_or_default();
            let is_read = |(key, _): &(&str, &str)| {
                is_of_injectors(key)
                    || self.namespace_keys.contains(*key)
                    || of_templates.labels.has(key)
            };
            let annotations = annotations
                .filter(|(key, _)| is_of_injectors(key) || of_templates.annotations.has(key));
            // The empty pair is between annotations and labels: a key that moves from one to the
            // other changes the digest.
            for (key, value) in annotations.chain([("", "")]).chain(labels.filter(is_read)) {
                texts.extend([key.to_owned(), value.to_owned()]);
            }
        }
        digest(texts.iter().map(String::as_str))
    }
}

/// Whether the domain of a key is one of [`DOMAINS`], or below it.
fn is_of_injectors(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    DOMAINS.iter().any(|suffix| {
        domain.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use injectd_profiles::Profile;

    use super::*;

    fn objects(ca: &str, other: &str) -> Vec<Value> {
        let webhook = |name: &str, ca: &str| {
            json!({"name": name, "clientConfig": {"url": "https://a/", "caBundle": ca},
                "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"})
        };
        vec![json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "a", "creationTimestamp": "2026-11-29T12:00:00Z"},
            "webhooks": [
                webhook("linkerd-proxy-injector.linkerd.io", ca),
                webhook("other.example.com", other),
            ],
        })]
    }

    fn webhooks(objects: &[Value]) -> Webhooks {
        Webhooks::new(Configurations::read(objects).expect("configurations"), objects)
    }

    #[test]
    fn only_webhooks_of_injectors_change_the_digest() {
        let digest = |ca, other| webhooks(&objects(ca, other)).digest;
        assert_eq!(digest("QQ==", "QQ=="), digest("QQ==", "Qg=="));
        assert_ne!(digest("QQ==", "QQ=="), digest("Qg==", "QQ=="));
        assert_eq!(webhooks(&objects("QQ==", "")).created["a"], "2026-11-29T12:00:00Z");
    }

    #[tokio::test]
    async fn the_cause_changes_with_what_injectors_read_of_the_namespace() {
        let webhooks = webhooks(&objects("QQ==", ""));
        let auditor = Auditor::new(webhooks, BTreeMap::new()).await.expect("an auditor");
        let cause = |finding, kind: &str, key: &str| {
            let object = json!({"metadata": {kind: {key: "value"}}});
            auditor.evidence(finding, Some(&Namespace::new(object))).cause
        };
        let before = cause(Finding::Missing, "annotations", "injectd.dev/restart");
        for (kind, key) in [
            ("annotations", "injectd.dev/restart-window"),
            ("annotations", "example.com/seen"),
            ("annotations", "notlinkerd.io/inject"),
            ("annotations", "team"),
            ("labels", "linkerd.io.example.com/inject"),
            ("labels", "other"),
        ] {
            assert_eq!(before, cause(Finding::Missing, kind, key), "{kind} {key}");
        }
        for (kind, key) in [
            ("annotations", "linkerd.io/inject"),
            ("annotations", "config.linkerd.io/proxy-log-level"),
            ("labels", "topology.istio.io/network"),
            ("labels", "istio.io/rev"),
            ("labels", "team"),
        ] {
            assert_ne!(before, cause(Finding::Missing, kind, key), "{kind} {key}");
        }
        assert_ne!(before, cause(Finding::Outdated, "annotations", "injectd.dev/restart"));
    }

    /// It is asked for in a namespace that cannot exist.
    #[tokio::test]
    async fn what_a_mesh_injects_shows_in_the_sample() {
        let linkerd = Profile::Linkerd(Arc::new(injectd_testkit::injector()));
        let istio = Profile::Istio(Arc::new(injectd_testkit::istio::injector()));
        for (profile, path, proxy) in
            [(linkerd, "/", "linkerd-proxy"), (istio, "/inject", "istio-proxy")]
        {
            let sample = injected(&Mesh { profile, path: path.into() }).await.expect("an answer");
            assert!(sample.contains(proxy), "{sample}");
        }
    }
}
