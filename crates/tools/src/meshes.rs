//! The mesh that decides about a pod: the one of `--mesh`, else the one whose webhooks are there, with
//! its configuration from the cluster.

use std::{collections::BTreeMap, sync::Arc};

use injectd_cluster::{
    Pages,
    causes::with_causes,
    objects::{ConfigMap, Node, ProxyConfig},
    sources::Sources,
    watch::{Update, WatchFailure},
};
use injectd_command::{
    CommandError, cluster_config,
    config::{ConfigArgs, MeshName, Purpose},
};
use injectd_core::standalone::Standalone;
use injectd_explain::Creation;
use injectd_profiles::{
    Profile, Revisions,
    control_plane::{Change, ControlPlane, ISTIO_NAMESPACE},
};
use injectd_webhooks::{
    Step, Verdict, Webhook,
    injectors::{self, Product},
};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads meshes when they are needed, each once.
pub(super) struct Meshes<'c> {
    config: &'c ConfigArgs,
    client: Option<&'c Client>,
    known: BTreeMap<String, Arc<Mesh>>,
}

/// A mesh that decides.
#[derive(Debug)]
pub(super) struct Mesh {
    pub(super) profile: Profile,
    /// The decoded path of the webhook's URL.
    pub(super) path: String,
    /// What is not known of it.
    pub(super) notes: Vec<String>,
    /// The product whose webhooks decide; that of the profile, unless its configuration is not known.
    pub(super) product: Product,
}

impl<'c> Meshes<'c> {
    pub(super) fn new(config: &'c ConfigArgs, client: Option<&'c Client>) -> Self {
        Self { config, client, known: BTreeMap::new() }
    }

