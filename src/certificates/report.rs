//! Log lines and events of managed certificates.

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};
use tracing::{debug, info, warn};

use super::{plan::Change, view::Service};
use crate::{
    causes::with_causes,
    cluster::{Events, about},
};

/// Events that wait to be written; further ones are dropped.
const QUEUE: usize = 32;
/// The same event is written once in this time.
const REPEAT: Duration = Duration::from_mins(1);

/// Writes log lines, and queues events on the Secret.
pub(super) struct Reporter {
    secret: String,
    queue: mpsc::Sender<Event>,
    /// The last problem of each kind, to log it once.
    problems: Vec<(String, String)>,
}

struct Event {
    is_warning: bool,
    reason: &'static str,
    message: String,
}

impl Reporter {
    /// A reporter, and the task that writes its events: no step waits for that.
    pub(super) fn new(
        events: Events,
        service: &Service,
        secret: &str,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let (queue, received) = mpsc::channel(QUEUE);
        let reporter = Self { secret: secret.to_owned(), queue, problems: Vec::new() };
        (reporter, write(events, service.namespace.clone(), secret.to_owned(), received))
    }

    /// A write of the Secret.
    pub(super) fn wrote_secret(&mut self, changes: &[Change]) {
        self.problems.clear();
        for change in changes {
            let (reason, message) = match change {
                Change::NewCa => ("CACreated", "created a CA"),
                Change::NextCaSigns => ("CASigns", "the next CA signs from now on"),
                Change::NewLeaf => ("CertificateCreated", "created the webhook's certificate"),
                Change::Restored => {
                    ("SecretRestored", "the Secret was lost or not valid: restored it")
                }
                Change::KeptCa => ("CAKept", "kept a previous CA until it ends"),
                Change::RevokedCa => ("CARevoked", "the CA that signed was revoked: replaced it"),
                Change::KeptRevoked => ("CARevoked", "a CA that was revoked stays revoked"),
                Change::RemovedCa => {
                    ("CARemoved", "removed a CA that has ended or begins too late")
                }
            };
            info!(secret = self.secret, "{message}");
            self.queue(false, reason, message.to_owned());
        }
    }

    /// A write of a `caBundle`.
    pub(super) fn wrote_bundle(&mut self, configuration: &str) {
        self.problems.clear();
        let message =
            format!("wrote the caBundle of the MutatingWebhookConfiguration {configuration}");
        info!("{message}");
        self.queue(false, "CABundleWritten", message);
    }

    /// A write of a `caBundle` that another field manager had changed.
    pub(super) fn repaired_bundle(&mut self, configuration: &str, manager: Option<&str>) {
        self.problems.clear();
        let manager = manager.unwrap_or("another client");
        let message = format!(
            "repaired the caBundle of the MutatingWebhookConfiguration {configuration}, which \
             {manager} had changed; make it ignore clientConfig.caBundle"
        );
        warn!("{message}");
        self.queue(true, "CABundleRepaired", message);
    }

    /// Something failed. It is logged when it is new.
    pub(super) fn failed(&mut self, what: &str, error: &str) {
        let is_known = self.problems.iter().any(|(of, text)| of == what && text == error);
        if is_known {
            return;
        }
        self.problems.retain(|(of, _)| of != what);
        self.problems.push((what.to_owned(), error.to_owned()));
        warn!(error, "cannot {what}; the certificates in use stay");
        self.queue(true, "CertificateStepFailed", format!("cannot {what}: {error}"));
    }

    fn queue(&self, is_warning: bool, reason: &'static str, message: String) {
        if self.queue.try_send(Event { is_warning, reason, message }).is_err() {
            debug!("an event of the Secret {} is dropped: the queue is full", self.secret);
        }
    }
}

/// Writes events until the reporter is gone.
async fn write(
    events: Events,
    namespace: String,
    secret: String,
    mut received: mpsc::Receiver<Event>,
) {
    let object = about("v1", "Secret", &namespace, &secret, None);
    let mut recent: Vec<(String, Instant)> = Vec::new();
    while let Some(Event { is_warning, reason, message }) = received.recv().await {
        let now = Instant::now();
        recent.retain(|(_, at)| *at + REPEAT > now);
        if recent.iter().any(|(of, _)| *of == message) {
            continue;
        }
        let written = events.record(&object, is_warning, reason, &message).await;
        if let Err(error) = written {
            debug!(error = with_causes(&error), "cannot write an event of the Secret");
        }
        recent.push((message, now));
    }
}
