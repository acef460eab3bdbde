//! `serve --manage-webhook`: the process keeps the scope of the webhook of templates in step with the templates.

use injectd_cluster::{Service, lease::LeaseOptions};
use injectd_command::CommandError;
use injectd_controllers::webhook_scope::{Keeper, Known, Options, ScopeMetrics};
use injectd_k8s::names::is_dns_subdomain;
use injectd_telemetry::metrics::WatchMetrics;
use tokio::task::JoinHandle;

use super::{
    pod,
    process::{Cluster, Process},
    templates::TemplateArgs,
};

/// The flags of the webhook of templates.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Webhook of templates")]
pub(crate) struct WebhookScopeArgs {
    /// Keep the selectors and the condition of --template-webhook in step with the templates: the API
    /// server calls injectd for the pods that a template may change, and for few others. One replica
    /// acts
    #[arg(long, env = "INJECTD_MANAGE_WEBHOOK")]
    manage_webhook: bool,
    /// Webhook configuration of sidecar templates, whose entries with the path /templates are kept
    #[arg(
        long,
        value_name = "NAME",
        default_value = "injectd-templates",
        requires = "manage_webhook"
    )]
    template_webhook: String,
}

impl WebhookScopeArgs {
    /// Rejects values that cannot work.
    pub(super) fn check(
        &self,
        is_templates: bool,
        is_standalone: bool,
        templates: &TemplateArgs,
    ) -> Result<(), CommandError> {
        if !self.manage_webhook {
            return Ok(());
        }
        let problem = if !is_templates {
            "--manage-webhook needs --mesh templates"
        } else if is_standalone {
            "--manage-webhook is about an object of a cluster: remove --standalone"
        } else if !templates.are_of_cluster() {
            "--manage-webhook follows the templates of a cluster: remove --templates"
        } else if templates.namespace().is_none() {
            "--manage-webhook needs --template-namespace or the variable POD_NAMESPACE"
        } else if !is_dns_subdomain(&self.template_webhook) {
            "--template-webhook is not the name of an object"
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(problem.to_owned()))
    }

    /// The configuration whose entries for templates a leader writes, if one does.
    pub(super) fn managed(&self) -> Option<String> {
        self.manage_webhook.then(|| self.template_webhook.clone())
    }
}

impl Process {
    /// Starts to keep the scope of the webhook of templates, if the flags ask for it.
    pub(super) fn manage_webhook(&self, cluster: &Cluster, known: Known) -> Option<JoinHandle<()>> {
        let certificates = &self.args.certificates;
        let configuration = self.args.webhook_scope.managed()?;
        let client = cluster.client.clone();
        let own_namespace = self.args.templates.namespace();
        let own = own_namespace.clone().unwrap_or_default();
        let namespace = certificates.namespace().unwrap_or_else(|| own.clone());
        let options = Options {
            configuration,
            lease: LeaseOptions::new(own, self.args.lease_name("webhook-scope"), pod::identity()),
            service: Service { namespace, name: certificates.service() },
            own_namespace,
        };
        let metrics = ScopeMetrics::new(self.registry().clone());
        let watches = WatchMetrics::register(self.registry(), "webhook_scope");
        let (keeper, events) = Keeper::new(client, options, metrics);
        tokio::spawn(events);
        let mut shutdown = self.shutdown();
        Some(tokio::spawn(keeper.run(known, watches, async move {
            shutdown.begun().await;
        })))
    }
}
