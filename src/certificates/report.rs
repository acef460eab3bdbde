//! Log lines and events of managed certificates.

use tracing::{info, warn};

use super::{plan::Change, view::Service};
use crate::cluster::{Events, about};

/// Writes log lines, and events on the Secret.
pub(super) struct Reporter {
    events: Events,
    namespace: String,
    secret: String,
    /// The last problem of each kind, to log it once.
    problems: Vec<(String, String)>,
}

impl Reporter {
    pub(super) fn new(events: Events, service: &Service, secret: &str) -> Self {
        let (namespace, secret) = (service.namespace.clone(), secret.to_owned());
        Self { events, namespace, secret, problems: Vec::new() }
    }

    /// A write of the Secret.
    pub(super) async fn wrote_secret(&mut self, changes: &[Change]) {
        self.problems.clear();
        for change in changes {
            let (reason, message) = match change {
                Change::NewCa => ("CACreated", "created a CA"),
                Change::NewLeaf => ("CertificateCreated", "created the webhook's certificate"),
                Change::Restored => {
                    ("SecretRestored", "the Secret was lost or not valid: restored it")
                }
                Change::KeptCa => ("CAKept", "kept a previous CA until it ends"),
                Change::RemovedCa => ("CARemoved", "removed a previous CA, which has ended"),
            };
            info!(secret = self.secret, "{message}");
            self.write(false, reason, message).await;
        }
    }

    /// A write of a `caBundle`; `manager` changed it before.
    pub(super) async fn wrote_bundle(&mut self, configuration: &str, manager: Option<&str>) {
        self.problems.clear();
        let (is_repair, reason, message) = match manager {
            None => (
                false,
                "CABundleWritten",
                format!("wrote the caBundle of the MutatingWebhookConfiguration {configuration}"),
            ),
            Some(manager) => (
                true,
                "CABundleRepaired",
                format!(
                    "repaired the caBundle of the MutatingWebhookConfiguration {configuration}, \
                     which {manager} had changed; make it ignore clientConfig.caBundle"
                ),
            ),
        };
        if is_repair {
            warn!("{message}");
        } else {
            info!("{message}");
        }
        self.write(is_repair, reason, &message).await;
    }

    /// Something failed. It is logged when it is new.
    pub(super) async fn failed(&mut self, what: &str, error: String) {
        let is_known = self.problems.iter().any(|(of, text)| of == what && *text == error);
        if is_known {
            return;
        }
        self.problems.retain(|(of, _)| of != what);
        self.problems.push((what.to_owned(), error.clone()));
        warn!(error, "cannot {what}; the certificates in use stay");
        let message = format!("cannot {what}: {error}");
        self.write(true, "CertificateStepFailed", &message).await;
    }

    async fn write(&self, is_warning: bool, reason: &'static str, message: &str) {
        let object = about("v1", "Secret", &self.namespace, &self.secret, None);
        let written = self.events.record(&object, is_warning, reason, message).await;
        if let Err(error) = written {
            let error = crate::causes::with_causes(&error);
            tracing::debug!(error, "cannot write an event of the Secret {}", self.secret);
        }
    }
}
