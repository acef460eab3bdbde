//! The list of a `$setElementOrder` directive, and the lists it is about.

use serde_json::Value;

use super::super::{
    Base, PATCH_DIRECTIVE, directives::no_merge_key, fields::ListType, keyed::Keys,
};
use crate::{
    error::MergeError,
    key::{Key, Positions},
    schema::Merge,
    show::{GO_MAP, go_type, shown},
};

/// Reads the keys of elements: the merge key of objects, or scalars themselves.
pub(super) struct Reader {
    keys: Option<Keys>,
}

impl Reader {
    pub(super) fn new(list: ListType, reading: Base) -> Self {
        let keys = match list.merge {
            Merge::ByKey(name) => Some(Keys::new(name, list, reading)),
            Merge::Replace | Merge::Set => None,
        };
        Self { keys }
    }

    pub(super) fn key(&self, value: &Value, is_new: bool) -> Result<Key, MergeError> {
        match &self.keys {
            // A null in a list of a Pod is an empty element.
            Some(_) if !(value.is_object() || value.is_null() && !is_new) => {
                Err(MergeError::WrongType { expected: GO_MAP, actual: go_type(value) })
            }
            Some(keys) => keys.required(value, is_new),
            None => Key::new(value),
        }
    }
}

/// The keys of the directive's list.
pub(super) struct OrderKeys {
    positions: Positions,
    /// The first element that is not an object or has no key.
    first_bad: Option<MergeError>,
    /// The first element that is not an object.
    not_a_map: Option<usize>,
}

impl OrderKeys {
    pub(super) fn new(order: &[Value], reader: &Reader) -> Result<Self, MergeError> {
        let mut all = Self { positions: Positions::default(), first_bad: None, not_a_map: None };
        for (at, value) in order.iter().enumerate() {
            let key = match (&reader.keys, value) {
                (None, value) => Ok(Key::new(value)?),
                (Some(keys), Value::Object(map)) => match map.get(keys.name) {
                    Some(value) => Ok(Key::new(value)?),
                    None => Err(no_merge_key(value, keys.name)),
                },
                (Some(_), value) => {
                    all.not_a_map.get_or_insert(at);
                    Err(MergeError::WrongType { expected: GO_MAP, actual: go_type(value) })
                }
            };
            match key {
                Ok(key) => all.positions.add(key, at),
                Err(error) => {
                    all.first_bad.get_or_insert(error);
                }
            }
        }
        Ok(all)
    }

    /// Go: `findMapInSliceBasedOnKeyValue`, which stops at an element that is not an object.
    pub(super) fn get(&self, key: &Key) -> Result<Option<usize>, MergeError> {
        let position = self.positions.get(key);
        match self.not_a_map {
            Some(index) if position.is_none_or(|at| at > index) => {
                Err(MergeError::NotAMap { index })
            }
            _ => Ok(position),
        }
    }

    pub(super) fn validate(self) -> Result<(), MergeError> {
        self.first_bad.map_or(Ok(()), Err)
    }
}

/// Elements of the patch must be in the directive's list, and in the same order.
///
/// Go: `validatePatchWithSetOrderList`.
pub(super) fn validate(patch: &[Value], order: &[Value], list: ListType) -> Result<(), MergeError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mismatch = || MergeError::OrderMismatch {
        list: shown(&Value::Array(patch.to_vec())),
        order: shown(&Value::Array(order.to_vec())),
    };
    let key = match list.merge {
        Merge::ByKey(key) => Some(key),
        Merge::Replace | Merge::Set => None,
    };
    let mut left = Vec::with_capacity(patch.len());
    for element in patch {
        match (key, element) {
            (Some(_), Value::Object(map)) => {
                let directive = map.get(PATCH_DIRECTIVE).and_then(Value::as_str);
                left.extend((directive != Some("delete")).then_some(element));
            }
            (Some(_), other) => {
                return Err(MergeError::WrongType { expected: GO_MAP, actual: go_type(other) });
            }
            (None, element) => left.push(element),
        }
    }
    let mut left = left.into_iter().peekable();
    for next in order {
        while left.next_if(|element| element.get(PATCH_DIRECTIVE).is_some()).is_some() {}
        match left.peek() {
            Some(element) if same_key(element, next, key)? => drop(left.next()),
            Some(_) => {}
            None => return Ok(()),
        }
    }
    if left.peek().is_some() { Err(mismatch()) } else { Ok(()) }
}

/// Go: `mergeKeyValueEqual`.
fn same_key(one: &Value, other: &Value, key: Option<&'static str>) -> Result<bool, MergeError> {
    let Some(key) = key else {
        return Ok(Key::new(one)? == Key::new(other)?);
    };
    if !other.is_object() {
        return Err(MergeError::WrongType { expected: GO_MAP, actual: go_type(other) });
    }
    let one = one.get(key).ok_or_else(|| no_merge_key(one, key))?;
    let other = other.get(key).ok_or_else(|| no_merge_key(other, key))?;
    Ok(Key::new(one)? == Key::new(other)?)
}
