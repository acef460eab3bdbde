//! `serve --manage-certs`: the process makes and renews its certificates itself.

use std::{sync::Arc, time::Duration};

use kube::Client;
use tokio::sync::watch;

use super::audit::identity;
use crate::{
    certificates::{CertificateMetrics, Keeper, Leaf, Lifetimes, Options},
    cli::CommandError,
    cluster::{is_object_name, lease::LeaseOptions},
    metrics::{Registry, WatchMetrics},
    readiness::Hold,
    server::{self, Shutdown},
};

/// The shortest lifetime of a certificate: a third of it is longer than the Lease of a leader that
/// died.
const MIN_LIFETIME: Duration = Duration::from_mins(1);

/// The flags of managed certificates.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Managed certificates")]
pub(in crate::cli) struct CertificateArgs {
    /// Make the certificate of the servers and its CA, keep them in a Secret, renew them, and write
    /// the CA into the caBundle of the webhooks. One replica acts
    #[arg(long, env = "INJECTD_MANAGE_CERTS", conflicts_with = "tls_cert")]
    manage_certs: bool,
    /// Namespace of the Secret, of the Lease and of the Service [default: $POD_NAMESPACE]
    #[arg(long, value_name = "NAMESPACE", requires = "manage_certs")]
    certificate_namespace: Option<String>,
    /// Secret of the certificates, and Lease of the replica that acts
    #[arg(
        long,
        value_name = "NAME",
        default_value = "injectd-certificates",
        requires = "manage_certs"
    )]
    certificate_secret: String,
    /// Service through which the API server calls the webhook: the certificate is for its name
    #[arg(long, value_name = "NAME", default_value = "injectd", requires = "manage_certs")]
    webhook_service: String,
    /// Webhook configurations whose caBundle is written, in each entry that leads to
    /// --webhook-service
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "injectd",
        requires = "manage_certs"
    )]
    webhook_configurations: Vec<String>,
    /// Lifetime of a CA; it is replaced when a third of it remains
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = server::parse_duration, requires = "manage_certs")]
    ca_lifetime: Duration,
    /// Lifetime of a certificate, at most half of --ca-lifetime; it is renewed when a third of it
    /// remains
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = server::parse_duration, requires = "manage_certs")]
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
        if !self.manage_certs {
            return Ok(());
        }
        let problem = if is_standalone {
            "--manage-certs keeps a Secret in a cluster: remove --standalone".to_owned()
        } else if self.namespace().is_none() {
            "--manage-certs needs --certificate-namespace or the variable POD_NAMESPACE".to_owned()
        } else if self.certificate_lifetime < MIN_LIFETIME {
            "--certificate-lifetime must be at least 1m".to_owned()
        } else if self.certificate_lifetime > self.ca_lifetime / 2 {
            "--certificate-lifetime must be at most half of --ca-lifetime".to_owned()
        } else if let Some((flag, name)) = self.names().find(|(_, name)| !is_object_name(name)) {
            format!("{flag}: {name:?} is not the name of an object")
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(problem))
    }

    fn names(&self) -> impl Iterator<Item = (&'static str, String)> {
        let configurations = self.webhook_configurations.iter();
        [
            ("--certificate-namespace", self.namespace().unwrap_or_default()),
            ("--certificate-secret", self.certificate_secret.clone()),
            ("--webhook-service", self.webhook_service.clone()),
        ]
        .into_iter()
        .chain(configurations.map(|name| ("--webhook-configurations", name.clone())))
    }

    #[expect(clippy::disallowed_methods, reason = "this is configuration")]
    fn namespace(&self) -> Option<String> {
        let own = || std::env::var("POD_NAMESPACE").ok();
        self.certificate_namespace.clone().or_else(own).filter(|own| !own.is_empty())
    }

    /// Starts to manage the certificates. The process is ready once it serves one.
    pub(super) fn start(
        self,
        client: Client,
        registry: &Arc<Registry>,
        hold: Hold,
        mut shutdown: Shutdown,
    ) -> (Managed, tokio::task::JoinHandle<()>) {
        let namespace = self.namespace().unwrap_or_default();
        let lease = LeaseOptions::new(&*namespace, &*self.certificate_secret, identity());
        let options = Options {
            namespace,
            service: self.webhook_service,
            secret: self.certificate_secret,
            configurations: self.webhook_configurations,
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
}
