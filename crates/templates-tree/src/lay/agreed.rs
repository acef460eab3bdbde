//! Steps of a template that write one container or volume agree about what a conflict does.

use std::collections::BTreeMap;

use injectd_templates::object::OnConflict;
use serde_json::Value;

use super::{Denied, StepOverlay, directive, lists, path};

/// Whether steps that write one container or volume have the same `onConflict`.
pub(super) fn check(steps: &[StepOverlay]) -> Result<(), Denied> {
    let mut known: BTreeMap<(&str, &str), OnConflict> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        for list in lists::LISTS {
            let noun = list.noun();
            let answer = OnConflict::of(step.on_conflict, step.existing, noun == "volume");
            let entries =
                step.overlay.get("spec").and_then(|spec| spec.get(list.key())?.as_array());
            let written = |entry: &&Value| directive::of(entry).is_none();
            for name in entries.into_iter().flatten().filter(written).filter_map(lists::name) {
                if *known.entry((noun, name)).or_insert(answer) != answer {
                    let place = format!("spec.{}{}", list.key(), path::entry(name));
                    let text = format!(
                        "{place}: an earlier step writes this {noun}, too, with another onConflict; \
                         write the same in both steps"
                    );
                    return Err(Denied { step: at, text });
                }
            }
        }
    }
    Ok(())
}
