//! Whether a step of a template that is in a pod was left out there.

use std::{collections::BTreeSet, slice};

use injectd_templates::object::OnConflict;
use serde_json::Value;

use super::{named, taken::Taken};
use crate::{fill, lay, mark::container_names, scope::Failure};

impl Taken<'_> {
    /// Whether the step was left out when the template was applied to a pod, with its rules: `SkipStep` does so
    /// for a container or volume that was there before. Of the containers, `added` are the template's.
    pub(super) fn was_left_out(
        &self,
        pod: &Value,
        added: &BTreeSet<String>,
    ) -> Result<bool, Failure> {
        let Some(overlay) = &self.step.overlay else { return Ok(false) };
        let skips = |is_volume| {
            let answer = OnConflict::of(self.step.on_conflict, self.step.existing, is_volume);
            answer == OnConflict::SkipStep
        };
        if skips(false) {
            let names = named::containers(slice::from_ref(self))?;
            let is_other = |name: &str| names.contains(name) && !added.contains(name);
            if container_names(pod).any(is_other) {
                return Ok(true);
            }
        }
        let volumes = overlay.field("spec").and_then(|spec| spec.field("volumes"));
        let Some(volumes) = volumes.filter(|_| skips(true)) else { return Ok(false) };
        let wanted = fill::structure(volumes, &self.scope)?;
        Ok(wanted.is_some_and(|wanted| lay::meets_another_volume(pod, &wanted)))
    }
}
