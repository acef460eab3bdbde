//! Digests of what decides about the sidecars of new pods: restarts that did not help are repeated only
//! after one of them has changed.

use std::{collections::BTreeMap, sync::Arc};

use injectd_webhooks::Configurations;
use serde_json::{Value, json};

use super::{Auditor, Finding, Mesh, Namespace};
use crate::{
    digest::digest,
    explain::{self, Creation, injectors::Product, later::Checks},
    lookups::CallerFacts,
};

/// Annotations of a namespace with this prefix say when restarts take place, and nothing of sidecars.
const OWN_PREFIX: &str = "injectd.dev/";

/// The webhooks of a cluster.
#[derive(Debug)]
pub struct Webhooks {
    /// All of them.
    pub configurations: Configurations,
    /// When their configurations were created, as RFC 3339 texts.
    pub created: BTreeMap<String, String>,
    /// Digest of those of injectors; empty if they are not those of a cluster.
    pub digest: String,
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
        let digest = webhooks_digest(&configurations, objects);
        Self { configurations, created, digest }
    }

    /// Webhooks of files.
    #[must_use]
    pub fn of_files(configurations: Configurations) -> Self {
        Self { configurations, created: BTreeMap::new(), digest: String::new() }
    }
}

fn webhooks_digest(configurations: &Configurations, objects: &[Value]) -> String {
    let injectors = configurations.webhooks().iter().filter(|it| Product::of(it).is_some());
    let injectors: Vec<_> = injectors.map(|it| (&*it.configuration, &*it.name)).collect();
    let mut texts = Vec::new();
    for object in objects {
        let text = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let configuration = text("/metadata/name");
        for webhook in object["webhooks"].as_array().into_iter().flatten() {
            let name = webhook["name"].as_str().unwrap_or_default();
            if injectors.contains(&(configuration, name)) {
                texts.extend([configuration.to_owned(), webhook.to_string()]);
            }
        }
    }
    digest(texts.iter().map(String::as_str))
}

/// Digest of webhooks and meshes; empty for webhooks of files.
pub(super) async fn of(
    webhooks: &Webhooks,
    meshes: &BTreeMap<(String, String), Arc<Mesh>>,
) -> String {
    if webhooks.digest.is_empty() {
        return String::new();
    }
    let mut texts = vec![webhooks.digest.clone()];
    for ((configuration, webhook), mesh) in meshes {
        texts.extend([configuration.clone(), webhook.clone(), injected(mesh).await]);
    }
    digest(texts.iter().map(String::as_str))
}

/// What a mesh makes of a pod that asks each mesh for a sidecar: its configuration shows there.
async fn injected(mesh: &Mesh) -> String {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "injectd", "namespace": "default",
            "annotations": {"linkerd.io/inject": "enabled"},
            "labels": {"sidecar.istio.io/inject": "true"},
        },
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    });
    let facts = CallerFacts { path: &mesh.path, ..CallerFacts::default() };
    let creation = Creation { pod: &pod, namespace: "default", checks: Checks::default() };
    match explain::inject(&mesh.profile, creation, facts).await {
        Ok(Ok(Some(pod))) => pod.to_string(),
        Ok(Ok(None)) => String::new(),
        Ok(Err(denial)) => denial,
        Err(error) => error.to_string(),
    }
}

impl Auditor {
    /// Digest of the environment.
    #[must_use]
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Digest of a finding, of the environment and of the pod's namespace; empty if the environment is
    /// not known.
    pub(super) fn cause(&self, finding: Finding, namespace: Option<&Namespace>) -> String {
        if self.environment.is_empty() {
            return String::new();
        }
        let mut texts = vec![format!("{finding:?}"), self.environment.clone()];
        if let Some(namespace) = namespace {
            let own = |(key, _): &(&str, &str)| !key.starts_with(OWN_PREFIX);
            let annotations = namespace.annotations.iter().map(|(key, value)| (&**key, &**value));
            let labels = namespace.labels.iter().map(|(key, value)| (&**key, &**value));
            for (key, value) in annotations.filter(own).chain([("", "")]).chain(labels) {
                texts.extend([key.to_owned(), value.to_owned()]);
            }
        }
        digest(texts.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(ca: &str, other: &str) -> Vec<Value> {
        let webhook = |name: &str, ca: &str| {
            json!({"name": name, "clientConfig": {"url": "https://a/", "caBundle": ca},
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
    async fn the_cause_changes_with_the_namespace_but_not_with_its_windows() {
        let auditor = Auditor::new(webhooks(&objects("QQ==", "")), BTreeMap::new()).await;
        let cause = |finding, key: &str| {
            let object = json!({"metadata": {"annotations": {key: "value"}}});
            auditor.cause(finding, Some(&Namespace::new(object)))
        };
        let before = cause(Finding::Missing, "injectd.dev/restart");
        assert_eq!(before, cause(Finding::Missing, "injectd.dev/restart-window"));
        assert_ne!(before, cause(Finding::Missing, "linkerd.io/inject"));
        assert_ne!(before, cause(Finding::Outdated, "injectd.dev/restart"));
    }
}
