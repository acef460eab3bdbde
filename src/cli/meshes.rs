//! The mesh that decides about a pod: the one whose webhook is called, with its configuration from
//! the cluster; else the one of `--mesh`.

use std::{collections::BTreeMap, sync::Arc};

use injectd_webhooks::{Step, Webhook};
use kube::{Api, Client, api::ListParams};

use crate::{
    causes::with_causes,
    cli::{
        CommandError, cluster_config,
        config::{ConfigArgs, Purpose},
        serve::ISTIO_NAMESPACE,
    },
    cluster::{
        objects::{ConfigMap, Node, ProxyConfig},
        watch::{Update, WatchFailure},
    },
    control_plane::{Change, ControlPlane},
    explain::injectors::{self, Product},
    profiles::{Profile, Revisions},
    sources::Sources,
    standalone::Standalone,
};

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
}

impl<'c> Meshes<'c> {
    pub(super) fn new(config: &'c ConfigArgs, client: Option<&'c Client>) -> Self {
        Self { config, client, known: BTreeMap::new() }
    }

    /// The mesh whose webhook is called. Linkerd's is called for most pods; so if that of Istio is
    /// called too, somebody asks for Istio.
    pub(super) async fn of(&mut self, steps: &[Step<'_>]) -> Result<Arc<Mesh>, CommandError> {
        let of = |wanted| injectors::called(steps).find(|(product, _)| *product == wanted);
        let called = of(Product::Istio).or_else(|| of(Product::Linkerd));
        let called = called.map(|(product, step)| (product, Some(step.webhook)));
        let chosen = self.chosen();
        let (product, webhook) = called.unwrap_or((chosen, None));
        if product != chosen && self.client.is_none() {
            let (called, chosen) = (product.as_str(), chosen.as_str());
            let note = format!(
                "the webhook of {called} is called, but its configuration is not known: the rules \
                 are those of {chosen}; set --mesh and the files of {called}"
            );
            return Ok(Arc::new(self.of_flags(vec![note])?));
        }
        self.of_product(product, webhook).await
    }

    /// The mesh of a product; for Istio that of the revision of a webhook.
    pub(super) async fn of_product(
        &mut self,
        product: Product,
        webhook: Option<&Webhook>,
    ) -> Result<Arc<Mesh>, CommandError> {
        let key = match webhook {
            Some(webhook) => format!("{}{}", injectors::istio_revision(webhook), webhook.path),
            None => format!("{product:?}"),
        };
        if let Some(mesh) = self.known.get(&key) {
            return Ok(Arc::clone(mesh));
        }
        let mesh = match (self.client, product, webhook) {
            (Some(client), Product::Istio, Some(webhook)) => self.istio(client, webhook).await?,
            (Some(client), Product::Linkerd, _) => self.linkerd(client).await?,
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

    fn chosen(&self) -> Product {
        if self.config.is_istio() { Product::Istio } else { Product::Linkerd }
    }

    fn of_flags(&self, notes: Vec<String>) -> Result<Mesh, CommandError> {
        let profile = self.config.standalone_profile(Purpose::Inject)?;
        let path = self.config.path(&profile).map_err(CommandError::Usage)?;
        Ok(Mesh { profile, path, notes })
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
        Ok(Mesh { profile, path: String::new(), notes })
    }

    async fn istio(&self, client: &Client, webhook: &Webhook) -> Result<Mesh, CommandError> {
        let revision = injectors::istio_revision(webhook);
        let namespace = webhook.namespace.clone().unwrap_or_else(|| ISTIO_NAMESPACE.to_owned());
        let settings = self.config.istio_settings(namespace.clone())?;
        let served = Arc::new(Revisions::default());
        let sources = Sources::from(Standalone::Every(Arc::default()));
        let mut control_plane = ControlPlane::new(settings, sources, Arc::clone(&served));
        let maps = listed::<ConfigMap>(Api::namespaced(client.clone(), &namespace)).await;
        control_plane.apply(Change::ConfigMaps(None, maps));
        control_plane.apply(Change::Nodes(listed::<Node>(Api::all(client.clone())).await));
        let configs = listed::<ProxyConfig>(Api::all(client.clone())).await;
        control_plane.apply(Change::ProxyConfigs(configs));
        control_plane.settle();
        let Some(injector) = served.get(revision) else {
            let waits = control_plane.waits_for();
            let problem = waits.unwrap_or_else(|| format!("revision {revision} has none"));
            let message = format!("cannot read Istio's configuration in namespace {namespace}");
            return Err(CommandError::failed(message, problem));
        };
        let profile = Profile::Istio(injector);
        let path = profile.path(&webhook.path);
        let path = path.map_err(|error| {
            CommandError::failed(
                format!("webhook {} has the path {}", webhook.name, webhook.path),
                error.to_string(),
            )
        })?;
        Ok(Mesh { profile, path, notes: Vec::new() })
    }
}

/// All objects of a kind.
async fn listed<K>(api: Api<K>) -> Update<K>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match api.list(&ListParams::default()).await {
        Ok(list) => Update::Listed(list.items),
        Err(error) => Update::Failed(WatchFailure::of_list(error)),
    }
}
