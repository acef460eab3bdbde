//! Metrics for Prometheus: `injectd_*`, and those of the injectors of Linkerd and Istio.
//!
//! Handles are registered once; their labels come from closed sets. Each part of the program that
//! counts has a struct here. Its default has no registry and counts nothing.

use std::{
    collections::HashMap,
    error::Error,
    io,
    sync::{Mutex, PoisonError},
    time::UNIX_EPOCH,
};

use metrics::{
    Counter, Gauge, counter, describe_counter, describe_gauge, describe_histogram, gauge,
};
use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

mod evaluations;
mod families;
mod process;
mod reviews;
mod templates;

use self::families::{FAMILIES, Kind};
pub use evaluations::EvaluationMetrics;
pub use reviews::{RejectReason, ReviewMetrics};
pub use templates::TemplateMetrics;

/// Bounds of the histogram of durations, in seconds.
// A review takes microseconds if its answer is known, and milliseconds if it must be evaluated or
// looked up; the API server waits for 10 s by default. The default bounds of Prometheus' clients
// begin at 5 ms: nearly all reviews would be in their first bucket.
const DURATION_BOUNDS: [f64; 14] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.1, 0.5,
    2.0, 10.0,
];

/// A histogram with the bounds of Istio's injector, in seconds.
const ISTIO_DURATION: (&str, [f64; 8]) =
    ("sidecar_injection_time_seconds", [0.1, 1.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0]);

type Labels = Vec<(&'static str, String)>;

/// The registry of all metrics.
#[derive(Debug)]
pub struct Registry {
    recorder: PrometheusRecorder,
    infos: Mutex<HashMap<(&'static str, String), Labels>>,
}

/// Renders the metrics; cheap to clone.
#[derive(Debug, Clone)]
pub struct Exporter(PrometheusHandle);

/// Metrics of a server's connections.
#[derive(Debug, Clone)]
pub struct ConnectionMetrics {
    /// Open connections.
    pub open: Gauge,
    /// Accepted connections.
    pub accepted: Counter,
    /// Connections over the limit: closed, or answered with 503.
    pub over_limit: Counter,
    /// Handshakes that failed.
    pub failed_handshakes: Counter,
    /// Handshakes that took too long.
    pub slow_handshakes: Counter,
    /// Connections that could not be accepted.
    pub not_accepted: Counter,
    timed_out: Counter,
    broken: Counter,
}

/// Metrics of a cache.
#[derive(Debug, Clone)]
pub struct CacheMetrics {
    /// Lookups that found an entry.
    pub hits: Counter,
    /// Lookups that found no entry.
    pub misses: Counter,
    entries: Gauge,
}

/// Metrics of a watch, and of the cache that it fills.
#[derive(Debug, Clone)]
pub struct WatchMetrics {
    /// Metrics of the cache.
    pub cache: CacheMetrics,
    errors: Counter,
    last_event: Gauge,
    is_failing: Gauge,
}

/// Metrics of reloads.
#[derive(Debug, Clone)]
pub struct ReloadMetrics {
    /// Reloads that were applied.
    pub applied: Counter,
    /// Reloads that were rejected; the previous files stay in use.
    pub rejected: Counter,
    /// 1 while the files are rejected.
    pub is_rejected: Gauge,
}

/// Metrics of events.
#[derive(Debug, Clone)]
pub struct EventMetrics {
    /// Events that were created or updated.
    pub sent: Counter,
    /// Pods that an open series counts.
    pub folded: Counter,
    /// Pods without an event because of a limit.
    pub dropped: Counter,
    /// Pods whose owner gets no events, or does not exist.
    pub no_object: Counter,
    /// Events that could not be written.
    pub failed: Counter,
}

// === impl Registry ===

impl Registry {
    /// An empty registry.
    ///
    /// # Panics
    /// Never: the histogram has bounds.
    #[must_use]
    pub fn new() -> Self {
        let (istio, istio_bounds) = ISTIO_DURATION;
        let istio = Matcher::Full(istio.to_owned());
        let builder = PrometheusBuilder::new()
            .set_buckets(&DURATION_BOUNDS)
            .and_then(|builder| builder.set_buckets_for_metric(istio, &istio_bounds));
        let recorder = builder.expect("a histogram must have bounds").build_recorder();
        let registry = Self { recorder, infos: Mutex::default() };
        registry.describe();
        registry
    }

    /// The exporter of these metrics.
    #[must_use]
    pub fn exporter(&self) -> Exporter {
        Exporter(self.recorder.handle())
    }

    /// Runs `make` with this registry as the recorder.
    pub fn register<T>(&self, make: impl FnOnce() -> T) -> T {
        metrics::with_local_recorder(&self.recorder, make)
    }

    /// Sets a gauge that rarely changes.
    pub fn set(&self, name: &'static str, labels: &[(&'static str, String)], value: f64) {
        self.register(|| gauge!(name, labels).set(value));
    }

    /// Sets an info gauge: 1 for the current labels of a subject, 0 for its previous ones; `None` if
    /// the subject is gone.
    pub fn set_info(&self, name: &'static str, subject: &str, labels: Option<&Labels>) {
        let mut infos = self.infos.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name, subject.to_owned());
        let before = match labels {
            Some(labels) => infos.insert(key, labels.clone()),
            None => infos.remove(&key),
        };
        if let Some(before) = before.filter(|before| Some(before) != labels) {
            self.set(name, &before, 0.0);
        }
        if let Some(labels) = labels {
            self.set(name, labels, 1.0);
        }
    }

    fn describe(&self) {
        self.register(|| {
            for (name, kind, help) in FAMILIES {
                match kind {
                    Kind::Counter => describe_counter!(name, help),
                    Kind::Gauge => describe_gauge!(name, help),
                    Kind::Histogram => describe_histogram!(name, help),
                }
            }
        });
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Exporter {
    /// The metrics in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = self.0.render();
        process::write(&mut text);
        text
    }

    /// Folds the samples of histograms; call it at least once a second.
    pub fn run_upkeep(&self) {
        self.0.run_upkeep();
    }
}

