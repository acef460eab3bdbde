//! Names of containers in the overlays of a template.

use std::collections::BTreeSet;

use injectd_templates::structure::Structure;
use serde_json::Value;

use super::{rules::LISTS, taken::Taken};
use crate::{
    fill,
    scope::{Failure, Scope},
};

/// The names of all containers in the overlays of steps, whether they were added or met.
pub(super) fn containers(steps: &[Taken<'_>]) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    for taken in steps {
        let spec = taken.step.overlay.as_ref().and_then(|overlay| overlay.field("spec"));
        let lists = LISTS.iter().filter_map(|list| spec?.field(list));
        for list in lists {
            of_list(list, &taken.scope, &mut names)?;
        }
    }
    Ok(names)
}

fn of_list(
    list: &Structure,
    scope: &Scope<'_>,
    names: &mut BTreeSet<String>,
) -> Result<(), Failure> {
    if let Structure::List(items) = list {
        for item in items {
            let name = match item.field("name") {
                Some(name) => fill::structure(name, scope)?,
                // Its base has the name.
                None => fill::structure(item, scope)?.and_then(|item| item.get("name").cloned()),
            };
            names.extend(name.as_ref().and_then(Value::as_str).map(str::to_owned));
        }
        return Ok(());
    }
    let filled = fill::structure(list, scope)?;
    let items = filled.as_ref().and_then(Value::as_array).into_iter().flatten();
    names.extend(items.filter_map(|item| item["name"].as_str()).map(str::to_owned));
    Ok(())
}
