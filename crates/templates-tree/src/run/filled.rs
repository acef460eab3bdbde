//! The overlays of steps with the values of their expressions.

use std::collections::BTreeMap;

use injectd_merge::schema::POD;
use serde_json::Value;

use super::{
    names::{Names, has_each_once},
    taken::Taken,
};
use crate::{
    fill,
    lay::Placed,
    scope::{Failure, Scope},
};

/// The overlays of steps, filled in.
pub(super) fn filled(steps: &[Taken<'_>]) -> Result<Vec<Filled>, Failure> {
    let mut filled = Vec::new();
    let mut names: BTreeMap<&str, Names> = BTreeMap::new();
    let types = POD.as_struct().expect("a Pod must be a struct");
    for (at, taken) in steps.iter().enumerate() {
        let overlay = taken.step.overlay.as_ref();
        let overlay = overlay.map(|overlay| fill::structure(overlay, &taken.scope)).transpose()?;
        let Some(overlay) = overlay.flatten() else { continue };
        let field = &*taken.step.field;
        if taken.step.for_each.is_some() || !has_each_once(&overlay, types) {
            let added = names.entry(field).or_default().add(&overlay, types);
            added.map_err(|text| Failure { field: format!("{field}.overlay"), text })?;
        }
        taken.step.overlay.iter().for_each(|of| taken.trace(of, &overlay, None));
        let init_containers = placed(&taken.step.init_containers, &taken.scope)?;
        let containers = placed(&taken.step.containers, &taken.scope)?;
        filled.push(Filled { at, overlay, init_containers, containers });
    }
    Ok(filled)
}

/// A finished overlay of a step.
pub(super) struct Filled {
    pub(super) at: usize,
    pub(super) overlay: Value,
    pub(super) init_containers: Placed,
    pub(super) containers: Placed,
}

fn placed(place: &injectd_templates::Place, scope: &Scope<'_>) -> Result<Placed, Failure> {
    let name = place.name.as_ref().map(|name| fill::structure(name, scope)).transpose()?.flatten();
    let name = name.and_then(|name| name.as_str().map(str::to_owned));
    Ok(Placed { position: place.position, name, otherwise: place.otherwise })
}
