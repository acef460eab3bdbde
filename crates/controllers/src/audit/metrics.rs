//! Metrics of audits and restarts.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use injectd_telemetry::metrics::Registry;
use injectd_webhooks::injectors::Product;
use metrics::{Counter, counter};

use super::summary::Counts;
use crate::restart::{Notice, Observer, Restarter, Wait};

/// The metrics of audits and restarts.
#[derive(Clone)]
pub struct AuditMetrics {
    registry: Arc<Registry>,
    complete: Counter,
    incomplete: Counter,
    failed: Counter,
    restarts: Counter,
    restarts_failed: Counter,
}

impl AuditMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn new(registry: Arc<Registry>) -> Self {
        let audits = |result: &'static str| {
            registry.register(|| counter!("injectd_audits_total", "result" => result))
        };
        Self {
            complete: audits("complete"),
            incomplete: audits("incomplete"),
            failed: audits("failed"),
            restarts: registry.register(|| counter!("injectd_restarts_total")),
            restarts_failed: registry.register(|| counter!("injectd_restarts_failed_total")),
            registry,
        }
    }

    /// Records an audit.
    pub fn audited(&self, counts: Counts, is_complete: bool) {
        if is_complete { &self.complete } else { &self.incomplete }.increment(1);
        for (judgement, pods) in [
            ("meshed", counts.meshed),
            ("unmeshed", counts.unmeshed),
            ("missing", counts.missing),
            ("outdated", counts.outdated),
            ("unexpected", counts.unexpected),
            ("unknown", counts.unknown),
        ] {
            self.set("injectd_audit_pods", &[("judgement", judgement.to_owned())], pods);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = "injectd_audit_last_success_timestamp_seconds";
        self.registry.set(name, &[], now.as_secs_f64());
    }

    /// Records the meshes without a webhook, with the pods that have their sidecar or ask for it.
    pub fn without_webhook(&self, meshes: &BTreeMap<Product, u64>) {
        for product in [Product::Linkerd, Product::Istio, Product::Templates] {
            let pods = meshes.get(&product).copied().unwrap_or_default();
            let mesh = product.mesh().to_owned();
            self.set("injectd_audit_pods_without_webhook", &[("mesh", mesh)], pods);
        }
    }

    /// Records an audit that failed.
    pub fn audit_failed(&self) {
        self.failed.increment(1);
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of objects")]
    fn set(&self, name: &'static str, labels: &[(&'static str, String)], count: u64) {
        self.registry.set(name, labels, count as f64);
    }
}

impl Observer for AuditMetrics {
    fn notice(&self, notice: &Notice) {
        match notice {
            Notice::Restarted(_) => self.restarts.increment(1),
            Notice::Failed(..) => self.restarts_failed.increment(1),
            Notice::Waits(..)
            | Notice::Gone(_)
            | Notice::Finished(_)
            | Notice::Stuck(_)
            | Notice::Stopped(..)
            | Notice::Resumed => {}
        }
    }

    fn state(&self, restarter: &Restarter) {
        let in_flight = restarter.in_flight();
        self.set("injectd_restarts_in_flight", &[], in_flight.len() as u64);
        let is_stuck = in_flight.iter().any(|restart| restart.stuck.is_some());
        self.set("injectd_restart_stuck", &[], is_stuck.into());
        self.set("injectd_restarts_stopped", &[], restarter.is_stopped().into());
        let mut waiting: BTreeMap<_, u64> =
            Wait::LABELS.into_iter().map(|label| (label, 0)).collect();
        for (_, wait) in restarter.waiting() {
            if let Some(wait) = wait {
                *waiting.entry(wait.as_str()).or_default() += 1;
            }
        }
        for (reason, count) in waiting {
            self.set("injectd_restarts_waiting", &[("reason", reason.to_owned())], count);
        }
    }

    fn leads(&self, is_leader: bool) {
        self.set("injectd_audit_is_leader", &[], is_leader.into());
    }
}