// === impl ConnectionMetrics ===

impl ConnectionMetrics {
    /// Registers the connection metrics of a server.
    #[must_use]
    pub fn register(registry: &Registry, server: &'static str) -> Self {
        registry.register(|| Self::new(server))
    }

    fn new(server: &'static str) -> Self {
        let not_shaken = |reason| counter!("injectd_handshakes_failed_total", "server" => server, "reason" => reason);
        let failed = |reason| counter!("injectd_connections_failed_total", "server" => server, "reason" => reason);
        Self {
            open: gauge!("injectd_connections", "server" => server),
            accepted: counter!("injectd_connections_total", "server" => server),
            over_limit: counter!("injectd_connections_rejected_total", "server" => server),
            failed_handshakes: not_shaken("error"),
            slow_handshakes: not_shaken("timeout"),
            not_accepted: counter!("injectd_accept_errors_total", "server" => server),
            timed_out: failed("timeout"),
            broken: failed("error"),
        }
    }

    /// Counts a failed connection by its cause.
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
        Self::new("none")
    }
}

/// Increments a gauge until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it decrements the gauge"]
pub struct Counted(Gauge);

impl Counted {
    /// Increments the gauge.
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

// === impl CacheMetrics ===

impl CacheMetrics {
    /// Registers the metrics of a cache.
    #[must_use]
    pub fn register(registry: &Registry, cache: &'static str) -> Self {
        registry.register(|| Self::new(cache))
    }

    fn new(cache: &'static str) -> Self {
        Self {
            hits: counter!("injectd_cache_hits_total", "cache" => cache),
            misses: counter!("injectd_cache_misses_total", "cache" => cache),
            entries: gauge!("injectd_cache_entries", "cache" => cache),
        }
    }

    /// Records the number of cached entries.
    #[expect(clippy::cast_precision_loss, reason = "a cache holds less than 2^53 entries")]
    pub fn keep(&self, entries: u64) {
        self.entries.set(entries as f64);
    }
}

impl Default for CacheMetrics {
    fn default() -> Self {
        Self::new("none")
    }
}

// === impl WatchMetrics ===

impl WatchMetrics {
    /// Registers the metrics of a watch and its cache.
    #[must_use]
    pub fn register(registry: &Registry, cache: &'static str) -> Self {
        registry.register(|| Self::new(cache))
    }

