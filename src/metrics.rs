//! What is counted, for Prometheus: `injectd_*`, and the two counters of Linkerd's injector.
//!
//! Handles are registered once, their labels come from closed sets. A part of the program that
//! counts has a struct of its own here; its default counts nothing.

use std::{
    collections::HashMap,
    error::Error,
    hash::Hash,
    io,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, UNIX_EPOCH},
};

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use metrics_exporter_prometheus::{
    BuildError, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use crate::{
    outcome::{Outcome, SkipReason, SkipReasons, Verdict},
    pod::Kind,
};

/// Bounds of the histogram of durations, in seconds.
const DURATION_BOUNDS: [f64; 14] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5,
    2.0, 10.0,
];

/// Everything that is counted.
#[derive(Debug)]
pub struct Registry {
    recorder: PrometheusRecorder,
    infos: Mutex<HashMap<&'static str, String>>,
}

/// Writes what was counted; cheap to copy.
#[derive(Debug, Clone)]
pub struct Exporter(PrometheusHandle);

/// Counted by a door's connections.
#[derive(Debug, Clone)]
pub struct ConnectionMetrics {
    /// Connections that are open and served.
    pub open: Gauge,
    /// Connections that were accepted.
    pub accepted: Counter,
    /// Closed, or answered with 503, because there are as many as there may be.
    pub over_limit: Counter,
    /// Closed because too many handshakes are in progress.
    pub over_handshakes: Counter,
    /// Handshakes that failed.
    pub failed_handshakes: Counter,
    /// Handshakes that took too long.
    pub slow_handshakes: Counter,
    /// Connections that could not be accepted.
    pub not_accepted: Counter,
    timed_out: Counter,
    broken: Counter,
}

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
    /// 503: the API server does not tell what the answer depends on, or too many reviews wait.
    Cluster,
}

/// Counted by a cache.
#[derive(Debug, Clone)]
pub struct CacheMetrics {
    /// Entries that were found.
    pub hits: Counter,
    /// Entries that were not.
    pub misses: Counter,
    entries: Gauge,
}

/// Counted by a watch, and by the cache that it feeds.
#[derive(Debug, Clone)]
pub struct WatchMetrics {
    /// Of the cache.
    pub cache: CacheMetrics,
    errors: Counter,
    last_event: Gauge,
    is_failing: Gauge,
}

/// Counted by whatever reads files again.
#[derive(Debug, Clone)]
pub struct ReloadMetrics {
    /// Files that were taken over.
    pub taken: Counter,
    /// Files that were refused; the last good ones serve on.
    pub refused: Counter,
    /// 1 as long as files are refused.
    pub is_refused: Gauge,
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

// === impl Registry ===

impl Registry {
    /// An empty registry.
    ///
    /// # Errors
    /// Never: the bounds are there.
    pub fn new() -> Result<Self, BuildError> {
        let recorder = PrometheusBuilder::new().set_buckets(&DURATION_BOUNDS)?.build_recorder();
        let registry = Self { recorder, infos: Mutex::default() };
        registry.describe();
        Ok(registry)
    }

    /// What writes the text for Prometheus.
    #[must_use]
    pub fn exporter(&self) -> Exporter {
        Exporter(self.recorder.handle())
    }

    /// A counter or gauge is made in here.
    fn register<T>(&self, make: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(&self.recorder, make)
    }

