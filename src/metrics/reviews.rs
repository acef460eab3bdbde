//! Metrics of the reviews that a server answers, and the two counters of Linkerd's injector.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use foldhash::fast::RandomState;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{CacheMetrics, Counted, Registry};
use crate::{
    outcome::{Outcome, SkipReason, SkipReasons, TemplateLookup, Verdict},
    pod::Kind,
};

/// Metrics of a server's reviews.
#[derive(Debug, Clone)]
pub struct ReviewMetrics(Arc<Reviews>);

#[derive(Debug)]
struct Reviews {
    // Each array is indexed by the enum that labels its counters.
    answered: Vec<(Kind, [Counter; Verdict::ALL.len()])>,
    skips: [Counter; SkipReason::ALL.len()],
    warnings: Counter,
    duration: Histogram,
    in_flight: Gauge,
    panics: Counter,
    refused: [Counter; Refused::ALL.len()],
    templates: CacheMetrics,
    upstream: Option<Upstream>,
}

/// Why a request was rejected without an `AdmissionReview`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// 400: not a review.
    NotAReview,
    /// 405: not POST.
    Method,
    /// 503: the body did not arrive in time.
    SlowBody,
    /// 413: the body is too large.
    TooLarge,
    /// 503: the memory budget for bodies is exhausted.
    Bodies,
    /// 503: the deadline has passed.
    Deadline,
    /// 503: too many concurrent requests.
    Requests,
    /// The body of the request is incomplete, or longer than announced.
    Aborted,
    /// The caller is not allowed.
    Caller,
    /// 503: a lookup in the API server failed, or too many reviews wait for one.
    Cluster,
    /// 431: the header is too large.
    Header,
    /// gRPC on a port that does not serve it.
    Grpc,
}

/// Linkerd's counters, without the values of annotations and the namespace as labels; registered
/// when they are first needed.
#[derive(Debug)]
struct Upstream {
    registry: Arc<Registry>,
    counters: RwLock<HashMap<UpstreamLabels, UpstreamCounters, RandomState>>,
}

/// The kind of the root owner, the source of the inject annotation, and the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct UpstreamLabels {
    owner_kind: &'static str,
    annotation_at: &'static str,
    response: Response,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Response {
    /// A patch.
    Patched,
    /// A pod was skipped.
    Skipped(SkipReasons),
    /// A response that upstream does not count.
    Other,
}

#[derive(Debug)]
struct UpstreamCounters {
    requests: Counter,
    responses: Option<Counter>,
}

// === impl ReviewMetrics ===

impl ReviewMetrics {
    /// Registers the review metrics of a server.
    #[must_use]
    pub fn register(registry: &Arc<Registry>, server: &'static str) -> Self {
        registry.register(|| Self::new(server, Some(Upstream::new(registry))))
    }

    fn new(server: &'static str, upstream: Option<Upstream>) -> Self {
        let review = |kind: Kind, verdict: Verdict| {
            let (kind, verdict) = (kind.as_str(), verdict.as_str());
            let labels = [("server", server), ("kind", kind), ("verdict", verdict)];
            counter!("injectd_reviews_total", &labels)
        };
        let refused = |why: Refused| {
            let labels = [("server", server), ("reason", why.as_str())];
            counter!("injectd_requests_refused_total", &labels)
        };
        let of_kind = |&kind: &Kind| (kind, Verdict::ALL.map(|verdict| review(kind, verdict)));
        Self(Arc::new(Reviews {
            answered: Kind::ALL.iter().map(of_kind).collect(),
            skips: SkipReason::ALL
                .map(|reason| counter!("injectd_skips_total", "reason" => reason.as_str())),
            warnings: counter!("injectd_warnings_total"),
            duration: histogram!("injectd_review_duration_seconds", "server" => server),
            in_flight: gauge!("injectd_reviews_in_flight", "server" => server),
            panics: counter!("injectd_panics_total"),
            refused: Refused::ALL.map(refused),
            templates: CacheMetrics::new("templates"),
            upstream,
        }))
    }

    /// Counts a review in flight until the value is dropped.
    pub fn begin(&self) -> Counted {
        Counted::new(&self.0.in_flight)
    }

