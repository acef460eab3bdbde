//! Which findings are printed, and which decide the exit code.

use injectd_controllers::audit::{
    Finding,
    audit_log::FailedOpen,
    summary::{Row, Summary, TaintedRow},
};
use injectd_webhooks::injectors::Product;

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// Pods without the sidecar that they should have
    Missing,
    /// Pods with an outdated sidecar
    Outdated,
    /// Pods with a sidecar that they should not have
    Unexpected,
    /// Pods of a mesh without a webhook, or whose webhook would not be called for new ones
    NoWebhook,
    /// Pods that were let in while a webhook failed
    FailedOpen,
    /// Pods with values that change other fields than their own in Istio's templates
    Tainted,
}

/// The kinds that are printed; empty for all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter<'a>(pub(super) &'a [Kind]);

impl Filter<'_> {
    /// Whether findings of a kind are printed.
    pub(super) fn has(self, kind: Kind) -> bool {
        self.0.is_empty() || self.0.contains(&kind)
    }

    /// The rows of a summary that are printed.
    pub(super) fn rows(self, summary: &Summary) -> impl Iterator<Item = Row> {
        summary.rows().filter(move |row| self.has(row.finding.into()))
    }

    /// The meshes without a webhook and their pods, if they are printed.
    pub(super) fn without_webhook(self, summary: &Summary) -> Vec<(Product, u64)> {
        let all = summary.without_webhook().iter().map(|(product, pods)| (*product, *pods));
        all.filter(|_| self.has(Kind::NoWebhook)).collect()
    }

    /// The meshes whose webhooks would not be called for new pods, if they are printed.
    pub(super) fn not_called(self, summary: &Summary) -> Vec<(Product, u64)> {
        let all = summary.not_called().iter().map(|(product, pods)| (*product, *pods));
        all.filter(|_| self.has(Kind::NoWebhook)).collect()
    }

    /// The workloads with tainted values, if they are printed.
    pub(super) fn tainted(self, summary: &Summary) -> Vec<TaintedRow> {
        summary.tainted().filter(|_| self.has(Kind::Tainted)).collect()
    }

    /// The pods that were let in while a webhook failed, if they are printed.
    pub(super) fn failed_open(self, summary: &Summary) -> &[FailedOpen] {
        if self.has(Kind::FailedOpen) { summary.failed_open() } else { &[] }
    }
}

impl From<Finding> for Kind {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::Missing => Self::Missing,
            Finding::Outdated => Self::Outdated,
            Finding::Unexpected => Self::Unexpected,
        }
    }
}
