//! Log lines and events of managed certificates.

use injectd_cluster::{EventQueue, Events, Service, about};
use tracing::{info, warn};

use super::{culprit::Culprit, plan::Change};

/// Writes log lines, and queues events on the Secret.
pub(super) struct Reporter {
    secret: String,
    events: EventQueue,
    /// The last problem of each kind, to log it once.
    problems: Vec<(String, String)>,
}

impl Reporter {
    /// A reporter, and the task that writes its events: no step waits for that.
    pub(super) fn new(
        events: Events,
        service: &Service,
        secret: &str,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let object = about("v1", "Secret", &service.namespace, secret, None);
        let (events, written) = EventQueue::new(events, object);
        (Self { secret: secret.to_owned(), events, problems: Vec::new() }, written)
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
            self.events.add(false, reason, message.to_owned());
        }
    }

    /// A write of a `caBundle`.
    pub(super) fn wrote_bundle(&mut self, configuration: &str) {
        self.problems.clear();
        let message =
            format!("wrote the caBundle of the MutatingWebhookConfiguration {configuration}");
        info!("{message}");
        self.events.add(false, "CABundleWritten", message);
    }

    /// A write of a `caBundle` that was right before.
    pub(super) fn repaired_bundle(&mut self, configuration: &str, culprit: &Culprit) {
        self.problems.clear();
        let why = match culprit {
            Culprit::Manager(manager) => {
                format!("{manager} had changed; make it ignore clientConfig.caBundle")
            }
            Culprit::Empty => "was empty".to_owned(),
            Culprit::Unknown => {
                "another client had changed; make it ignore clientConfig.caBundle".to_owned()
            }
        };
        let message = format!(
            "repaired the caBundle of the MutatingWebhookConfiguration {configuration}, which {why}"
        );
        warn!("{message}");
        self.events.add(true, "CABundleRepaired", message);
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
        self.events.add(true, "CertificateStepFailed", format!("cannot {what}: {error}"));
    }
}