    /// Sets a gauge that hardly ever changes.
    pub fn set(&self, name: &'static str, labels: &[(&'static str, String)], value: f64) {
        self.register(|| gauge!(name, labels).set(value));
    }

    /// Sets the gauge that is 1 for the value a label has now, and 0 for those it had.
    pub fn set_info(&self, name: &'static str, label: &'static str, value: String) {
        let mut infos = self.infos.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = infos.insert(name, value.clone()) {
            self.set(name, &[(label, before)], 0.0);
        }
        self.set(name, &[(label, value)], 1.0);
    }

    fn describe(&self) {
        self.register(|| {
            describe_counter!(
                "injectd_reviews_total",
                "Reviews answered, by door, kind and verdict."
            );
            describe_counter!("injectd_skips_total", "Reasons not to inject.");
            describe_counter!("injectd_warnings_total", "Annotations that were ignored.");
            describe_counter!(
                "injectd_requests_refused_total",
                "Requests without a review for an answer."
            );
            describe_counter!("injectd_panics_total", "Reviews that failed because of a bug.");
            describe_counter!("injectd_connections_total", "Connections accepted.");
            describe_counter!("injectd_connections_refused_total", "Connections over a limit.");
            describe_counter!("injectd_handshakes_failed_total", "TLS handshakes that failed.");
            describe_counter!("injectd_reloads_total", "Files that changed, by what and result.");
            describe_gauge!("injectd_connections", "Connections open.");
            describe_counter!("injectd_connections_failed_total", "Connections that ended early.");
            describe_counter!("injectd_accept_errors_total", "Connections that were not accepted.");
            describe_gauge!("injectd_reload_refused", "1 as long as changed files are refused.");
            describe_histogram!("injectd_review_duration_seconds", "Time from header to answer.");
            describe_counter!(
                "proxy_inject_admission_requests_total",
                "Admission requests, as Linkerd counts them."
            );
            describe_counter!(
                "proxy_inject_admission_responses_total",
                "Admission responses, as Linkerd counts them."
            );
            describe_gauge!("injectd_reviews_in_flight", "Reviews being answered.");
            describe_gauge!("injectd_config_generation", "Configurations taken over so far.");
            describe_gauge!("injectd_config_info", "The Linkerd release that is spoken.");
            describe_gauge!("injectd_build_info", "The version of injectd.");
            describe_gauge!(
                "injectd_certificate_expiry_timestamp_seconds",
                "When the webhook's certificate expires, in seconds since 1970."
            );
            describe_gauge!("injectd_cache_entries", "Entries that a cache holds.");
            describe_counter!("injectd_cache_hits_total", "Entries found in a cache.");
            describe_counter!("injectd_cache_misses_total", "Entries not found in a cache.");
        });
    }
}

impl Exporter {
    /// The text that Prometheus reads.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Has to be done every few seconds: folds what histograms have seen.
    pub fn run_upkeep(&self) {
        self.0.run_upkeep();
    }
}

// === impl ConnectionMetrics ===

impl ConnectionMetrics {
    /// Registers what the connections of a door count.
    #[must_use]
    pub fn register(registry: &Registry, door: &'static str) -> Self {
        registry.register(|| Self {
            open: gauge!("injectd_connections", "door" => door),
            accepted: counter!("injectd_connections_total", "door" => door),
            over_limit: counter!("injectd_connections_refused_total", "door" => door, "reason" => "connections"),
            over_handshakes: counter!("injectd_connections_refused_total", "door" => door, "reason" => "handshakes"),
            failed_handshakes: counter!("injectd_handshakes_failed_total", "door" => door, "reason" => "error"),
            not_accepted: counter!("injectd_accept_errors_total", "door" => door),
            timed_out: counter!("injectd_connections_failed_total", "door" => door, "reason" => "timeout"),
            broken: counter!("injectd_connections_failed_total", "door" => door, "reason" => "error"),
            slow_handshakes: counter!("injectd_handshakes_failed_total", "door" => door, "reason" => "timeout"),
        })
    }
}

impl ConnectionMetrics {
    /// Counts why a connection ended that should not have.
    pub fn failed(&self, error: &(dyn Error + 'static)) {
        let causes = std::iter::successors(Some(error), |&error| error.source());
        let is_timeout = |cause: &(dyn Error + 'static)| {
            let http = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout);
            let io = cause.downcast_ref::<io::Error>();
            http || io.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
        };
        let counter =
            if causes.into_iter().any(is_timeout) { &self.timed_out } else { &self.broken };
        counter.increment(1);
    }
}

impl Default for ConnectionMetrics {
    fn default() -> Self {
        let none = Counter::noop;
        Self {
            open: Gauge::noop(),
            accepted: none(),
            over_limit: none(),
            over_handshakes: none(),
            failed_handshakes: none(),
            slow_handshakes: none(),
            not_accepted: none(),
            timed_out: none(),
            broken: none(),
        }
    }
}

// === impl ReviewMetrics ===

