//! Metrics of the keeper of templates.

use std::sync::Arc;

use injectd_telemetry::metrics::Registry;
use metrics::counter;

use super::write::Write;

/// What is done, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    CreateRevision,
    RenumberRevision,
    DeleteRevision,
    WriteStatus,
    /// The Lease of this replica.
    WriteLease,
    DeleteLease,
    ReadLeases,
    ReadKinds,
    CountPods,
}

/// The metrics of the keeper of templates.
#[derive(Debug, Clone)]
pub struct KeeperMetrics {
    registry: Arc<Registry>,
}

impl Stage {
    const ALL: [Self; 9] = [
        Self::CreateRevision,
        Self::RenumberRevision,
        Self::DeleteRevision,
        Self::WriteStatus,
        Self::WriteLease,
        Self::DeleteLease,
        Self::ReadLeases,
        Self::ReadKinds,
        Self::CountPods,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::CreateRevision => "create_revision",
            Self::RenumberRevision => "renumber_revision",
            Self::DeleteRevision => "delete_revision",
            Self::WriteStatus => "write_status",
            Self::WriteLease => "write_lease",
            Self::DeleteLease => "delete_lease",
            Self::ReadLeases => "read_leases",
            Self::ReadKinds => "read_kinds",
            Self::CountPods => "count_pods",
        }
    }

    /// The stage of a write.
    pub(super) fn of(write: &Write) -> Self {
        match write {
            Write::CreateRevision(_) => Self::CreateRevision,
            Write::RenumberRevision { .. } => Self::RenumberRevision,
            Write::DeleteRevision(_) => Self::DeleteRevision,
            Write::Status { .. } => Self::WriteStatus,
            Write::DeleteLease(_) => Self::DeleteLease,
        }
    }
}

impl KeeperMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        let metrics = Self { registry };
        for stage in Stage::ALL {
            metrics.add(stage, "ok", 0);
            metrics.add(stage, "failed", 0);
        }
        metrics.leads(false);
        metrics
    }

    pub(super) fn leads(&self, is_leader: bool) {
        let value = f64::from(u8::from(is_leader));
        self.registry.set("injectd_template_keeper_leader", &[], value);
    }

    pub(super) fn done(&self, stage: Stage, is_ok: bool) {
        self.add(stage, if is_ok { "ok" } else { "failed" }, 1);
    }

    fn add(&self, stage: Stage, result: &'static str, count: u64) {
        let name = "injectd_template_keeper_steps_total";
        let labels = [("step", stage.as_str()), ("result", result)];
        self.registry.register(|| counter!(name, &labels)).increment(count);
    }
}
