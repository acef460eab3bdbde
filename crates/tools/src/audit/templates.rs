//! The sidecar templates that pods are compared with: those of `--templates`, or of the cluster.

use std::path::PathBuf;

use injectd_command::{CommandError, config::Purpose};
use injectd_controllers::audit::{Served, Webhooks, summary::Summary};
use injectd_templates::{Template, ceiling::Ceiling};
use kube::Client;

use super::{Args, files::Input};
use crate::{in_force, sidecars::TemplateFiles};

impl Args {
    /// The templates that are in force in a cluster.
    pub(super) async fn templates_of_cluster(
        &self,
        client: &Client,
        webhooks: &Webhooks,
        summary: &mut Summary,
    ) -> Result<Option<Served>, CommandError> {
        let webhooks = &webhooks.configurations;
        if self.templates.is_empty() {
            let (served, notes) = in_force::of_cluster(client, webhooks).await;
            for note in notes {
                summary.add_not_read(note);
            }
            return Ok(served);
        }
        let templates = self.templates_in_force(&[])?;
        Ok(Some(in_force::in_cluster(templates, client, webhooks)))
    }

    /// The templates of `--templates`, with the objects of files.
    pub(super) fn templates_of_files(
        &self,
        input: &mut Input,
        is_called: bool,
    ) -> Result<Option<Served>, CommandError> {
        if self.templates.is_empty() {
            return Ok(None);
        }
        let templates = self.templates_in_force(&self.files)?;
        for object in self.config.object_values(Purpose::Inject)?.into_iter().flatten() {
            input.keep(&object);
        }
        let objects = std::mem::take(&mut input.objects);
        Ok(Some(in_force::of_files(templates, objects, is_called)))
    }

    /// The templates of `--templates`. They are in force, whatever the ceiling of the webhook is.
    fn templates_in_force(&self, inputs: &[PathBuf]) -> Result<Vec<Template>, CommandError> {
        TemplateFiles::of(self.templates.clone()).read(inputs, Ceiling::Privileged)
    }
}
