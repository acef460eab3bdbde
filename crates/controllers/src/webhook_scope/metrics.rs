//! Metrics of the webhook's scope.

use std::sync::Arc;

use injectd_telemetry::metrics::Registry;
use metrics::counter;

use super::{memory::Wanted, state::Standing};

/// The result of a write, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Ok,
    /// Others wrote before.
    Conflict,
    Failed,
}

/// The metrics of the webhook's scope.
#[derive(Debug, Clone)]
pub struct ScopeMetrics(Arc<Registry>);

impl ScopeMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        let metrics = Self(registry);
        for written in [Written::Ok, Written::Conflict, Written::Failed] {
            metrics.add(written, 0);
        }
        metrics.repairs(0);
        metrics.leads(false);
        metrics
    }

    pub(super) fn leads(&self, is_leader: bool) {
        self.set("injectd_webhook_scope_leader", is_leader);
    }

    /// How the configuration is, and how it must be.
    pub(super) fn stands(&self, standing: Standing, wanted: Option<&Wanted>) {
        if standing != Standing::Unknown {
            self.set("injectd_webhook_scope_in_step", standing == Standing::InStep);
        }
        if let Some(wanted) = wanted {
            self.set("injectd_webhook_scope_all_pods", !wanted.all_pods.is_empty());
        }
    }

    pub(super) fn wrote(&self, written: Written) {
        self.add(written, 1);
    }

    pub(super) fn repaired(&self) {
        self.repairs(1);
    }

    fn repairs(&self, count: u64) {
        let name = "injectd_webhook_scope_repairs_total";
        self.0.register(|| counter!(name)).increment(count);
    }

    fn add(&self, written: Written, count: u64) {
        let result = match written {
            Written::Ok => "ok",
            Written::Conflict => "conflict",
            Written::Failed => "failed",
        };
        let name = "injectd_webhook_scope_writes_total";
        self.0.register(|| counter!(name, "result" => result)).increment(count);
    }

    fn set(&self, name: &'static str, is_set: bool) {
        self.0.set(name, &[], f64::from(u8::from(is_set)));
    }
}
