//! The two counters of Linkerd's injector.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use foldhash::fast::RandomState;
use injectd_telemetry::metrics::Registry;
use metrics::{Counter, counter};

use crate::outcome::{Outcome, SkipReasons, Verdict};

/// Linkerd's counters, without the values of annotations and the namespace as labels; registered
/// when they are first needed.
#[derive(Debug)]
pub struct Counters {
    registry: Arc<Registry>,
    counters: RwLock<HashMap<Labels, OfLabels, RandomState>>,
}

/// The kind of the root owner, the source of the inject annotation, and the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Labels {
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
struct OfLabels {
    requests: Counter,
    responses: Option<Counter>,
}

// === impl Counters ===

impl Counters {
    /// Counters in this registry.
    #[must_use]
    pub fn new(registry: &Arc<Registry>) -> Self {
        Self { registry: Arc::clone(registry), counters: RwLock::default() }
    }

    /// Counts the outcome of a review.
    pub fn record(&self, outcome: &Outcome<'_>) {
        let is_undecided = outcome.verdict == Verdict::Denied && outcome.template.is_none();
        if is_undecided {
            // Linkerd counts a request once it has the namespace and the object.
            return;
        }
        let labels = Labels::of(outcome);
        if let Some(counters) =
            self.counters.read().unwrap_or_else(PoisonError::into_inner).get(&labels)
        {
            return counters.increment();
        }
        // Only the first outcome of its kind gets here: all others share the lock for reading.
        let mut counters = self.counters.write().unwrap_or_else(PoisonError::into_inner);
        let register = || self.registry.register(|| OfLabels::register(labels));
        counters.entry(labels).or_insert_with(register).increment();
    }
}

impl Labels {
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

impl OfLabels {
    /// `docs/spec/linkerd/injection.md` §2.10: no response is counted for unchanged
    /// services and for denials.
    fn register(labels: Labels) -> Self {
        let Labels { owner_kind, annotation_at, response } = labels;
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
    use futures_util::FutureExt as _;

    use super::*;
    use crate::{linkerd::values::DEFAULT_VALUES, objects::Objects, standalone::Standalone};

    #[test]
    fn a_request_counts_once_its_namespace_is_found() {
        let objects = Objects::parse("kind: Namespace\nmetadata: {name: shop}").expect("objects");
        let lookups = Standalone::Listed(Arc::new(objects));
        let injector = injectd_testkit::injector_of(DEFAULT_VALUES, lookups);
        let registry = Arc::new(Registry::new());
        let counters = Counters::new(&registry);
        for (namespace, is_counted) in [("other", false), ("shop", true)] {
            let review = format!(
                r#"{{"request":{{"uid":"u","namespace":"{namespace}","object":{{"kind":"Pod"}}}}}}"#
            );
            let answer = injector.review(review.as_bytes()).now_or_never();
            counters.record(&answer.expect("must not wait").expect("an answer").outcome);
            let text = registry.exporter().render();
            let name = "proxy_inject_admission_requests_total{";
            assert_eq!(text.contains(name), is_counted, "{namespace}: {text}");
        }
    }
}
