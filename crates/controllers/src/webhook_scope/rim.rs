//! What a keeper needs besides its rules: the configuration. One trait, so that a simulation can take the
//! place of the API server.

use futures_util::future::BoxFuture;
use injectd_cluster::watch::{KindMetrics, Update};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use tokio::sync::mpsc;

use super::edits::Edit;
use crate::certificates::Answer;

/// A change of the configuration that a watch found.
pub(super) type Found = Update<MutatingWebhookConfiguration>;

/// The webhook configuration.
pub(super) trait Rim: Send + Sync {
    /// Sends the configuration when it changes, until the receiver is gone.
    fn watch(&self, metrics: &KindMetrics, sender: &mpsc::Sender<Found>) -> BoxFuture<'static, ()>;

    /// The configuration; `None` if it does not exist.
    fn read(&self) -> Answer<'_, Option<MutatingWebhookConfiguration>>;

    /// Edits the configuration, if it has this version still.
    fn write(&self, version: &str, edits: &[Edit]) -> Answer<'_, MutatingWebhookConfiguration>;
}
