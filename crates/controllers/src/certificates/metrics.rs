//! Metrics of managed certificates.

use std::{sync::Arc, time::Duration};

use injectd_telemetry::metrics::Registry;
use metrics::{Histogram, counter, histogram};

use super::plan::Change;

/// What is done, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    ReadSecret,
    ReadWebhooks,
    CreateCa,
    CreateLeaf,
    WriteSecret,
    RestoreSecret,
    KeepOldCa,
    RemoveOldCa,
    WriteCaBundle,
    /// A replica serves another certificate.
    Serve,
}

/// The metrics of managed certificates.
#[derive(Debug, Clone)]
pub struct CertificateMetrics {
    registry: Arc<Registry>,
    repair_seconds: Histogram,
}

impl Stage {
    const ALL: [Self; 10] = [
        Self::ReadSecret,
        Self::ReadWebhooks,
        Self::CreateCa,
        Self::CreateLeaf,
        Self::WriteSecret,
        Self::RestoreSecret,
        Self::KeepOldCa,
        Self::RemoveOldCa,
        Self::WriteCaBundle,
        Self::Serve,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::ReadSecret => "read_secret",
            Self::ReadWebhooks => "read_webhooks",
            Self::CreateCa => "create_ca",
            Self::CreateLeaf => "create_leaf",
            Self::WriteSecret => "write_secret",
            Self::RestoreSecret => "restore_secret",
            Self::KeepOldCa => "keep_old_ca",
            Self::RemoveOldCa => "remove_old_ca",
            Self::WriteCaBundle => "write_ca_bundle",
            Self::Serve => "serve",
        }
    }

    /// The stage of a change; `None` for one that follows from another.
    pub(super) fn of(change: Change) -> Option<Self> {
        match change {
            Change::NewCa => Some(Self::CreateCa),
            Change::NextCaSigns | Change::RevokedCa | Change::KeptRevoked => None,
            Change::NewLeaf => Some(Self::CreateLeaf),
            Change::Restored => Some(Self::RestoreSecret),
            Change::KeptCa => Some(Self::KeepOldCa),
            Change::RemovedCa => Some(Self::RemoveOldCa),
        }
    }
}

impl CertificateMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        let repair_seconds = registry.register(|| histogram!("injectd_ca_bundle_repair_seconds"));
        let metrics = Self { registry, repair_seconds };
        for stage in Stage::ALL {
            metrics.add(stage, "ok", 0);
            metrics.add(stage, "failed", 0);
        }
        metrics.registry.register(|| counter!("injectd_ca_bundle_repairs_total")).absolute(0);
        metrics.leads(false);
        metrics
    }

    pub(super) fn leads(&self, is_leader: bool) {
        let value = f64::from(u8::from(is_leader));
        self.registry.set("injectd_managed_certificate_leader", &[], value);
    }

    pub(super) fn done(&self, stage: Stage, is_ok: bool) {
        self.add(stage, if is_ok { "ok" } else { "failed" }, 1);
    }

    /// A `caBundle` that others had changed is right again after this time.
    pub(super) fn repaired(&self, after: Duration) {
        self.registry.register(|| counter!("injectd_ca_bundle_repairs_total")).increment(1);
        self.repair_seconds.record(after);
    }

    fn add(&self, stage: Stage, result: &'static str, count: u64) {
        let name = "injectd_certificates_managed_total";
        let labels = [("step", stage.as_str()), ("result", result)];
        self.registry.register(|| counter!(name, &labels)).increment(count);
    }
}
