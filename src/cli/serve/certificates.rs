//! `serve --manage-certs`: the process makes and renews its certificates itself. With its flags, or with
//! those of Service and webhooks alone, it also watches the webhooks.

use std::{sync::Arc, time::Duration};

use injectd_cluster::lease::LeaseOptions;
use injectd_command::{CommandError, units::parse_duration};
use injectd_controllers::{
    certificates::{CertificateMetrics, Keeper, Leaf, Lifetimes, Options},
    webhook_watch::{self, WebhookWatch},
};
use injectd_k8s::names::is_dns_subdomain;
use injectd_telemetry::{
    metrics::{Registry, WatchMetrics},
    readiness::Hold,
};
use kube::Client;
use tokio::{sync::watch, task::JoinHandle};

use super::pod;
use crate::server::Shutdown;

/// Default of `--webhook-service`, and of `--webhook-configurations` with `--manage-certs`.
const DEFAULT_NAME: &str = "injectd";

/// The shortest lifetime of a certificate: a third of it is longer than the Lease of a leader that
/// died.
const MIN_LIFETIME: Duration = Duration::from_mins(1);

/// The flags of managed certificates.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Managed certificates")]
pub(crate) struct CertificateArgs {
    /// Make the certificate of the servers and its CA, keep them in a Secret, renew them, and write
    /// the CA into the caBundle of the webhooks. One replica acts
    #[arg(long, env = "INJECTD_MANAGE_CERTS", conflicts_with = "tls_cert")]
    manage_certs: bool,
    /// Namespace of the Secret, of the Lease and of the Service [default: $POD_NAMESPACE]
    #[arg(long, value_name = "NAMESPACE")]
    certificate_namespace: Option<String>,
    /// Secret of the certificates, and Lease of the replica that acts
    #[arg(
        long,
        value_name = "NAME",
        default_value = "injectd-certificates",
        requires = "manage_certs"
    )]
    certificate_secret: String,
    /// Service through which the API server calls the webhook: the certificate is for its name, and
    /// webhooks that lead to it are watched [default: injectd]
    #[arg(long, value_name = "NAME")]
    webhook_service: Option<String>,
    /// Webhook configurations that are watched, in each entry that leads to --webhook-service. With
    /// --manage-certs their caBundle is written [default: injectd with --manage-certs; with
    /// --webhook-service alone all that lead to it]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    webhook_configurations: Option<Vec<String>>,
    /// Lifetime of a CA; it is replaced when a third of it remains
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = parse_duration, requires = "manage_certs")]
    ca_lifetime: Duration,
    /// Lifetime of a certificate, at most half of --ca-lifetime; it is renewed when a third of it
    /// remains
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = parse_duration, requires = "manage_certs")]
    certificate_lifetime: Duration,
}

/// The certificate that is served now.
pub(super) type Managed = watch::Receiver<Option<Arc<Leaf>>>;

impl CertificateArgs {
    /// Whether certificates are managed.
    pub(super) fn is_on(&self) -> bool {
        self.manage_certs
    }

    /// Rejects values that cannot work.
    pub(super) fn check(&self, is_standalone: bool) -> Result<(), CommandError> {
        let Some(flag) = self.first_flag() else { return Ok(()) };
        let problem = if is_standalone {
            format!("{flag} is about objects of a cluster: remove --standalone")
        } else if self.namespace().is_none() {
            format!("{flag} needs --certificate-namespace or the variable POD_NAMESPACE")
        } else if self.certificate_lifetime < MIN_LIFETIME {
            "--certificate-lifetime must be at least 1m".to_owned()
        } else if self.certificate_lifetime > self.ca_lifetime / 2 {
            "--certificate-lifetime must be at most half of --ca-lifetime".to_owned()
        } else if let Some((flag, name)) = self.names().find(|(_, name)| !is_dns_subdomain(name)) {
            format!("{flag}: {name:?} is not the name of an object")
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(problem))
    }

    /// The flag that asks for certificates, or for a watch of webhooks.
    fn first_flag(&self) -> Option<&'static str> {
        injectd_command::first_set([
            ("--manage-certs", self.manage_certs),
            ("--webhook-configurations", self.webhook_configurations.is_some()),
            ("--webhook-service", self.webhook_service.is_some()),
        ])
    }

    fn names(&self) -> impl Iterator<Item = (&'static str, String)> {
        let configurations = self.configurations().unwrap_or_default().into_iter();
        [
            ("--certificate-namespace", self.namespace().unwrap_or_default()),
            ("--certificate-secret", self.certificate_secret.clone()),
            ("--webhook-service", self.service()),
        ]
        .into_iter()
        .chain(configurations.map(|name| ("--webhook-configurations", name)))
    }

    /// The Service that the API server calls.
    pub(super) fn service(&self) -> String {
        self.webhook_service.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned())
    }

    /// The names of the configurations; `None` if they are not named. An empty flag names none.
    fn configurations(&self) -> Option<Vec<String>> {
        let default = || self.manage_certs.then(|| vec![DEFAULT_NAME.to_owned()]);
        let named = self.webhook_configurations.clone().or_else(default)?;
        Some(named.into_iter().filter(|name| !name.is_empty()).collect())
    }

    /// The namespace of the Service, and of what injectd writes.
    pub(super) fn namespace(&self) -> Option<String> {
        let named = self.certificate_namespace.clone().or_else(pod::namespace);
        named.filter(|namespace| !namespace.is_empty())
    }

    /// Starts to manage the certificates. The process is ready once it serves one.
    pub(super) fn start(
        self,
        client: Client,
        registry: &Arc<Registry>,
        hold: Hold,
        mut shutdown: Shutdown,
    ) -> (Managed, JoinHandle<()>) {
        let namespace = self.namespace().unwrap_or_default();
        let lease = LeaseOptions::new(&*namespace, &*self.certificate_secret, pod::identity());
        let options = Options {
            namespace,
            service: self.service(),
            configurations: self.configurations().unwrap_or_default(),
            secret: self.certificate_secret,
            lifetimes: Lifetimes { ca: self.ca_lifetime, leaf: self.certificate_lifetime },
            lease,
        };
        let metrics = CertificateMetrics::new(Arc::clone(registry));
        let watches = WatchMetrics::register(registry, "certificates");
        let (keeper, managed, events) = Keeper::new(client, options, metrics, hold);
        tokio::spawn(events);
        let end = async move {
            shutdown.begun().await;
        };
        (managed, tokio::spawn(keeper.run(watches, end)))
    }

    /// Starts to watch the webhooks, if a flag says which they are.
    /// `managed`: the configuration whose entries for templates a leader writes.
    pub(super) fn watch_webhooks(
        &self,
        client: Client,
        managed: Option<String>,
        registry: &Arc<Registry>,
        mut shutdown: Shutdown,
    ) {
        let (Some(_), Some(namespace)) = (self.first_flag(), self.namespace()) else { return };
        let options = webhook_watch::Options {
            namespace,
            service: self.service(),
            configurations: self.configurations(),
            managed,
        };
        let watches = WatchMetrics::register(registry, "webhooks");
        let (watch, events) = WebhookWatch::new(client, options, Arc::clone(registry));
        tokio::spawn(events);
        tokio::spawn(watch.run(watches, async move {
            shutdown.begun().await;
        }));
    }
}
