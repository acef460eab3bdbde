//! The log lines of Linkerd's injector (`docs/spec/linkerd/injection.md` §2.11), which log searches and
//! alerts depend on.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use injectd_k8s::names::MAX_SUBDOMAIN_BYTES;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::{debug, error, info, warn};

use crate::{
    linkerd::events,
    outcome::{Outcome, Verdict, bounded},
};

/// The path from which Linkerd's injector reads the values; its log line contains the path.
const VALUES_PATH: &str = "/var/run/linkerd/config/values";

/// Logs the outcome of a review.
pub fn log_outcome(outcome: &Outcome<'_>) {
    let resource = format!("{}/{}", outcome.kind.as_str(), &*outcome.name);
    // The uid is a client's text: a review may have one of 64 KiB.
    info!("received admission review request {:?}", bounded(&&*outcome.uid, MAX_SUBDOMAIN_BYTES));
    info!("received {resource}");
    for warning in outcome.warnings.lines() {
        warn!("{resource}: {warning}");
    }
    match outcome.verdict {
        Verdict::Injected => info!("injection patch generated for: {resource}"),
        Verdict::Annotated => info!("annotation patch generated for: {resource}"),
        Verdict::Skipped => info!("skipped {resource}: {}", events::in_words(outcome.reasons)),
        Verdict::Allowed => {}
        Verdict::Denied => {
            let reason = outcome.denial.as_deref().unwrap_or_default();
            error!("failed to run webhook handler. Reason: {reason}");
        }
    }
}

/// Logs the whole review, values and patch, as Linkerd's injector does at level debug.
pub fn log_exchange(review: &str, values: &str, answer: &str) {
    let request = serde_json::from_str(review).ok().and_then(|body: Review<'_>| body.request);
    let request = request.map_or(review, RawValue::get);
    debug!("admission request: {request}");
    let object = serde_json::from_str(request).ok().and_then(|body: Request<'_>| body.object);
    debug!("request object bytes: {}", object.map_or("", RawValue::get));
    debug!("{VALUES_PATH} config YAML: {values}");
    let Ok(Answer { response }) = serde_json::from_str(answer) else { return };
    if let Some(patch) = response.patch.and_then(|patch| STANDARD.decode(patch).ok()) {
        let is_injected = response.audit_annotations.verdict == Verdict::Injected.as_str();
        let kind = if is_injected { "injection" } else { "annotation" };
        debug!("{kind} patch: {}", String::from_utf8_lossy(&patch));
    }
}

#[derive(Deserialize)]
struct Review<'r> {
    #[serde(borrow)]
    request: Option<&'r RawValue>,
}

#[derive(Deserialize)]
struct Request<'r> {
    #[serde(borrow)]
    object: Option<&'r RawValue>,
}

#[derive(Deserialize)]
struct Answer {
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    patch: Option<String>,
    audit_annotations: AuditAnnotations,
}

#[derive(Deserialize)]
struct AuditAnnotations {
    verdict: String,
}

#[cfg(test)]
mod tests {
    use std::{
        borrow::Cow,
        fmt::{Debug, Write as _},
        sync::{Arc, Mutex},
    };

    use tracing::{Event, Subscriber, field};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    use super::*;
    use crate::{
        object::Kind,
        outcome::{SkipReasons, Warnings},
        view::Text,
    };

    /// Records the messages of a log, one per line.
    #[derive(Clone, Default)]
    struct Messages(Arc<Mutex<String>>);

    impl field::Visit for Messages {
        fn record_debug(&mut self, _: &field::Field, message: &dyn Debug) {
            let mut messages = self.0.lock().expect("no test must have panicked");
            writeln!(messages, "{message:?}").expect("writing to memory must succeed");
        }
    }

    impl<S: Subscriber> Layer<S> for Messages {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            event.record(&mut self.clone());
        }
    }

    #[test]
    fn a_long_uid_is_cut_in_the_log() {
        let text = |text: String| Text(Cow::Owned(text));
        let outcome = Outcome {
            uid: text("u".repeat(1 << 20)),
            kind: Kind::Pod,
            namespace: text("a".to_owned()),
            name: text("web".to_owned()),
            owner_kind: "",
            annotation_at: "",
            verdict: Verdict::Injected,
            reasons: SkipReasons::default(),
            denial: None,
            warnings: Warnings::default(),
            tainted: 0,
            template: None,
            decisions: None,
            event: None,
            configuration: Arc::default(),
        };
        let messages = Messages::default();
        let subscriber = tracing_subscriber::registry().with(messages.clone());
        tracing::subscriber::with_default(subscriber, || log_outcome(&outcome));
        let messages = messages.0.lock().expect("no test must have panicked");
        let line = messages.lines().next().unwrap_or_default();
        assert!(line.starts_with("received admission review request \"uuu"), "{line:.80}");
        assert_eq!(
            line.len(),
            "received admission review request \"\"".len() + MAX_SUBDOMAIN_BYTES
        );
    }
}