    /// The mesh that decides about a pod: that of `--mesh`; else the one whose webhooks are there. If
    /// both are there, Istio's if its webhook is called, or if what the pod and its namespace say is
    /// about Istio alone: the webhook of Linkerd is called for most pods.
    pub(super) async fn of(
        &mut self,
        steps: &[Step<'_>],
        creation: Creation<'_>,
    ) -> Result<Arc<Mesh>, CommandError> {
        let product = self.deciding(steps, creation);
        let webhook = injectors::furthest(steps, product).map(|step| step.webhook);
        if product != self.chosen() && self.client.is_none() {
            let (there, chosen) = (product.as_str(), self.chosen().as_str());
            let what = if webhook.is_some() {
                format!("the webhook of {there} is there")
            } else {
                format!("labels or annotations are about {there}")
            };
            let note = format!(
                "{what}, but its configuration is not known: the rules are those of {chosen}; set \
                 --mesh and the files of {there}"
            );
            let mesh = Mesh { product, ..self.of_flags(vec![note])? };
            return Ok(Arc::new(mesh));
        }
        match self.of_product(product, webhook).await {
            Err(error) if product != self.chosen() && self.config.named_mesh().is_none() => {
                let is_called = injectors::called(steps).any(|(called, _)| called == product);
                if !is_called && let Ok(mesh) = self.of_product(product, None).await {
                    return Ok(mesh);
                }
                // Why no webhook is called does not depend on it; if one is called, that is an error.
                let name = product.as_str();
                let note =
                    format!("the configuration of {name} is not known: {}", with_causes(&error));
                let mesh = self.of_product(self.chosen(), None).await?;
                let notes = mesh.notes.iter().cloned().chain([note]).collect();
                let (profile, path) = (mesh.profile.clone(), mesh.path.clone());
                Ok(Arc::new(Mesh { profile, path, notes, product }))
            }
            mesh => mesh,
        }
    }

    fn deciding(&self, steps: &[Step<'_>], creation: Creation<'_>) -> Product {
        if self.config.named_mesh().is_some() {
            return self.chosen();
        }
        let namespace = creation.checks.namespace.unwrap_or(&Value::Null);
        let asks = |product| injectors::asks_for(product, creation.pod, namespace).is_some();
        let mentions = |product| injectors::mentions(product, creation.pod, namespace);
        let is_about =
            |one, other| mentions(one) && (!mentions(other) || asks(one) && !asks(other));
        let [istio, linkerd] = [Product::Istio, Product::Linkerd].map(|product| {
            let step = injectors::furthest(steps, product);
            (step.is_some(), step.is_some_and(|step| step.verdict == Verdict::Called), product)
        });
        let is_istio = match (istio, linkerd) {
            ((true, false, istio), (true, _, linkerd))
            | ((false, _, istio), (false, _, linkerd)) => is_about(istio, linkerd),
            ((is_there, ..), _) => is_there,
        };
        if is_istio { Product::Istio } else { Product::Linkerd }
    }

    /// The mesh of a product; for Istio that of the revision of a webhook.
    pub(super) async fn of_product(
        &mut self,
        product: Product,
        webhook: Option<&Webhook>,
    ) -> Result<Arc<Mesh>, CommandError> {
        let key = key(product, webhook);
        if let Some(mesh) = self.known.get(&key) {
            return Ok(Arc::clone(mesh));
        }
        let mesh = match (self.client, product) {
            (Some(client), Product::Istio) if !self.config.has_istio_files()? => {
                self.istio(client, webhook).await?
            }
            (Some(client), Product::Linkerd) => self.linkerd(client).await?,
            _ if product == self.chosen() => self.of_flags(Vec::new())?,
            _ => {
                let product = product.as_str();
                let text = format!(
                    "the configuration of {product} is not known: set --mesh and the files of {product}"
                );
                return Err(CommandError::Incomplete(text));
            }
        };
        let mesh = Arc::new(mesh);
        self.known.insert(key, Arc::clone(&mesh));
        Ok(mesh)
    }

    /// The mesh of `--mesh`, or its default.
    fn chosen(&self) -> Product {
        match self.config.named_mesh() {
            Some(MeshName::Istio) => Product::Istio,
            Some(MeshName::Linkerd | MeshName::Templates) | None => Product::Linkerd,
        }
    }

    fn of_flags(&self, notes: Vec<String>) -> Result<Mesh, CommandError> {
        let profile = self.config.standalone_profile(Purpose::Inject)?;
        let path = self.config.path(&profile).map_err(CommandError::Usage)?;
        Ok(Mesh { profile, path, notes, product: self.chosen() })
    }

    async fn linkerd(&self, client: &Client) -> Result<Mesh, CommandError> {
        let mut config = self.config.clone();
        config.choose_linkerd();
        let mut notes = Vec::new();
        match cluster_config::found(client, config.linkerd_namespace()).await {
            Ok(found) => config.use_found(found),
            Err(error) => notes.push(format!(
                "the configuration of Linkerd is not that of the cluster: {}",
                with_causes(&error)
            )),
        }
        let profile = config.standalone_profile(Purpose::Inject)?;
        Ok(Mesh { profile, path: String::new(), notes, product: Product::Linkerd })
    }

    /// The configuration of a revision in a cluster: in the namespace of the webhook's Service, or in
    /// that of Istio, if the Service is one of injectd elsewhere.
    async fn istio(
        &self,
        client: &Client,
        webhook: Option<&Webhook>,
    ) -> Result<Mesh, CommandError> {
        let own = webhook.and_then(|webhook| webhook.namespace.as_deref());
        let Some(own) = own.filter(|namespace| *namespace != ISTIO_NAMESPACE) else {
            return self.istio_in(client, ISTIO_NAMESPACE, webhook).await;
        };
        match self.istio_in(client, own, webhook).await {
            Err(problem) => {
                self.istio_in(client, ISTIO_NAMESPACE, webhook).await.map_err(|_| problem)
            }
            mesh => mesh,
        }
    }

    async fn istio_in(
        &self,
        client: &Client,
        namespace: &str,
        webhook: Option<&Webhook>,
    ) -> Result<Mesh, CommandError> {
        let revision = match webhook {
            Some(webhook) => webhook.istio_revision().to_owned(),
            None => self.config.revision()?,
        };
        let settings = self.config.istio_settings(namespace.to_owned())?;
        let served = Arc::new(Revisions::default());
        let sources = Sources::from(Standalone::default());
        let mut control_plane = ControlPlane::new(settings, sources, Arc::clone(&served));
        let maps = listed::<ConfigMap>(client, Api::namespaced(client.clone(), namespace)).await;
        control_plane.apply(Change::ConfigMaps(None, maps));
        control_plane.apply(Change::Nodes(listed::<Node>(client, Api::all(client.clone())).await));
        let configs = listed::<ProxyConfig>(client, Api::all(client.clone())).await;
        control_plane.apply(Change::ProxyConfigs(configs));
        control_plane.settle();
        let Some(injector) = served.get(&revision) else {
            let waits = control_plane.waits_for();
            let problem = waits.unwrap_or_else(|| format!("revision {revision} has none"));
            let message = format!("cannot read Istio's configuration in namespace {namespace}");
            return Err(CommandError::failed(message, problem));
        };
        let profile = Profile::Istio(injector);
        let Some(webhook) = webhook else {
            let path = self.config.path(&profile).map_err(CommandError::Usage)?;
            return Ok(Mesh { profile, path, notes: Vec::new(), product: Product::Istio });
        };
        let path = profile.path_of(webhook).map_err(|error| {
            CommandError::failed(
                format!("webhook {} has the path {}", webhook.name, webhook.path),
                error.to_string(),
            )
        })?;
        Ok(Mesh { profile, path, notes: Vec::new(), product: Product::Istio })
    }
}

/// What a configuration is found by: two control planes of Istio may have a revision of one name.
fn key(product: Product, webhook: Option<&Webhook>) -> String {
    let Some(webhook) = webhook else { return format!("{product:?}") };
    let namespace = webhook.namespace.as_deref().unwrap_or_default();
    format!("{product:?} {namespace} {} {}", webhook.istio_revision(), webhook.path)
}

/// All objects of a kind.
async fn listed<K: Resource + Clone + DeserializeOwned>(client: &Client, api: Api<K>) -> Update<K> {
    match Pages::new(client, api.resource_url()).all().await {
        Ok(items) => Update::Listed(items),
        Err(error) => Update::Failed(WatchFailure::of_list(error)),
    }
}

#[cfg(test)]
mod tests {
    use injectd_webhooks::Configurations;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_revision_has_a_configuration_in_each_control_plane() {
        let webhook = |namespace: &str| {
            let client =
                json!({"service": {"name": "istiod", "namespace": namespace, "path": "/inject"}});
            json!({"name": format!("{namespace}.sidecar-injector.istio.io"), "clientConfig": client})
        };
        let object = json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"},
            "webhooks": [webhook("a"), webhook("b")]});
        let read = Configurations::read([&object]).expect("a configuration");
        let [a, b] = read.webhooks() else { panic!("must be two") };
        assert_eq!(a.istio_revision(), b.istio_revision());
        assert_ne!(key(Product::Istio, Some(a)), key(Product::Istio, Some(b)));
    }
}
