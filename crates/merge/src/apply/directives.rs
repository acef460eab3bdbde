//! The directives of a patch, but for `$setElementOrder`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Base, PATCH_DIRECTIVE, fields::Types, settle};
use crate::{
    error::MergeError,
    key::Key,
    show::{shown, shown_as_text},
};

const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
pub(super) const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// Whether a key is a directive.
pub(crate) fn is_directive(key: &str) -> bool {
    key == PATCH_DIRECTIVE
        || key == RETAIN_KEYS
        || key.starts_with(DELETE_FROM_PRIMITIVE_LIST)
        || key.starts_with(SET_ELEMENT_ORDER)
}

/// Whether an object in a value has a directive.
#[must_use]
pub fn has_directives(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.iter().any(|(key, value)| is_directive(key) || has_directives(value))
        }
        Value::Array(list) => list.iter().any(has_directives),
        _ => false,
    }
}

/// Whether an element says `$patch: delete`.
pub(crate) fn is_deletion(element: &Value) -> bool {
    element.get(PATCH_DIRECTIVE).is_some_and(|directive| directive == "delete")
}

/// The object that `$patch` says.
///
/// Go: `handleDirectiveInMergeMap`.
pub(super) fn replacement(
    mut patch: Map<String, Value>,
    types: Types,
    reading: Base,
) -> Result<Map<String, Value>, MergeError> {
    match patch.get(PATCH_DIRECTIVE).and_then(Value::as_str) {
        Some("delete") => return Ok(Map::new()),
        Some("replace") => patch.shift_remove(PATCH_DIRECTIVE),
        _ => return Err(unknown_directive(&Value::Object(patch))),
    };
    let mut patch = Value::Object(patch);
    settle(&mut patch, types.0, reading);
    match patch {
        Value::Object(patch) => Ok(patch),
        _ => Ok(Map::new()),
    }
}

fn unknown_directive(map: &Value) -> MergeError {
    let directive = map.get(PATCH_DIRECTIVE).map(shown_as_text).unwrap_or_default();
    MergeError::UnknownDirective { directive, map: shown(map) }
}

/// Removes keys of the base that are not in `$retainKeys`.
///
/// Go: `applyRetainKeysDirective`.
pub(super) fn retain_keys(
    base: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), MergeError> {
    let Some(list) = patch.shift_remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(list) = list else {
        return Err(MergeError::RetainKeys);
    };
    if list.iter().any(|key| key.is_array() || key.is_object()) {
        return Err(MergeError::RetainKeys);
    }
    let retained: HashSet<&str> = list.iter().filter_map(Value::as_str).collect();
    let needs_no_mention = |key: &str| {
        key.starts_with(DELETE_FROM_PRIMITIVE_LIST) || key.starts_with(SET_ELEMENT_ORDER)
    };
    let is_listed = |(key, value): (&String, &Value)| {
        value.is_null() || needs_no_mention(key) || retained.contains(key.as_str())
    };
    if !patch.iter().all(is_listed) {
        return Err(MergeError::RetainKeys);
    }
    base.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// The field that a `$deleteFromPrimitiveList/FIELD` is about; `None` for other keys.
///
/// Go: `preprocessDeletionListForMerging`. If the field is empty it keeps the whole key.
pub(super) fn primitive_list(key: &str) -> Result<Option<&str>, MergeError> {
    if !key.starts_with(DELETE_FROM_PRIMITIVE_LIST) {
        return Ok(None);
    }
    let list = named_list(key, DELETE_FROM_PRIMITIVE_LIST);
    let list = list.ok_or(MergeError::DeleteFromPrimitiveList)?;
    Ok(Some(if list.is_empty() { key } else { list }))
}

/// The part after the slash.
///
/// Go: `extractKey`.
pub(super) fn named_list<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// The list of a patch, sorted into its directives and elements.
#[derive(Debug, Default)]
pub(super) struct ListPatch {
    /// Keys whose elements are removed from the base.
    pub(super) deleted: HashSet<Key>,
    /// Whether the elements replace the base.
    pub(super) replaces: bool,
    pub(super) elements: Vec<Value>,
}

impl ListPatch {
    /// Go: `mergeSliceWithSpecialElements`.
    pub(super) fn new(list: Vec<Value>, key: &'static str) -> Result<Self, MergeError> {
        let mut sorted = Self::default();
        for element in list {
            let Some(directive) = element.get(PATCH_DIRECTIVE) else {
                sorted.elements.push(element);
                continue;
            };
            match directive.as_str() {
                Some("delete") => {
                    let value = element.get(key).ok_or_else(|| no_merge_key(&element, key))?;
                    // No element of the base has a list or an object as key.
                    sorted.deleted.extend(Key::new(value));
                }
                Some("replace") => sorted.replaces = true,
                Some("merge") => return Err(MergeError::MergeDirective),
                _ => return Err(unknown_directive(&element)),
            }
        }
        Ok(sorted)
    }
}

pub(super) fn no_merge_key(element: &Value, key: &'static str) -> MergeError {
    MergeError::NoMergeKey { map: shown(element), key }
}
