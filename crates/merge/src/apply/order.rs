//! The directive `$setElementOrder/LIST`.

mod check;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    Base, Lists, PATCH_DIRECTIVE,
    arrange::{Placed, arrange},
    directives::{SET_ELEMENT_ORDER, is_deletion, named_list},
    fields::{Current, ListType, Types, current},
    lists::{Element, element_type, merge_elements, settled},
    taken,
};
use crate::{
    error::MergeError,
    key::{Key, Positions},
    schema::Merge,
    show::{GO_LIST, go_type},
};
use check::{OrderKeys, Reader, validate};

/// Merges the lists that have such a directive, and takes both out of the patch.
///
/// Go: `mergePatchIntoOriginal`.
pub(super) fn set_element_order(
    base: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    types: Types,
    reading: Base,
) -> Result<(), MergeError> {
    let is_order = |key: &&String| key.starts_with(SET_ELEMENT_ORDER);
    // A copy of the names, because the loop takes the directives out of the patch.
    let directives: Vec<String> = patch.keys().filter(is_order).cloned().collect();
    for directive in directives {
        let order = list_of(patch.remove(&directive).unwrap_or_default())?;
        let key = named_list(&directive, SET_ELEMENT_ORDER).ok_or(MergeError::SetElementOrder)?;
        let in_base = match current(base, key, types.find(key), reading) {
            Current::Absent => None,
            Current::Null => Some(list_of(Value::Null)?),
            Current::Here(value) => Some(list_of(value.take())?),
        };
        let in_patch = patch.remove(key).map(list_of).transpose()?;
        // Go knows no unknown field here, whatever the base.
        let list = types.list(key, Base::Json)?;
        validate(in_patch.as_deref().unwrap_or_default(), &order, list)?;
        if in_base.is_some() || in_patch.is_some() {
            let merged = ordered(in_base, in_patch, &order, list, reading)?;
            base.insert(key.to_owned(), Value::Array(settled(merged, list, reading)));
        }
    }
    Ok(())
}

fn list_of(value: Value) -> Result<Vec<Value>, MergeError> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(MergeError::WrongType { expected: GO_LIST, actual: go_type(&other) }),
    }
}

/// Merges the lists and puts them in order: elements of the directive as it says, and the others
/// where they stood.
fn ordered(
    base: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
    list: ListType,
    reading: Base,
) -> Result<Vec<Element>, MergeError> {
    let reader = Reader::new(list, reading);
    let (in_base, in_patch) =
        (base.as_deref().unwrap_or_default(), patch.as_deref().unwrap_or_default());
    let kind = element_type(in_base, in_patch, list, reading);
    let replaces = list.merge == Merge::Replace
        || in_patch.iter().any(|element| {
            element.get(PATCH_DIRECTIVE).is_some_and(|directive| directive == "replace")
        });
    let base_keys: Vec<_> = in_base.iter().map(|value| reader.key(value, false)).collect();
    let merged = match (base, patch) {
        (Some(base), Some(patch)) => merge_elements(base, patch, list, reading, Lists::Merge)?,
        (base, None) => base.into_iter().flatten().map(Element::of_base).collect(),
        (None, Some(patch)) => {
            let kept = patch.into_iter().filter_map(taken::without_directives);
            kept.map(Element::of_patch).collect()
        }
    };
    let merged_keys = merged.iter().map(|element| reader.key(&element.value, element.is_new));
    let merged_keys: Vec<Key> = merged_keys.collect::<Result<_, _>>()?;
    let order = OrderKeys::new(order, &reader)?;
    let in_order = merged_keys.iter().map(|key| order.get(key)).collect::<Result<Vec<_>, _>>()?;
    kind?;
    order.validate()?;
    let base_keys: Vec<Key> = base_keys.into_iter().collect::<Result<_, _>>()?;
    let in_base = if replaces {
        base_keys.into_iter().collect()
    } else {
        positions_in_base(base_keys, &merged, &merged_keys)
    };
    let places = in_order.into_iter().zip(merged_keys.iter().map(|key| in_base.get(key)));
    let place = |(item, (in_patch, in_base)): (Element, _)| {
        let is_deletion = is_deletion(&item.value);
        Placed { item, in_patch, in_base, is_deletion }
    };
    Ok(arrange(merged.into_iter().zip(places).map(place).collect()))
}

/// Go deletes from the array of the base and appends to it, and then looks up positions in its
/// first elements: elements that are left, and as many new ones as were deleted.
fn positions_in_base(base: Vec<Key>, merged: &[Element], merged_keys: &[Key]) -> Positions {
    let (new, old): (Vec<_>, Vec<_>) =
        merged.iter().zip(merged_keys).partition(|(element, _)| element.is_new);
    let kept: HashSet<&Key> = old.iter().map(|(_, key)| *key).collect();
    let length = base.len();
    let left = base.into_iter().filter(|key| kept.contains(key));
    left.chain(new.into_iter().map(|(_, key)| key.clone())).take(length).collect()
}
