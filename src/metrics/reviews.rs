//! What a door counts of the reviews that it answers, and the two counters of Linkerd's injector.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{Counted, Registry};
use crate::{
    outcome::{Outcome, SkipReason, SkipReasons, Verdict},
    pod::Kind,
};

/// Counted by a door that answers reviews.
#[derive(Debug, Clone)]
pub struct ReviewMetrics(Arc<Reviews>);

#[derive(Debug)]
struct Reviews {
    answered: HashMap<(&'static str, Verdict), Counter>,
    skips: HashMap<&'static str, Counter>,
    warnings: Counter,
    duration: Histogram,
    in_flight: Gauge,
    panics: Counter,
    refused: HashMap<Refused, Counter>,
    upstream: Option<Upstream>,
}

/// Why a request got no `AdmissionReview` for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// 400: not a review.
    NotAReview,
    /// 405: not POST.
    Method,
    /// 503: the body took too long.
    SlowBody,
    /// 413: the body is too large.
    TooLarge,
    /// 503: the bodies being read are too large together.
    Bodies,
    /// 503: nobody waits for the answer any more.
    Deadline,
    /// 503: as many requests are being answered as there may be.
    Requests,
    /// The client left in the middle of its request.
    Aborted,
    /// The caller is not one that is let in.
    Caller,
    /// 503: the API server does not tell what the answer depends on, or too many reviews wait.
    Cluster,
}

/// Linkerd's counters, without the values of annotations and the namespace as labels.
#[derive(Debug)]
struct Upstream {
    registry: Arc<Registry>,
    requests: Counters<Asked>,
    responses: Counters<(Asked, Option<SkipReasons>)>,
}

/// Counters that are registered when they are first needed.
type Counters<K> = RwLock<HashMap<K, Counter>>;

/// What is asked about: the kind of the root owner, and where injection was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Asked {
    owner_kind: &'static str,
    annotation_at: &'static str,
}

// === impl ReviewMetrics ===

impl ReviewMetrics {
    /// Registers what a door counts.
    #[must_use]
    pub fn register(registry: &Arc<Registry>, door: &'static str) -> Self {
        registry.register(|| Self::new(door, Some(Upstream::new(registry))))
    }

    fn new(door: &'static str, upstream: Option<Upstream>) -> Self {
        let review = |(kind, verdict): (&'static str, Verdict)| {
            let labels = [("door", door), ("kind", kind), ("verdict", verdict.as_str())];
            ((kind, verdict), counter!("injectd_reviews_total", &labels))
        };
        let refused = |why: Refused| {
            let labels = [("door", door), ("reason", why.as_str())];
            (why, counter!("injectd_requests_refused_total", &labels))
        };
        let all = Kind::ALL
            .into_iter()
            .flat_map(|kind| Verdict::ALL.map(|verdict| (kind.as_str(), verdict)));
        Self(Arc::new(Reviews {
            answered: all.map(review).collect(),
            skips: SkipReason::ALL
                .map(SkipReason::as_str)
                .map(|reason| (reason, counter!("injectd_skips_total", "reason" => reason)))
                .into(),
            warnings: counter!("injectd_warnings_total"),
            duration: histogram!("injectd_review_duration_seconds", "door" => door),
            in_flight: gauge!("injectd_reviews_in_flight", "door" => door),
            panics: counter!("injectd_panics_total"),
            refused: Refused::ALL.map(refused).into(),
            upstream,
        }))
    }

    /// A review begins; it ends when the value is dropped.
    pub fn begin(&self) -> Counted {
        Counted::new(&self.0.in_flight)
    }

    /// Counts what became of a review.
    pub fn record(&self, outcome: &Outcome<'_>, duration: Duration) {
        let Reviews { answered, skips, warnings, .. } = &*self.0;
        if let Some(counter) = answered.get(&(outcome.kind.as_str(), outcome.verdict)) {
            counter.increment(1);
        }
        for reason in outcome.reasons.iter() {
            if let Some(counter) = skips.get(reason.as_str()) {
                counter.increment(1);
            }
        }
        warnings.increment(outcome.warnings.len() as u64);
        self.0.duration.record(duration);
        if let Some(upstream) = &self.0.upstream {
            upstream.record(outcome);
        }
    }

    /// Counts a request without an answer.
    pub fn refused(&self, why: Refused) {
        if let Some(counter) = self.0.refused.get(&why) {
            counter.increment(1);
        }
    }

    /// Counts a bug.
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
    const ALL: [Self; 10] = [
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
        }
    }
}

// === impl Upstream ===

impl Upstream {
    fn new(registry: &Arc<Registry>) -> Self {
        let registry = Arc::clone(registry);
        Self { registry, requests: Counters::default(), responses: Counters::default() }
    }

    /// `linkerd.md` §2.10: nothing for services that are left alone, and for denials.
    fn record(&self, outcome: &Outcome<'_>) {
        let asked = Asked { owner_kind: outcome.owner_kind, annotation_at: outcome.annotation_at };
        let labels =
            || vec![("owner_kind", asked.owner_kind), ("annotation_at", asked.annotation_at)];
        self.increment(&self.requests, asked, || {
            counter!("proxy_inject_admission_requests_total", &labels())
        });
        let skipped = match outcome.verdict {
            Verdict::Injected | Verdict::Annotated => None,
            Verdict::Skipped => Some(outcome.reasons),
            Verdict::Allowed | Verdict::Denied => return,
        };
        self.increment(&self.responses, (asked, skipped), || {
            let reason = skipped.map(SkipReasons::joined).unwrap_or_default();
            let mut labels = labels();
            labels.push(("skip", if skipped.is_some() { "true" } else { "false" }));
            labels.push(("skip_reason", &reason));
            let labels: Vec<_> = labels.into_iter().map(|(k, v)| (k, v.to_owned())).collect();
            counter!("proxy_inject_admission_responses_total", &labels)
        });
    }

    fn increment<K: Eq + Hash>(
        &self,
        counters: &Counters<K>,
        key: K,
        register: impl FnOnce() -> Counter,
    ) {
        if let Some(counter) = counters.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return counter.increment(1);
        }
        let mut counters = counters.write().unwrap_or_else(PoisonError::into_inner);
        counters.entry(key).or_insert_with(|| self.registry.register(register)).increment(1);
    }
}
