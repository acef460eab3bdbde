//! Records the outcome of a review once: counts it, logs it and queues its event.

use std::time::Duration;

use injectd_profiles::Profile;
use injectd_telemetry::metrics::{RejectReason, ReviewMetrics, TemplateMetrics};
use tracing::{Level, enabled, info, warn};

use crate::{
    drop_in::{Counters, IstioCounters, log_lines},
    events::Recorder,
    outcome::{Outcome, Verdict},
};

/// The format of reviews in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogStyle {
    /// One line per review.
    #[default]
    Line,
    /// The lines of Linkerd's injector.
    Linkerd,
}

/// Records every outcome of a server.
#[derive(Debug, Default)]
pub struct Observer {
    /// The server's metrics.
    pub metrics: ReviewMetrics,
    /// The counters of Linkerd's injector.
    pub linkerd: Option<Counters>,
    /// The counters of Istio's injector.
    pub istio: Option<IstioCounters>,
    /// Counts pods by sidecar template.
    pub templates: Option<TemplateMetrics>,
    /// The format of its reviews in the log.
    pub log_style: LogStyle,
    /// Queues events; `None` without a cluster.
    pub recorder: Option<Recorder>,
}

impl Observer {
    /// Records the outcome of a review.
    pub fn observe(&self, profile: &Profile, outcome: &Outcome<'_>, duration: Duration) {
        self.metrics.record(outcome, duration);
        match profile {
            Profile::Linkerd(_) => {
                if let Some(counters) = &self.linkerd {
                    counters.record(outcome);
                }
            }
            Profile::Istio(injector) => {
                if let Some(counters) = &self.istio {
                    counters.record(outcome, injector.mesh().revision().release(), duration);
                }
            }
            Profile::Templates(_) => {
                if let (Some(metrics), Some(decisions)) = (&self.templates, &outcome.decisions) {
                    metrics.record(decisions);
                }
            }
        }
        match self.log_style {
            LogStyle::Line => log_line(outcome),
            LogStyle::Linkerd => log_lines::log_outcome(outcome),
        }
        if let Some(recorder) = &self.recorder {
            recorder.record(outcome);
        }
    }

    /// Counts a request to a webhook that was rejected. [`ReviewMetrics::rejected`] counts requests to
    /// any path.
    pub fn observe_rejection(&self, profile: &Profile, why: RejectReason, duration: Duration) {
        match profile {
            // Linkerd's injector has no counter of rejections.
            Profile::Linkerd(_) | Profile::Templates(_) => {}
            Profile::Istio(injector) => {
                if let Some(counters) = &self.istio {
                    counters.record_rejection(why, injector.mesh().revision().release(), duration);
                }
            }
        }
    }

    /// Logs a review and its answer whole, at level debug under Linkerd's flags.
    pub fn log_exchange(&self, profile: &Profile, body: &[u8], answer: &[u8]) {
        if self.log_style == LogStyle::Linkerd && enabled!(Level::DEBUG) {
            match profile {
                Profile::Linkerd(injector) => {
                    let [review, answer] = [body, answer].map(String::from_utf8_lossy);
                    log_lines::log_exchange(&review, injector.mesh().values(), &answer);
                }
                // The lines are those of Linkerd's injector.
                Profile::Istio(_) | Profile::Templates(_) => {}
            }
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
        None => match outcome.reasons.joined() {
            // Such as a Service that was annotated.
            reasons if reasons.is_empty() => info!(message, kind, name, namespace, verdict),
            reasons => info!(message, kind, name, namespace, reasons, verdict),
        },
    }
}