    fn new(cache: &'static str) -> Self {
        Self {
            cache: CacheMetrics::new(cache),
            errors: counter!("injectd_watch_errors_total", "watch" => cache),
            last_event: gauge!("injectd_watch_last_event_timestamp_seconds", "watch" => cache),
            is_failing: gauge!("injectd_watch_failing", "watch" => cache),
        }
    }

    /// Records an event of the watch.
    pub fn succeeded(&self) {
        self.seen();
        self.recovered();
    }

    /// Records an event of one of several watches.
    pub fn seen(&self) {
        let now = UNIX_EPOCH.elapsed().unwrap_or_default();
        self.last_event.set(now.as_secs_f64());
    }

    /// Records that no watch fails.
    pub fn recovered(&self) {
        self.is_failing.set(0);
    }

    /// Records a failure of the watch.
    pub fn failed(&self) {
        self.errors.increment(1);
        self.is_failing.set(1);
    }
}

impl Default for WatchMetrics {
    fn default() -> Self {
        Self::new("none")
    }
}

// === impl ReloadMetrics ===

impl ReloadMetrics {
    /// Registers the metrics of reloads of `what`.
    #[must_use]
    pub fn register(registry: &Registry, what: &str) -> Self {
        let what = || what.to_owned();
        registry.register(|| Self {
            applied: counter!("injectd_reloads_total", "what" => what(), "result" => "applied"),
            rejected: counter!("injectd_reloads_total", "what" => what(), "result" => "rejected"),
            is_rejected: gauge!("injectd_reload_rejected", "what" => what()),
        })
    }
}

// === impl EventMetrics ===

impl EventMetrics {
    /// Registers the metrics of events.
    #[must_use]
    pub fn register(registry: &Registry) -> Self {
        registry.register(Self::default)
    }
}

impl Default for EventMetrics {
    fn default() -> Self {
        let result = |result: &'static str| counter!("injectd_events_total", "result" => result);
        Self {
            sent: result("sent"),
            folded: result("folded"),
            dropped: result("dropped"),
            no_object: result("no_object"),
            failed: result("failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Arc};

    use injectd_core::{linkerd::snapshot::Snapshot, mesh::Mesh as _};

    use super::*;

    /// The first words after `comment`, in the lines that begin with it.
    fn named(text: &str, comment: &str) -> HashSet<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(comment));
        lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    }

    #[test]
    fn every_family_has_help() {
        let registry = Arc::new(Registry::new());
        drop(ConnectionMetrics::register(&registry, "webhook"));
        drop(CacheMetrics::register(&registry, "templates"));
        drop(WatchMetrics::register(&registry, "namespaces"));
        drop(ReloadMetrics::register(&registry, "config"));
        drop(EventMetrics::register(&registry));
        drop(ReviewMetrics::register(&registry, "webhook", Snapshot::SKIP_REASONS));
        let text = registry.exporter().render();
        assert_eq!(named(&text, "# TYPE "), named(&text, "# HELP "));
        assert!(text.contains("# HELP injectd_watch_failing "), "{text}");
    }

    #[test]
    fn the_process_is_measured_at_each_scrape() {
        let exporter = Registry::new().exporter();
        let value = |name: &str| -> f64 {
            let text = exporter.render();
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
        };
        let descriptors = value("process_open_fds");
        let open = [(); 64].map(|()| std::fs::File::open("/dev/null").expect("a file"));
        assert!(value("process_open_fds") >= descriptors + 1.0);
        drop(open);
        assert!(value("process_cpu_seconds_total") >= 0.0);
        let resident = value("process_resident_memory_bytes");
        assert!(resident > 1e5 && resident < value("process_virtual_memory_bytes"));
        assert!(value("process_max_fds") >= descriptors);
        let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
        let age = now - value("process_start_time_seconds");
        assert!((-2.0..86_400.0).contains(&age), "{age}");
    }

    #[test]
    fn every_family_is_in_the_documentation() {
        let documentation = include_str!("../../../docs/operations.md");
        let process = named(&Registry::new().exporter().render(), "# TYPE ");
        let names = FAMILIES.iter().map(|&(name, ..)| name.to_owned()).chain(process);
        let missing: Vec<_> =
            names.filter(|name| !documentation.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
