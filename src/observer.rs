//! Records the outcome of a review once: counts it, logs it and queues its event.

use std::time::Duration;

use tracing::{info, warn};

use crate::{
    events::Recorder,
    linkerd::log_lines,
    metrics::ReviewMetrics,
    outcome::{Outcome, Verdict},
};

/// The format of reviews in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStyle {
    /// One line per review.
    Line,
    /// The lines of Linkerd's injector.
    Linkerd,
}

/// Records every outcome of a server.
#[derive(Debug)]
pub struct Observer {
    /// The server's metrics.
    pub metrics: ReviewMetrics,
    /// The format of its reviews in the log.
    pub log_style: LogStyle,
    /// Queues events; `None` without a cluster.
    pub recorder: Option<Recorder>,
}

impl Observer {
    /// Records the outcome of a review.
    pub fn observe(&self, outcome: &Outcome<'_>, duration: Duration) {
        self.metrics.record(outcome, duration);
        match self.log_style {
            LogStyle::Line => log_line(outcome),
            LogStyle::Linkerd => log_lines::log_outcome(outcome),
        }
        if let Some(recorder) = &self.recorder {
            recorder.record(outcome);
        }
    }
}

fn log_line(outcome: &Outcome<'_>) {
    let Outcome { kind, namespace, name, verdict, .. } = outcome;
    let (kind, verdict, namespace, name) = (kind.as_str(), verdict.as_str(), &**namespace, &**name);
    for warning in outcome.warnings.lines() {
        warn!(name, namespace, warning, "ignored");
    }
    // A plain string is not formatted.
    let message = "reviewed";
    match &outcome.denial {
        Some(reason) => warn!(message, kind, name, namespace, reason = &**reason, verdict),
        None if outcome.verdict == Verdict::Injected => {
            info!(message, kind, name, namespace, verdict);
        }
        None => {
            let reasons = outcome.reasons.joined();
            info!(message, kind, name, namespace, reasons, verdict);
        }
    }
}
