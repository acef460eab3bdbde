//! The overlays of steps with the values of their expressions.

use std::collections::BTreeMap;

use injectd_merge::schema::POD;
use injectd_templates::{object::Position, permitted};
use serde_json::Value;

use super::{
    names::{Names, has_each_once},
    rules::LISTS,
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
        let Some(of) = &taken.step.overlay else { continue };
        let Some(overlay) = fill::structure(of, &taken.scope)? else { continue };
        let field = &*taken.step.field;
        let fail = |text| Failure { field: format!("{field}.overlay"), text };
        permitted::check(of, &overlay).map_err(fail)?;
        if taken.step.for_each.is_some() || !has_each_once(&overlay, types) {
            let added = names.entry(field).or_default().add(&overlay, types);
            added.map_err(fail)?;
        }
        taken.trace(of, &overlay, None);
        let init_containers = placed(&taken.step.init_containers, &taken.scope)?;
        let containers = placed(&taken.step.containers, &taken.scope)?;
        filled.push(Filled { at, overlay, placed: [init_containers, containers] });
    }
    let step = |filled: &Filled| &steps[filled.at].step.name;
    for items in filled.chunk_by_mut(|one, next| step(one) == step(next)) {
        if items.len() > 1 {
            in_order(items);
        }
    }
    Ok(filled)
}

/// Items of a `forEach` stay in their order: the containers of each are put behind those of the one before that
/// is placed alike.
fn in_order(items: &mut [Filled]) {
    for (list, key) in LISTS.into_iter().enumerate() {
        let mut last: Option<(Placed, String)> = None;
        for item in items.iter_mut() {
            let names = item.overlay["spec"][key].as_array().into_iter().flatten();
            let name = names.filter_map(|container| container["name"].as_str()).next_back();
            let Some(name) = name.map(str::to_owned) else { continue };
            let placed = &mut item.placed[list];
            let own = placed.clone();
            let before =
                last.filter(|(before, _)| *before == own && own.position != Position::Last);
            if let Some((_, before)) = before {
                let otherwise = match own.position {
                    Position::First => Position::First,
                    _ => own.otherwise,
                };
                *placed = Placed { position: Position::After, name: Some(before), otherwise };
            }
            last = Some((own, name));
        }
    }
}

/// A finished overlay of a step.
pub(super) struct Filled {
    pub(super) at: usize,
    pub(super) overlay: Value,
    /// Where containers of the two [`LISTS`] are put.
    pub(super) placed: [Placed; 2],
}

fn placed(place: &injectd_templates::Place, scope: &Scope<'_>) -> Result<Placed, Failure> {
    let name = place.name.as_ref().map(|name| fill::structure(name, scope)).transpose()?.flatten();
    let name = name.and_then(|name| name.as_str().map(str::to_owned));
    Ok(Placed { position: place.position, name, otherwise: place.otherwise })
}
