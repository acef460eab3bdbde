//! The templates in Istio's `ConfigMap`s: which values of a pod reach YAML unquoted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use injectd_cluster::{
    Pages, causes::with_causes, objects::ConfigMap, sources::Sources, watch::Update,
};
use injectd_core::standalone::Standalone;
use injectd_istio::{
    budget::{Budget, MAX_CHECK_STEPS},
    leaks::{self, Leak, Unfinished},
};
use injectd_profiles::{
    Revisions,
    control_plane::{
        Change, ControlPlane, ISTIO_NAMESPACE, Note, Settings, injector_name, mesh_name,
    },
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

const ADVICE_UNFINISHED: &str = "Remove templates that no pod asks for, and loops over long lists. Or check \
                                 the ConfigMaps one by one, in files: each run has a budget of its own.";

/// What the templates of all `ConfigMap`s paste without quotes.
#[derive(Debug, Default)]
pub(super) struct Unquoted {
    /// How many `ConfigMap`s with templates were checked.
    pub(super) config_maps: usize,
    /// Why others were not, and what else is wrong with them.
    pub(super) notes: Vec<String>,
    /// What leaks.
    leaks: Vec<(Place, Leak)>,
    /// The `ConfigMap`s whose templates were not all checked.
    unfinished: Vec<(Place, Unfinished)>,
}

/// A `ConfigMap`.
#[derive(Debug, Clone)]
struct Place {
    namespace: String,
    name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name } = self;
        if namespace == ISTIO_NAMESPACE {
            f.write_str(name)
        } else {
            write!(f, "{namespace}/{name}")
        }
    }
}

/// The namespaces that may have Istio's `ConfigMap`s: its own, and those of its webhooks.
pub(super) fn namespaces(objects: &[Value]) -> BTreeSet<String> {
    let read = Configurations::read(objects).ok();
    let webhooks = read.iter().flat_map(Configurations::webhooks);
    let istio = webhooks.filter(|webhook| webhook.product() == Some(Product::Istio));
    let own = istio.filter_map(|webhook| webhook.namespace.clone());
    own.chain([ISTIO_NAMESPACE.to_owned()]).collect()
}

/// Istio's `ConfigMap`s of a namespace of a cluster.
///
/// # Errors
/// They cannot be read; a note for people.
pub(super) async fn config_maps(client: &Client, namespace: &str) -> Result<Vec<Value>, String> {
    let mut pages = Pages::new(client, format!("/api/v1/namespaces/{namespace}/configmaps"));
    let mut objects = Vec::new();
    while let Some(page) = pages.next::<Value>().await.map_err(|error| {
        let error = with_causes(&error);
        format!("the ConfigMaps of namespace {namespace} were not checked: {error}")
    })? {
        // A namespace may have many others.
        objects.extend(page.items.into_iter().filter(has_name_of_istio));
    }
    for object in &mut objects {
        // Lists leave it out.
        object["kind"] = KIND.into();
    }
    Ok(objects)
}

/// Whether a `ConfigMap` may have templates or the mesh config of a revision.
fn has_name_of_istio(object: &Value) -> bool {
    object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(&mesh_name("")))
}

/// Checks the `ConfigMap`s of Istio's revisions; other objects are skipped.
pub(super) fn check(objects: &[Value]) -> Unquoted {
    check_within(objects, &Budget::of_check(MAX_CHECK_STEPS))
}

fn check_within(objects: &[Value], budget: &Budget<'_>) -> Unquoted {
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
        found.add(namespace, maps, budget);
    }
    found
}

impl Unquoted {
    /// Reads the `ConfigMap`s of a namespace as a control plane does.
    fn add(&mut self, namespace: &str, maps: Vec<ConfigMap>, budget: &Budget<'_>) {
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
                    let namespace = namespace.to_owned();
                    let place = Place { namespace, name: injector_name(&revision) };
                    let found = leaks::within(mesh.revision(), budget);
                    self.leaks.extend(found.leaks.into_iter().map(|leak| (place.clone(), leak)));
                    self.unfinished.extend(found.unfinished.map(|unfinished| (place, unfinished)));
                }
                Note::Rejected { problem, .. } => {
                    self.notes.push(format!("not checked: {problem}"));
                }
                Note::Warning(text) => self.notes.push(text),
                Note::Removed { .. } => {}
            }
        }
    }

    /// A finding for each value and template, and for each check that ended early.
    pub(super) fn findings(&self) -> impl Iterator<Item = Finding> {
        let leaks = self.leaks.iter().map(|(place, leak)| {
            let (problem, advice) = (leak.to_string(), ADVICE.to_owned());
            finding(place, &leak.template, problem, advice)
        });
        let unfinished = self.unfinished.iter().map(|(place, unfinished)| {
            let (problem, advice) = (unfinished.to_string(), ADVICE_UNFINISHED.to_owned());
            finding(place, &unfinished.template, problem, advice)
        });
        leaks.chain(unfinished)
    }

    /// The same for programs.
    pub(super) fn as_json(&self) -> Vec<Value> {
        let leak = |(place, leak): &(Place, Leak)| {
            json!({
                "namespace": place.namespace, "configMap": place.name, "template": leak.template, "value": leak.source.to_string(),
                "lines": leak.lines,
            })
        };
        self.leaks.iter().map(leak).collect()
    }
}

/// A finding about a template.
fn finding(place: &Place, template: &str, problem: String, advice: String) -> Finding {
    Finding {
        severity: Severity::Warning,
        configuration: place.to_string(),
        webhook: None,
        field: format!("config.templates.{template}"),
        problem,
        advice,
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
        let names: Vec<_> = found.findings().map(|found| found.configuration).collect();
        assert_eq!(names, ["a/istio-sidecar-injector", "b/istio-sidecar-injector-canary"]);
        assert_eq!(found.config_maps, 3);
    }

    #[test]
    fn a_config_map_that_takes_the_budget_is_named_and_those_after_it() {
        let heavy = "{{ range until 40000 }}{{ end }}{{ .ObjectMeta.Name }}";
        let templates = (0..100).map(|index| format!("  t{index}: '{heavy}'\n"));
        let config = format!("policy: enabled\ntemplates:\n{}", templates.collect::<String>());
        let map = |name: &str, config: &str| {
            json!({"kind": KIND, "metadata": {"namespace": "a", "name": name},
                "data": {"config": config, "values": "{}"}})
        };
        let plain = "policy: enabled\ntemplates: {sidecar: '{}'}";
        let maps =
            [map("istio-sidecar-injector-a", &config), map("istio-sidecar-injector-b", plain)];
        let found = check_within(&maps, &Budget::of_check(1_000_000));
        let ended: Vec<_> =
            found.findings().filter(|one| one.advice == ADVICE_UNFINISHED).collect();
        let names: Vec<_> = ended.iter().map(|one| one.configuration.as_str()).collect();
        assert_eq!(names, ["a/istio-sidecar-injector-a", "a/istio-sidecar-injector-b"]);
        assert!(ended[0].problem.contains("budget of 1000000 steps"), "{}", ended[0].problem);
    }
}
