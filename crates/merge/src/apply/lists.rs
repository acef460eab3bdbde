//! Merges two lists.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Base, Lists,
    arrange::{Placed, arrange},
    fields::ListType,
    keyed, settle, taken,
};
use crate::{
    error::MergeError,
    key::{Key, Positions},
    schema::Merge,
    show::{GO_LIST, GO_MAP, go_type, shown_lists},
};

/// An element of a merged list.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) value: Value,
    /// Whether it comes from the patch, so that it still holds nulls and directives.
    pub(super) is_new: bool,
}

impl Element {
    pub(super) fn of_base(value: Value) -> Self {
        Self { value, is_new: false }
    }

    pub(super) fn of_patch(value: Value) -> Self {
        Self { value, is_new: true }
    }
}

/// The merged list as it stands in the result.
pub(super) fn merge(
    base: Vec<Value>,
    patch: Vec<Value>,
    list: ListType,
    reading: Base,
    lists: Lists,
) -> Result<Vec<Value>, MergeError> {
    Ok(settled(merge_elements(base, patch, list, reading, lists)?, list, reading))
}

/// The values of merged elements, the new ones as Go reads them.
pub(super) fn settled(elements: Vec<Element>, list: ListType, reading: Base) -> Vec<Value> {
    let value = |mut element: Element| {
        match list.element {
            Some(kind) if element.is_new && element.value.is_null() && reading == Base::Pod => {
                element.value = taken::zero(kind);
            }
            kind if element.is_new => settle(&mut element.value, kind, reading),
            _ => {}
        }
        element.value
    };
    elements.into_iter().map(value).collect()
}

/// Go: `mergeSliceHandler` and `mergeSlice`.
pub(super) fn merge_elements(
    base: Vec<Value>,
    patch: Vec<Value>,
    list: ListType,
    reading: Base,
    lists: Lists,
) -> Result<Vec<Element>, MergeError> {
    if list.merge == Merge::Replace && lists == Lists::Merge {
        return Ok(patch.into_iter().map(Element::of_patch).collect());
    }
    if base.is_empty() && patch.is_empty() {
        return Ok(Vec::new());
    }
    let kind = element_type(&base, &patch, list, reading)?;
    match list.merge {
        Merge::ByKey(key) if kind == GO_MAP => keyed::merge(base, patch, key, list, reading),
        Merge::Replace | Merge::Set if kind == GO_MAP => {
            let kind = list.element.map_or("interface", |element| element.go_kind());
            Err(MergeError::NoKeyDeclared { kind })
        }
        _ if lists == Lists::Delete => delete(base, &patch),
        Merge::ByKey(_) => Err(MergeError::WrongType { expected: GO_MAP, actual: kind }),
        Merge::Replace | Merge::Set => union(base, patch),
    }
}

/// Go's type of all elements. In a Pod, a null is the empty value.
///
/// Go: `sliceElementType`, which panics if the first element is null.
pub(super) fn element_type(
    base: &[Value],
    patch: &[Value],
    list: ListType,
    reading: Base,
) -> Result<&'static str, MergeError> {
    let type_in_base = |value: &Value| match list.element {
        Some(kind) if value.is_null() && reading == Base::Pod => go_type(&taken::zero(kind)),
        _ => go_type(value),
    };
    let mut types = base.iter().map(type_in_base).chain(patch.iter().map(go_type));
    let first = types.next().ok_or(MergeError::NoElements)?;
    if first == GO_LIST {
        return Err(MergeError::ListOfLists);
    }
    if first == go_type(&Value::Null) || types.any(|kind| kind != first) {
        return Err(MergeError::MixedElements { lists: shown_lists(&[base, patch]) });
    }
    Ok(first)
}

/// Go: `deleteFromSlice`.
fn delete(base: Vec<Value>, patch: &[Value]) -> Result<Vec<Element>, MergeError> {
    let deleted: HashSet<Key> = patch.iter().map(Key::new).collect::<Result<_, _>>()?;
    let mut kept = Vec::with_capacity(base.len());
    for value in base {
        if !deleted.contains(&Key::new(&value)?) {
            kept.push(Element::of_base(value));
        }
    }
    Ok(kept)
}

/// A set of scalars: those of the base, then new ones, in the order of merged lists.
///
/// Go: `deduplicateScalars` and `normalizeElementOrder`.
fn union(base: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Element>, MergeError> {
    let keys = |list: &[Value]| list.iter().map(Key::new).collect::<Result<Positions, _>>();
    let (in_base, in_patch) = (keys(&base)?, keys(&patch)?);
    let mut seen = HashSet::new();
    let mut placed = Vec::with_capacity(base.len() + patch.len());
    let elements = base.into_iter().map(Element::of_base);
    for element in elements.chain(patch.into_iter().map(Element::of_patch)) {
        let key = Key::new(&element.value)?;
        let (in_patch, in_base) = (in_patch.get(&key), in_base.get(&key));
        if seen.insert(key) {
            placed.push(Placed { item: element, in_patch, in_base, is_deletion: false });
        }
    }
    Ok(arrange(placed))
}