impl ReviewMetrics {
    /// Registers what a door counts.
    #[must_use]
    pub fn register(registry: &Arc<Registry>, door: &'static str) -> Self {
        let review = |(kind, verdict): (&'static str, Verdict)| {
            let labels = [("door", door), ("kind", kind), ("verdict", verdict.as_str())];
            ((kind, verdict), counter!("injectd_reviews_total", &labels))
        };
        let all =
            Kind::NAMES.into_iter().flat_map(|kind| Verdict::ALL.map(|verdict| (kind, verdict)));
        registry.register(|| {
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
                refused: Refused::ALL
                    .map(|why| (why, counter!("injectd_requests_refused_total", "door" => door, "reason" => why.as_str())))
                    .into(),
                upstream: Some(Upstream::new(registry)),
            }))
        })
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
        Self(Arc::new(Reviews {
            answered: HashMap::new(),
            skips: HashMap::new(),
            warnings: Counter::noop(),
            duration: Histogram::noop(),
            in_flight: Gauge::noop(),
            panics: Counter::noop(),
            refused: HashMap::new(),
            upstream: None,
        }))
    }
}

/// Something that a gauge counts until it is dropped.
#[derive(Debug)]
#[must_use = "it counts until it is dropped"]
pub struct Counted(Gauge);

impl Counted {
    /// One more.
    pub fn new(gauge: &Gauge) -> Self {
        gauge.increment(1);
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

// === impl Refused ===

impl Refused {
    const ALL: [Self; 9] = [
        Self::NotAReview,
        Self::Method,
        Self::SlowBody,
        Self::TooLarge,
        Self::Bodies,
        Self::Deadline,
        Self::Requests,
        Self::Aborted,
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
            Self::Cluster => "cluster",
        }
    }
}

// === impl CacheMetrics ===

impl CacheMetrics {
    /// Registers what a cache counts.
    #[must_use]
    pub fn register(registry: &Registry, cache: &'static str) -> Self {
        registry.register(|| Self {
            hits: counter!("injectd_cache_hits_total", "cache" => cache),
            misses: counter!("injectd_cache_misses_total", "cache" => cache),
            entries: gauge!("injectd_cache_entries", "cache" => cache),
        })
    }

    /// Tells how many entries are kept.
    #[expect(clippy::cast_precision_loss, reason = "a cache holds less than 2^53 entries")]
    pub fn keep(&self, entries: u64) {
        self.entries.set(entries as f64);
    }
}

impl Default for CacheMetrics {
    fn default() -> Self {
        Self { hits: Counter::noop(), misses: Counter::noop(), entries: Gauge::noop() }
    }
}

// === impl WatchMetrics ===

impl Default for WatchMetrics {
    fn default() -> Self {
        Self {
            cache: CacheMetrics::default(),
            errors: Counter::noop(),
            last_event: Gauge::noop(),
            is_failing: Gauge::noop(),
        }
    }
}

impl WatchMetrics {
    /// Registers what a watch and its cache count.
    #[must_use]
    pub fn register(registry: &Registry, cache: &'static str) -> Self {
        Self {
            cache: CacheMetrics::register(registry, cache),
            errors: registry.register(|| counter!("injectd_watch_errors_total", "watch" => cache)),
            last_event: registry.register(
                || gauge!("injectd_watch_last_event_timestamp_seconds", "watch" => cache),
            ),
            is_failing: registry.register(|| gauge!("injectd_watch_failing", "watch" => cache)),
        }
    }

    /// The watch showed something.
    pub fn succeeded(&self) {
        let now = UNIX_EPOCH.elapsed().unwrap_or_default();
        self.last_event.set(now.as_secs_f64());
        self.is_failing.set(0);
    }

    /// The watch broke off.
    pub fn failed(&self) {
        self.errors.increment(1);
        self.is_failing.set(1);
    }
}

// === impl ReloadMetrics ===

impl ReloadMetrics {
    /// Registers what is counted when `what` changes.
    #[must_use]
    pub fn register(registry: &Registry, what: &'static str) -> Self {
        registry.register(|| Self {
            taken: counter!("injectd_reloads_total", "what" => what, "result" => "taken"),
            refused: counter!("injectd_reloads_total", "what" => what, "result" => "refused"),
            is_refused: gauge!("injectd_reload_refused", "what" => what),
        })
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