    /// Counts the outcome of a review.
    pub fn record(&self, outcome: &Outcome<'_>, duration: Duration) {
        let Reviews { answered, skips, warnings, .. } = &*self.0;
        let of_kind = answered.iter().find(|(kind, _)| *kind == outcome.kind);
        let counter = of_kind.and_then(|(_, verdicts)| verdicts.get(outcome.verdict as usize));
        if let Some(counter) = counter {
            counter.increment(1);
        }
        for counter in outcome.reasons.iter().filter_map(|reason| skips.get(reason as usize)) {
            counter.increment(1);
        }
        warnings.increment(outcome.warnings.total() as u64);
        match outcome.template {
            Some(TemplateLookup::Hit) => self.0.templates.hits.increment(1),
            Some(TemplateLookup::Miss) => self.0.templates.misses.increment(1),
            None => {}
        }
        self.0.duration.record(duration);
        if let Some(upstream) = &self.0.upstream {
            upstream.record(outcome);
        }
    }

    /// Counts a rejected request.
    pub fn refused(&self, why: Refused) {
        if let Some(counter) = self.0.refused.get(why as usize) {
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
        Self::new("none", None)
    }
}

// === impl Refused ===

impl Refused {
    const ALL: [Self; 12] = [
        Self::NotAReview,
        Self::Method,
        Self::SlowBody,
        Self::TooLarge,
        Self::Bodies,
        Self::Deadline,
        Self::Requests,
        Self::Aborted,
        Self::Caller,
        Self::Cluster,
        Self::Header,
        Self::Grpc,
    ];

    /// The value of the metric label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAReview => "not_a_review",
            Self::Method => "method",
            Self::SlowBody => "slow_body",
            Self::TooLarge => "too_large",
            Self::Bodies => "bodies",
            Self::Deadline => "deadline",
            Self::Requests => "requests",
            Self::Aborted => "aborted",
            Self::Caller => "caller",
            Self::Cluster => "cluster",
            Self::Header => "header",
            Self::Grpc => "grpc",
        }
    }
}

// === impl Upstream ===

impl Upstream {
    fn new(registry: &Arc<Registry>) -> Self {
        Self { registry: Arc::clone(registry), counters: RwLock::default() }
    }

    fn record(&self, outcome: &Outcome<'_>) {
        let labels = UpstreamLabels::of(outcome);
        if let Some(counters) =
            self.counters.read().unwrap_or_else(PoisonError::into_inner).get(&labels)
        {
            return counters.increment();
        }
        let mut counters = self.counters.write().unwrap_or_else(PoisonError::into_inner);
        let register = || self.registry.register(|| UpstreamCounters::register(labels));
        counters.entry(labels).or_insert_with(register).increment();
    }
}

impl UpstreamLabels {
    fn of(outcome: &Outcome<'_>) -> Self {
        let &Outcome { owner_kind, annotation_at, verdict, reasons, .. } = outcome;
        let response = match verdict {
            Verdict::Injected | Verdict::Annotated => Response::Patched,
            Verdict::Skipped => Response::Skipped(reasons),
            Verdict::Allowed | Verdict::Denied => Response::Other,
        };
        Self { owner_kind, annotation_at, response }
    }
}

impl UpstreamCounters {
    /// `docs/linkerd/injection.md` §2.10: no response is counted for unchanged
    /// services and for denials.
    fn register(labels: UpstreamLabels) -> Self {
        let UpstreamLabels { owner_kind, annotation_at, response } = labels;
        let labels = vec![("owner_kind", owner_kind), ("annotation_at", annotation_at)];
        let skip = match response {
            Response::Patched => Some(("false", String::new())),
            Response::Skipped(reasons) => Some(("true", reasons.joined())),
            Response::Other => None,
        };
        let responses = skip.map(|(skip, reason)| {
            let mut labels: Vec<_> = labels.iter().map(|&(k, v)| (k, v.to_owned())).collect();
            labels.extend([("skip", skip.to_owned()), ("skip_reason", reason)]);
            counter!("proxy_inject_admission_responses_total", &labels)
        });
        Self { requests: counter!("proxy_inject_admission_requests_total", &labels), responses }
    }

    fn increment(&self) {
        self.requests.increment(1);
        if let Some(responses) = &self.responses {
            responses.increment(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminants_are_indexes_into_the_list_of_all() {
        assert!(Verdict::ALL.iter().enumerate().all(|(index, &verdict)| verdict as usize == index));
        let mut reasons = SkipReason::ALL.iter().enumerate();
        assert!(reasons.all(|(index, &reason)| reason as usize == index));
        assert!(Refused::ALL.iter().enumerate().all(|(index, &why)| why as usize == index));
    }
}
