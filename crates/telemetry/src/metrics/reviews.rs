//! Metrics of the reviews that a server answers.

use std::{collections::HashMap, sync::Arc, time::Duration};

use injectd_core::{
    object::Kind,
    outcome::{Outcome, SkipReason, TemplateLookup, Verdict},
};
use injectd_istio::taint::COUNTED;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{CacheMetrics, Counted, Registry};

/// Metrics of a server's reviews.
#[derive(Debug, Clone)]
pub struct ReviewMetrics(Arc<Reviews>);

#[derive(Debug)]
struct Reviews {
    // A list of counters is indexed by the enum that labels them.
    answered: Vec<(Kind, [Counter; Verdict::ALL.len()])>,
    /// By the reason's code.
    skips: HashMap<&'static str, Counter>,
    warnings: Counter,
    /// In the order of [`COUNTED`]: those that were warned of, and those that were denied.
    tainted: Vec<[Counter; 2]>,
    duration: Histogram,
    in_flight: Gauge,
    panics: Counter,
    rejected: [Counter; RejectReason::ALL.len()],
    templates: CacheMetrics,
}

/// Defines the reasons: name and value of the metric label.
macro_rules! reject_reasons {
    ($($(#[$doc:meta])* $name:ident = $label:literal,)*) => {
        /// Why a request was rejected without an `AdmissionReview`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RejectReason {
            $($(#[$doc])* $name,)*
        }

        impl RejectReason {
            const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];

            /// The value of the metric label.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

reject_reasons! {
    /// 400: not a review.
    NotAReview = "not_a_review",
    /// 400, 404 or 307: the mesh has no webhook at the path.
    Path = "path",
    /// 405: not POST.
    Method = "method",
    /// 503: the body did not arrive in time.
    SlowBody = "slow_body",
    /// 413: the body is too large.
    TooLarge = "too_large",
    /// 503: the memory budget for bodies is exhausted.
    Bodies = "bodies",
    /// 503: the deadline has passed.
    Deadline = "deadline",
    /// 503: too many pods wait to be evaluated, or this one waited too long.
    Evaluations = "evaluations",
    /// 503: too many concurrent requests.
    Requests = "requests",
    /// The body of the request is incomplete, or longer than announced.
    Aborted = "aborted",
    /// The caller is not allowed.
    Caller = "caller",
    /// 503: a lookup in the API server failed, too many reviews wait for one, or no revision of
    /// Istio is loaded yet.
    Cluster = "cluster",
    /// 431: the header is too large.
    Header = "header",
    /// gRPC on a port that does not serve it.
    Grpc = "grpc",
}

// === impl ReviewMetrics ===

impl ReviewMetrics {
    /// Registers the review metrics of a server, which skips pods for these reasons.
    #[must_use]
    pub fn register(registry: &Registry, server: &'static str, reasons: &[SkipReason]) -> Self {
        registry.register(|| Self::new(server, reasons))
    }

    fn new(server: &'static str, reasons: &[SkipReason]) -> Self {
        let review = |kind: Kind, verdict: Verdict| {
            let (kind, verdict) = (kind.as_str(), verdict.as_str());
            let labels = [("server", server), ("kind", kind), ("verdict", verdict)];
            counter!("injectd_reviews_total", &labels)
        };
        let rejected = |why: RejectReason| {
            let labels = [("server", server), ("reason", why.as_str())];
            counter!("injectd_requests_rejected_total", &labels)
        };
        let skip = |reason: &SkipReason| {
            (reason.code, counter!("injectd_skips_total", "reason" => reason.code))
        };
        let tainted = |name: &'static str| {
            let counter = |outcome: &'static str| {
                let labels = [("annotation", name), ("outcome", outcome)];
                counter!("injectd_tainted_values_total", &labels)
            };
            ["warned", "denied"].map(counter)
        };
        let of_kind = |&kind: &Kind| (kind, Verdict::ALL.map(|verdict| review(kind, verdict)));
        Self(Arc::new(Reviews {
            answered: Kind::ALL.iter().map(of_kind).collect(),
            skips: reasons.iter().map(skip).collect(),
            warnings: counter!("injectd_warnings_total"),
            tainted: COUNTED.into_iter().map(tainted).collect(),
            duration: histogram!("injectd_review_duration_seconds", "server" => server),
            in_flight: gauge!("injectd_reviews_in_flight", "server" => server),
            panics: counter!("injectd_panics_total"),
            rejected: RejectReason::ALL.map(rejected),
            templates: CacheMetrics::new("templates"),
        }))
    }

    /// Counts a review in flight until the value is dropped.
    pub fn begin(&self) -> Counted {
        Counted::new(&self.0.in_flight)
    }

    /// Counts the outcome of a review.
    pub fn record(&self, outcome: &Outcome<'_>, duration: Duration) {
        let Reviews { answered, skips, warnings, tainted, .. } = &*self.0;
        let of_kind = answered.iter().find(|(kind, _)| *kind == outcome.kind);
        let counter = of_kind.and_then(|(_, verdicts)| verdicts.get(outcome.verdict as usize));
        if let Some(counter) = counter {
            counter.increment(1);
        }
        for counter in outcome.reasons.iter().filter_map(|(_, reason)| skips.get(reason.code)) {
            counter.increment(1);
        }
        warnings.increment(outcome.warnings.total() as u64);
        let is_denied = outcome.verdict == Verdict::Denied;
        for (bit, [warned, denied]) in tainted.iter().enumerate() {
            if outcome.tainted >> bit & 1 == 1 {
                if is_denied { denied } else { warned }.increment(1);
            }
        }
        match outcome.template {
            Some(TemplateLookup::Hit) => self.0.templates.hits.increment(1),
            Some(TemplateLookup::Miss) => self.0.templates.misses.increment(1),
            None => {}
        }
        self.0.duration.record(duration);
    }

    /// Counts a rejected request.
    pub fn rejected(&self, why: RejectReason) {
        if let Some(counter) = self.0.rejected.get(why as usize) {
            counter.increment(1);
        }
    }

    /// Counts a panic, which is a bug.
    pub fn panicked(&self) {
        self.0.panics.increment(1);
    }
}

impl Default for ReviewMetrics {
    fn default() -> Self {
        Self::new("none", &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminants_are_indexes_into_the_list_of_all() {
        assert!(Verdict::ALL.iter().enumerate().all(|(index, &verdict)| verdict as usize == index));
    }
}
