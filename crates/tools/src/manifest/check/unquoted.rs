//! The templates in Istio's `ConfigMap`s: which values of a pod reach YAML unquoted.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use injectd_cluster::{
    Pages, causes::with_causes, objects::ConfigMap, sources::Sources, watch::Update,
};
use injectd_core::standalone::Standalone;
use injectd_istio::leaks::{self, Leak};
use injectd_profiles::{
    Revisions,
    control_plane::{Change, ControlPlane, ISTIO_NAMESPACE, Note, Settings, injector_name},
};
use injectd_webhooks::{
    Configurations,
    check::{Finding, Severity},
    injectors::Product,
};
use kube::Client;
use serde_json::{Value, json};

const KIND: &str = "ConfigMap";
const ADVICE: &str = "Pipe the value through quote in the template, or use a release of Istio that \
                      does. Until then serve with --tainted-values deny.";

/// What the templates of all `ConfigMap`s paste without quotes.
#[derive(Debug, Default)]
pub(super) struct Unquoted {
    /// How many `ConfigMap`s with templates were checked.
    pub(super) config_maps: usize,
    /// Why others were not, and what else is wrong with them.
    pub(super) notes: Vec<String>,
    /// What leaks, with the name of the `ConfigMap`.
    leaks: Vec<(String, Leak)>,
}

/// The namespaces that may have Istio's `ConfigMap`s: its own, and those of its webhooks.
pub(super) fn namespaces(objects: &[Value]) -> BTreeSet<String> {
    let read = Configurations::read(objects).ok();
    let webhooks = read.iter().flat_map(Configurations::webhooks);
    let istio = webhooks.filter(|webhook| webhook.product() == Some(Product::Istio));
    let own = istio.filter_map(|webhook| webhook.namespace.clone());
    own.chain([ISTIO_NAMESPACE.to_owned()]).collect()
}

/// The `ConfigMap`s of a namespace of a cluster.
///
/// # Errors
/// They cannot be read; a note for people.
pub(super) async fn config_maps(client: &Client, namespace: &str) -> Result<Vec<Value>, String> {
    let pages = Pages::new(client, format!("/api/v1/namespaces/{namespace}/configmaps"));
    let mut objects: Vec<Value> = pages.all().await.map_err(|error| {
        let error = with_causes(&error);
        format!("the ConfigMaps of namespace {namespace} were not checked: {error}")
    })?;
    for object in &mut objects {
        // Lists leave it out.
        object["kind"] = KIND.into();
    }
    Ok(objects)
}

/// Checks the `ConfigMap`s of Istio's revisions; other objects are skipped.
pub(super) fn check(objects: &[Value]) -> Unquoted {
    let mut namespaces = BTreeMap::<&str, Vec<ConfigMap>>::new();
    let mut found = Unquoted::default();
    for object in objects.iter().filter(|object| object["kind"] == KIND) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(ISTIO_NAMESPACE);
        match serde_json::from_value(object.clone()) {
            Ok(map) => namespaces.entry(namespace).or_default().push(map),
            Err(error) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                found.notes.push(format!("ConfigMap {namespace}/{name} was not checked: {error}"));
            }
        }
    }
    for (namespace, maps) in namespaces {
        found.add(namespace, maps);
    }
    found
}

impl Unquoted {
    /// Reads the `ConfigMap`s of a namespace as a control plane does.
    fn add(&mut self, namespace: &str, maps: Vec<ConfigMap>) {
        let settings = Settings { namespace: namespace.to_owned(), ..Settings::default() };
        let sources = Sources::from(Standalone::default());
        let mut control_plane =
            ControlPlane::new(settings, sources, Arc::new(Revisions::default()));
        control_plane.apply(Change::ConfigMaps(None, Update::Listed(maps)));
        control_plane.apply(Change::Nodes(Update::Listed(Vec::new())));
        control_plane.apply(Change::ProxyConfigs(Update::Listed(Vec::new())));
        control_plane.settle();
        for note in control_plane.take_notes() {
            match note {
                Note::Applied { revision, mesh } => {
                    self.config_maps += 1;
                    let name = injector_name(&revision);
                    let leaks = leaks::of(mesh.revision()).into_iter();
                    self.leaks.extend(leaks.map(|leak| (name.clone(), leak)));
                }
                Note::Rejected { problem, .. } => {
                    self.notes.push(format!("not checked: {problem}"));
                }
                Note::Warning(text) => self.notes.push(text),
                Note::Removed { .. } => {}
            }
        }
    }

    /// A finding for each value and template.
    pub(super) fn findings(&self) -> impl Iterator<Item = Finding> {
        self.leaks.iter().map(|(name, leak)| Finding {
            severity: Severity::Warning,
            configuration: name.clone(),
            webhook: None,
            field: format!("config.templates.{}", leak.template),
            problem: leak.to_string(),
            advice: ADVICE.to_owned(),
        })
    }

    /// The same for programs.
    pub(super) fn as_json(&self) -> Vec<Value> {
        let leak = |(name, leak): &(String, Leak)| {
            json!({
                "configMap": name, "template": leak.template, "value": leak.source.to_string(),
                "lines": leak.lines,
            })
        };
        self.leaks.iter().map(leak).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_maps_are_read_where_webhooks_of_istio_lead() {
        let configuration = |name: &str, service: Value| {
            json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": name},
                "webhooks": [{"name": name, "clientConfig": {"service": service}}]})
        };
        let istio = json!({"name": "istiod", "namespace": "mesh", "path": "/inject"});
        let other = json!({"name": "policies", "namespace": "policies"});
        let objects = [
            configuration("rev.sidecar-injector.istio.io", istio),
            configuration("policies.example.com", other),
        ];
        let expected = [ISTIO_NAMESPACE, "mesh"].map(str::to_owned);
        assert_eq!(namespaces(&objects), BTreeSet::from(expected));
    }

    #[test]
    fn config_maps_of_each_namespace_are_revisions_of_their_own() {
        let map = |namespace: &str, name: &str, template: &str| {
            let config = format!("policy: enabled\ntemplates:\n  sidecar: '{template}'\n");
            json!({"kind": KIND, "metadata": {"namespace": namespace, "name": name},
                "data": {"config": config, "values": "{}"}})
        };
        let pasted = "metadata: {labels: {a: {{ .ObjectMeta.Name }}}}";
        let found = check(&[
            map("a", "istio-sidecar-injector", pasted),
            map("b", "istio-sidecar-injector", "{}"),
            map("b", "istio-sidecar-injector-canary", pasted),
            json!({"kind": KIND, "metadata": {"name": "other"}, "data": {"config": "x"}}),
        ]);
        let names: Vec<_> = found.leaks.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["istio-sidecar-injector", "istio-sidecar-injector-canary"]);
        assert_eq!(found.config_maps, 3);
    }
}
