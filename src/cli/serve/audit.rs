//! `serve --audit`: one replica audits the cluster at intervals, and restarts workloads if asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use injectd_command::{restart_policy::PolicyArgs, units::parse_duration};
use injectd_controllers::{
    audit::{
        Auditor, Finding as Judged, Mesh, Meshes, Served,
        cluster::{self, Judges, Scope},
        metrics::AuditMetrics,
        summary::{Row, Summary},
    },
    restart::{
        self, AuditError, Controller, DEFAULT_POLL_INTERVAL, Finding, Findings, LeaseOptions, Mode,
        Options,
    },
};
use injectd_profiles::{Profile, Profiles};
use injectd_webhooks::injectors::Product;
use kube::Client;
use tracing::{info, warn};

use crate::server::Shutdown;

/// The flags of the audit.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Audit and restarts")]
pub(crate) struct AuditArgs {
    /// Audit the pods of the cluster at intervals, as injectd audit does, with the result in metrics.
    /// One replica acts. Needs the permissions that injectd manifest audit prints
    #[arg(long, env = "INJECTD_AUDIT")]
    audit: bool,
    /// Time between two audits
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    audit_interval: Duration,
    /// Namespace of the Lease with which the replicas choose one that acts [default: $POD_NAMESPACE,
    /// or default]
    #[arg(long, value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// Restart the workloads of pods without their sidecar, or with an outdated one. The annotation
    /// injectd.dev/restart of a namespace decides for its workloads
    #[arg(long, value_name = "MODE", default_value = "dry-run")]
    restart: Mode,
    #[command(flatten)]
    policy: PolicyArgs,
}

impl AuditArgs {
    /// Whether the audit is asked for.
    pub(super) fn is_on(&self) -> bool {
        self.audit
    }

    /// A flag that needs the audit, if it is set without.
    pub(super) fn set_without_audit(&self) -> Option<&'static str> {
        if self.audit {
            return None;
        }
        let flags = [
            ("--restart", self.restart != Mode::DryRun),
            ("--lease-namespace", self.lease_namespace.is_some()),
        ];
        injectd_command::first_set(flags)
    }

    pub(super) fn lease_namespace(&self) -> Option<String> {
        self.lease_namespace.clone()
    }

    /// Runs the audit until the process ends.
    pub(super) async fn run(self, audit: Audit, lease: LeaseOptions, mut shutdown: Shutdown) {
        let options = Options {
            policy: self.policy.policy(self.restart),
            lease,
            audit_interval: self.audit_interval,
            poll_interval: DEFAULT_POLL_INTERVAL,
        };
        let (client, metrics) = (audit.client.clone(), audit.metrics.clone());
        let end = async move {
            shutdown.begun().await;
        };
        Controller::new(client, options, audit, metrics).run(end).await;
    }
}

/// Audits a cluster with the meshes that this process serves.
pub(super) struct Audit {
    pub(super) client: Client,
    pub(super) profiles: Profiles,
    pub(super) metrics: AuditMetrics,
}

impl Findings for Audit {
    async fn find(&mut self) -> Result<restart::Audit, AuditError> {
        let found = self.audit().await;
        if found.is_err() {
            self.metrics.audit_failed();
        }
        found
    }
}

impl Audit {
    /// Reports what an operator must know at once.
    fn report(&self, summary: &Summary) {
        for problem in summary.not_read() {
            warn!(problem, "the audit is incomplete");
        }
        for (reason, pods) in summary.unknown() {
            warn!(reason, pods, "pods cannot be judged");
        }
        self.metrics.without_webhook(summary.without_webhook());
        for (product, pods) in summary.without_webhook() {
            warn!(
                mesh = product.as_str(),
                pods, "no webhook of the mesh is there: new pods get no sidecar"
            );
        }
    }

    /// The sidecar templates that this process serves.
    fn templates(&self) -> Option<Served> {
        let served = |injector| Served { injector, is_called: false, unknown: BTreeSet::new() };
        self.profiles.templates.clone().map(served)
    }

    async fn audit(&self) -> Result<restart::Audit, AuditError> {
        let webhooks = cluster::webhooks(&self.client).await?;
        let namespaces = cluster::namespaces(&self.client).await?;
        let mut summary = Summary::default();
        let mut meshes = BTreeMap::new();
        for webhook in webhooks.configurations.webhooks() {
            let profile = match webhook.product() {
                Some(Product::Linkerd) => self.profiles.linkerd.clone().map(Profile::Linkerd),
                Some(Product::Templates) if self.profiles.templates.is_some() => continue,
                Some(Product::Templates) => None,
                Some(Product::Istio) => {
                    let revision = webhook.istio_revision();
                    let served = self.profiles.istio.as_ref();
                    served.and_then(|served| served.get(revision)).map(Profile::Istio)
                }
                _ => continue,
            };
            let path = profile.as_ref().map(|profile| profile.path_of(webhook));
            match (profile, path) {
                (Some(profile), Some(Ok(path))) => {
                    let key = (webhook.configuration.clone(), webhook.name.clone());
                    meshes.insert(key, Arc::new(Mesh { profile, path }));
                }
                _ => summary.add_not_read(format!(
                    "webhook {} of {} is of a mesh or revision that this process does not serve",
                    webhook.name, webhook.configuration
                )),
            }
        }
        let meshes = Meshes { by_webhook: meshes, templates: self.templates() };
        let auditor = Arc::new(Auditor::new(webhooks, meshes).await?);
        let judges = Judges::new(Arc::clone(&auditor), namespaces);
        let scope = Scope::default();
        cluster::audit(&self.client, &scope, &judges, &mut summary, |_| {}).await?;
        let counts = summary.counts();
        self.report(&summary);
        self.metrics.audited(counts, summary.not_read().is_empty() && counts.unknown == 0);
        info!(
            pods = counts.total,
            missing = counts.missing,
            outdated = counts.outdated,
            unexpected = counts.unexpected,
            unknown = counts.unknown,
            "audited"
        );
        let is_cured = |row: &Row| row.finding != Judged::Unexpected && row.restart_cures;
        let rows = summary.rows().filter(is_cured);
        let findings = rows.map(|row| {
            Finding::about(row.workload, [row.pods, row.total], &row.reason, row.evidence)
        });
        let findings = findings.collect();
        let (seen, is_cut) = summary.into_seen();
        let (begun, environment) = (auditor.begun(), auditor.environment().to_owned());
        Ok(restart::Audit { begun, environment, findings, seen, is_cut })
    }
}
