//! Merges a patch into an object.

mod arrange;
mod directives;
mod fields;
mod keyed;
mod lists;
mod order;
mod taken;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{
    error::{MAX_DEPTH, MergeError},
    schema::{Field, Kind, Merge},
    show::go_type,
};
use fields::{Current, Types};

pub use directives::has_directives;
pub(crate) use directives::{is_deletion, is_directive};
pub(crate) use taken::{whole, zero};

/// The directive that says how an object or an element of a list is merged.
const PATCH_DIRECTIVE: &str = "$patch";

/// How the base is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// A Pod that Go would have written again before the merge, and will read after it.
    Pod,
    /// JSON as it is.
    Json,
}

/// Merges a patch into a Pod, with the result that Istio's injector reaches by converting the Pod
/// to Go's types and back.
///
/// The user's part of the Pod stays as it is; the documentation of the crate lists what becomes of
/// values of the patch. A patch of `null` changes nothing. The cost is linear in the size of both.
///
/// # Errors
///
/// As Kubernetes' library reports them; see [`MergeError`]. The Pod may be changed in part then.
/// Values of a wrong type are not errors here: see [`check`](crate::check()).
pub fn overlay(pod: &mut Value, patch: Value) -> Result<(), MergeError> {
    merge_documents(pod, patch, Base::Pod)
}

/// Merges a patch into JSON that describes a Pod, exactly as the library does.
///
/// Kubernetes: `strategicpatch.StrategicMergePatch` with `corev1.Pod`. Nulls and directives inside
/// values that are not merged stay. Both documents may be `null`.
///
/// # Errors
///
/// See [`MergeError`]. The base may be changed in part then.
pub fn strategic_merge(base: &mut Value, patch: Value) -> Result<(), MergeError> {
    merge_documents(base, patch, Base::Json)
}

fn merge_documents(base: &mut Value, patch: Value, reading: Base) -> Result<(), MergeError> {
    if base.is_null() {
        *base = Value::Object(Map::new());
    }
    let Value::Object(base) = base else {
        return Err(MergeError::NotAnObject);
    };
    if is_deeper_than(&patch, MAX_DEPTH) {
        return Err(MergeError::TooDeep);
    }
    match patch {
        Value::Null => Ok(()),
        Value::Object(patch) => merge_maps(base, patch, Types::pod(), reading),
        _ => Err(MergeError::NotAnObject),
    }
}

/// Whether merging a list into a field that has another changes nothing there, which is quick to find
/// for lists of texts such as variables. `false` does not mean that something changes.
#[must_use]
pub fn repeats_list(base: &Value, patch: &Value, field: &Field) -> bool {
    let (Kind::List(element), Merge::ByKey(key)) = (&field.kind, field.merge) else { return false };
    let (Value::Array(base), Value::Array(patch)) = (base, patch) else { return false };
    keyed::repeats(base, patch, key, element)
}

fn is_deeper_than(value: &Value, depth: usize) -> bool {
    let deeper = |inner| depth == 0 || is_deeper_than(inner, depth - 1);
    match value {
        Value::Array(list) => depth == 0 || list.iter().any(deeper),
        Value::Object(map) => depth == 0 || map.values().any(deeper),
        _ => false,
    }
}

/// Go: `mergeMap`. Go goes through the patch in random order; here it is the order of the patch.
fn merge_maps(
    base: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    types: Types,
    reading: Base,
) -> Result<(), MergeError> {
    if patch.contains_key(PATCH_DIRECTIVE) {
        *base = directives::replacement(patch, types, reading)?;
        return Ok(());
    }
    directives::retain_keys(base, &mut patch)?;
    order::set_element_order(base, &mut patch, types, reading)?;
    let mut removed = HashSet::new();
    let mut other_case = Vec::new();
    let merging = FieldMerge { types, reading, lists: Lists::Merge };
    for (key, value) in patch {
        let list = directives::primitive_list(&key)?;
        let field = list.unwrap_or(&key);
        if value.is_null() {
            removed.insert(field.to_owned());
        } else if list.is_some() {
            FieldMerge { types, reading, lists: Lists::Delete }.merge(base, field, value)?;
        } else if reading == Base::Pod && types.differs_in_case(field) {
            other_case.push((key, value));
        } else if !merging.merge(base, field, value)? {
            removed.insert(key);
        }
    }
    if !removed.is_empty() {
        base.retain(|key, _| !removed.contains(key));
    }
    merge_other_case(base, other_case, types)
}

/// Keys that equal a field but for their case count where Go would find no such field in the
/// merged object. The last in Go's order of keys wins.
fn merge_other_case(
    base: &mut Map<String, Value>,
    mut entries: Vec<(String, Value)>,
    types: Types,
) -> Result<(), MergeError> {
    entries.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    let merging = FieldMerge { types, reading: Base::Pod, lists: Lists::Merge };
    for (key, value) in entries {
        let Some(field) = types.find(&key) else { continue };
        let current = fields::current(base, field.name, Some(field), Base::Pod);
        if !field.written && matches!(current, Current::Absent) {
            merging.merge(base, field.name, value)?;
        }
    }
    Ok(())
}

/// What two lists are merged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    Merge,
    /// The list of the patch holds the elements to remove: `$deleteFromPrimitiveList`.
    Delete,
}

/// How the fields of an object are merged.
#[derive(Clone, Copy, Debug)]
struct FieldMerge {
    types: Types,
    reading: Base,
    lists: Lists,
}

impl FieldMerge {
    /// Merges a value that is not null into a field. The answer is whether the field stays.
    fn merge(
        self,
        base: &mut Map<String, Value>,
        key: &str,
        value: Value,
    ) -> Result<bool, MergeError> {
        let Self { types, reading, lists } = self;
        let field = types.find(key);
        if value.is_object() {
            fields::add_implied_struct(base, key, field, reading);
        }
        match (fields::current(base, key, field, reading), value) {
            (Current::Here(Value::Object(base)), Value::Object(patch)) => {
                let types = types.inside(key, reading)?;
                merge_maps(base, patch, types, reading)?;
            }
            (Current::Here(Value::Array(base)), Value::Array(patch)) => {
                let list = types.list(key, reading)?;
                *base = lists::merge(std::mem::take(base), patch, list, reading, lists)?;
            }
            (Current::Here(current), value) if go_type(current) == go_type(&value) => {
                *current = taken::in_field(value, field, reading);
            }
            (_, _) if lists == Lists::Delete => {}
            (_, value) => {
                let Some(value) = taken::new_value(value) else {
                    return Ok(false);
                };
                base.insert(key.to_owned(), taken::in_field(value, field, reading));
            }
        }
        Ok(true)
    }
}

/// A value of the patch becomes what Go reads it as.
fn settle(value: &mut Value, kind: Option<&'static Kind>, reading: Base) {
    if let (Some(kind), Base::Pod) = (kind, reading) {
        taken::settle(value, kind);
    }
}
