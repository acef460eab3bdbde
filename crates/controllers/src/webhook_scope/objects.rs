//! Watch of the webhook configuration, and requests for it.

use futures_util::future::BoxFuture;
use injectd_cluster::watch::{KindMetrics, Watched, follow};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::{Api, Client, api::PatchParams};
use tokio::sync::mpsc;

use super::{
    edits::{Edit, patch},
    rim::{Found, Rim},
};
use crate::certificates::{Answer, FIELD_MANAGER, in_time};

/// A webhook configuration at an API server.
pub(super) struct Objects {
    api: Api<MutatingWebhookConfiguration>,
    name: String,
}

impl Objects {
    pub(super) fn new(client: Client, name: &str) -> Self {
        Self { api: Api::all(client), name: name.to_owned() }
    }
}

impl Rim for Objects {
    fn watch(&self, metrics: &KindMetrics, sender: &mpsc::Sender<Found>) -> BoxFuture<'static, ()> {
        let watched = Watched { name: Some(self.name.clone()), page_size: 1, ..Watched::default() };
        Box::pin(follow(
            self.api.clone(),
            watched,
            metrics.clone(),
            sender.clone(),
            std::convert::identity,
        ))
    }

    fn read(&self) -> Answer<'_, Option<MutatingWebhookConfiguration>> {
        Box::pin(in_time(self.api.get_opt(&self.name)))
    }

    fn write(&self, version: &str, edits: &[Edit]) -> Answer<'_, MutatingWebhookConfiguration> {
        let patch = patch(version, edits);
        let field_manager = Some(FIELD_MANAGER.to_owned());
        let options = PatchParams { field_manager, ..PatchParams::default() };
        Box::pin(async move { in_time(self.api.patch(&self.name, &options, &patch)).await })
    }
}
