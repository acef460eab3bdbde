//! The sidecar templates that are in force: those of a cluster, or of files.

use std::{collections::BTreeSet, sync::Arc};

use injectd_cluster::{causes::with_causes, sources::Sources};
use injectd_controllers::audit::{self, InForce, Served};
use injectd_core::{objects::Objects, standalone::Standalone};
use injectd_profiles::TemplatesInjector;
use injectd_templates::Template;
use injectd_templates_mesh::Templates;
use injectd_webhooks::{Configurations, Webhook, injectors::Product};
use kube::Client;

/// How the note begins on templates that are not known.
pub(super) const NOT_KNOWN: &str = "the sidecar templates are not known";

/// The templates of a cluster with these webhooks, and what is not known of them. Without a webhook of templates,
/// and if they cannot be read, they are not known.
pub(super) async fn of_cluster(
    client: &Client,
    webhooks: &Configurations,
) -> (Option<Served>, Vec<String>) {
    if !has_webhook(webhooks) {
        return (None, Vec::new());
    }
    let own_namespace = own_namespace(webhooks);
    match audit::in_force(client, own_namespace).await {
        Err(error) => (None, vec![format!("{NOT_KNOWN}: {}", with_causes(&error))]),
        Ok(InForce { templates, unknown, notes }) => {
            let own_namespace = own_namespace.map(str::to_owned);
            let injector = injector(templates, own_namespace, Sources::of_command(client));
            (Some(Served { injector, is_called: false, unknown }), notes)
        }
    }
}

/// Whether a webhook of templates is there.
pub(super) fn has_webhook(webhooks: &Configurations) -> bool {
    of_templates(webhooks).next().is_some()
}

/// injectd's own namespace: that of the Service which the webhook of templates leads to.
pub(super) fn own_namespace(webhooks: &Configurations) -> Option<&str> {
    of_templates(webhooks).find_map(|webhook| webhook.namespace.as_deref())
}

fn of_templates(webhooks: &Configurations) -> impl Iterator<Item = &Webhook> {
    let all = webhooks.webhooks().iter();
    all.filter(|webhook| webhook.product() == Some(Product::Templates))
}

/// Templates of files, in a cluster.
pub(super) fn in_cluster(
    templates: Vec<Template>,
    client: &Client,
    webhooks: &Configurations,
) -> Served {
    let own_namespace = own_namespace(webhooks).map(str::to_owned);
    let injector = injector(templates, own_namespace, Sources::of_command(client));
    Served { injector, is_called: false, unknown: BTreeSet::new() }
}

/// Templates of files without a cluster. Objects that are not among these are not known. `is_called` says that no
/// webhook is known, and that the templates are for all pods.
pub(super) fn of_files(templates: Vec<Template>, objects: Objects, is_called: bool) -> Served {
    let sources = Standalone::ListedInPart(Arc::new(objects));
    let injector = injector(templates, None, sources.into());
    Served { injector, is_called, unknown: BTreeSet::new() }
}

fn injector(
    templates: Vec<Template>,
    own_namespace: Option<String>,
    sources: Sources,
) -> Arc<TemplatesInjector> {
    let mesh = Templates::new(templates, own_namespace, 1);
    Arc::new(TemplatesInjector::new(mesh, sources))
}
