//! What a door does with an outcome: it is counted, told and its event queued, once.

use std::time::Duration;

use tracing::{info, warn};

use crate::{
    events::Recorder,
    linkerd::log_lines,
    metrics::ReviewMetrics,
    outcome::{Outcome, Verdict},
};

/// How reviews are told in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStyle {
    /// One line for a review.
    Line,
    /// The lines of Linkerd's injector.
    Linkerd,
}

/// Sees every outcome of a door.
#[derive(Debug)]
pub struct Observer {
    /// What the door counts.
    pub metrics: ReviewMetrics,
    /// How its reviews are told.
    pub log_style: LogStyle,
    /// What events are recorded with; `None` where there is no cluster.
    pub recorder: Option<Recorder>,
}

impl Observer {
    /// Takes note of what became of a review.
    pub fn observe(&self, outcome: &Outcome<'_>, duration: Duration) {
        self.metrics.record(outcome, duration);
        match self.log_style {
            LogStyle::Line => tell_in_a_line(outcome),
            LogStyle::Linkerd => log_lines::tell(outcome),
        }
        if let Some(recorder) = &self.recorder {
            recorder.record(outcome);
        }
    }
}

fn tell_in_a_line(outcome: &Outcome<'_>) {
    let Outcome { kind, namespace, name, verdict, .. } = outcome;
    let (kind, verdict, namespace, name) = (kind.as_str(), verdict.as_str(), &**namespace, &**name);
    for warning in outcome.warnings.lines() {
        warn!(name, namespace, warning, "ignored");
    }
    // As a string it need not be formatted.
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
