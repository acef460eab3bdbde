//! The metrics of Istio's injector (`pkg/kube/inject/monitoring.go`), without labels.

use std::time::Duration;

use injectd_istio::release::{Delta, Release};
use injectd_telemetry::metrics::{Registry, RejectReason};
use metrics::{Counter, Histogram, counter, histogram};

use crate::outcome::{Outcome, Verdict};

/// Istio's metrics, as the release of a review counts.
#[derive(Debug, Clone)]
pub struct IstioCounters {
    requests: Counter,
    successes: Counter,
    failures: Counter,
    skips: Counter,
    duration: Histogram,
}

impl IstioCounters {
    /// Registers the metrics.
    #[must_use]
    pub fn register(registry: &Registry) -> Self {
        registry.register(|| Self {
            requests: counter!("sidecar_injection_requests_total"),
            successes: counter!("sidecar_injection_success_total"),
            failures: counter!("sidecar_injection_failure_total"),
            skips: counter!("sidecar_injection_skip_total"),
            duration: histogram!("sidecar_injection_time_seconds"),
        })
    }

    /// Counts an answer. Up to 1.25 only a patch is a success.
    pub fn record(&self, outcome: &Outcome<'_>, release: Release, duration: Duration) {
        self.begin(duration);
        match outcome.verdict {
            Verdict::Denied => self.failures.increment(1),
            Verdict::Skipped => self.skips.increment(1),
            Verdict::Injected | Verdict::Annotated | Verdict::Allowed => {}
        }
        if release.has(Delta::AnswersCount) || outcome.verdict == Verdict::Injected {
            self.successes.increment(1);
        }
    }

    /// Counts a request without a review as its answer. Up to 1.25 only a request without a review
    /// in it is a failure.
    pub fn record_rejection(&self, why: RejectReason, release: Release, duration: Duration) {
        self.begin(duration);
        if release.has(Delta::AnswersCount) || why == RejectReason::NotAReview {
            self.failures.increment(1);
        }
    }

    fn begin(&self, duration: Duration) {
        self.requests.increment(1);
        self.duration.record(duration);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use injectd_istio::envelope;

    use super::*;
    use crate::{lookups::CallerFacts, standalone::Standalone};

    const NEW: Release = Release::new(26, 0);
    const OLD: Release = Release::new(25, 9);

    /// What one answer adds: requests, successes, failures, skips.
    fn counted(pod: &str, release: Release) -> [u64; 4] {
        let injector = injectd_testkit::istio::injector::<Standalone>();
        let registry = Registry::new();
        let counters = IstioCounters::register(&registry);
        let review = format!(
            r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"u",
            "kind":{{"version":"v1","kind":"Pod"}},"namespace":"a","object":{pod}}}}}"#
        );
        let facts = CallerFacts::default();
        let answer = envelope::review(&injector, facts, review.as_bytes()).now_or_never();
        let answer = answer.expect("must not wait").expect("an answer");
        counters.record(&answer.outcome, release, Duration::from_millis(200));
        values(&registry)
    }

    fn values(registry: &Registry) -> [u64; 4] {
        let text = registry.exporter().render();
        assert!(text.contains("sidecar_injection_time_seconds_bucket{le=\"0.1\"} 0\n"), "{text}");
        assert!(text.contains("sidecar_injection_time_seconds_bucket{le=\"1\"} 1\n"), "{text}");
        assert!(text.contains("sidecar_injection_time_seconds_bucket{le=\"60\"} 1\n"), "{text}");
        ["requests", "success", "failure", "skip"].map(|name| {
            let name = format!("sidecar_injection_{name}_total ");
            let value = text.lines().find_map(|line| line.strip_prefix(&name));
            value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
        })
    }

    #[test]
    fn from_1_26_on_every_answer_is_a_success() {
        let pod = r#"{"spec":{"containers":[{"name":"web"}]}}"#;
        let skipped = r#"{"spec":{"hostNetwork":true,"containers":[]}}"#;
        let denied = r#"{"spec":{"containers":"many"}}"#;
        for (pod, old, new) in [
            (pod, [1, 1, 0, 0], [1, 1, 0, 0]),
            (skipped, [1, 0, 0, 1], [1, 1, 0, 1]),
            (denied, [1, 0, 1, 0], [1, 1, 1, 0]),
        ] {
            assert_eq!(counted(pod, OLD), old, "{pod}");
            assert_eq!(counted(pod, NEW), new, "{pod}");
        }
    }

    #[test]
    fn up_to_1_25_only_a_body_without_a_review_is_a_failed_request() {
        for (why, old) in [(RejectReason::NotAReview, 1), (RejectReason::SlowBody, 0)] {
            for (release, failures) in [(OLD, old), (NEW, 1)] {
                let registry = Registry::new();
                let counters = IstioCounters::register(&registry);
                counters.record_rejection(why, release, Duration::from_millis(200));
                assert_eq!(values(&registry), [1, 0, failures, 0], "{why:?} {release}");
            }
        }
    }
}
