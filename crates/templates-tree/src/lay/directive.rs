//! `$patch` in an overlay.

use injectd_merge::schema::{Kind, Struct};
use injectd_templates::{
    named::{NamedList, member},
    object::Existing,
};
use serde_json::Value;

use super::path;

/// The key of a directive.
pub(super) const PATCH: &str = "$patch";

/// What `$patch` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Delete,
    Replace,
}

/// The directive of an object.
pub(super) fn of(value: &Value) -> Option<Directive> {
    match member(value, PATCH)?.as_str()? {
        "delete" => Some(Directive::Delete),
        "replace" => Some(Directive::Replace),
        _ => None,
    }
}

/// Whether an overlay's list stands for the whole list: it has an element `{$patch: replace}`.
pub(super) fn replaces_list(list: &[Value]) -> bool {
    list.iter().any(is_mark)
}

/// Whether an element of a list says something about the list only.
pub(super) fn is_mark(element: &Value) -> bool {
    let is_alone = element.as_object().is_some_and(|map| map.len() == 1);
    is_alone && of(element) == Some(Directive::Replace)
}

/// What an overlay adds where there is nothing yet: all of it but directives, and what they delete.
pub(super) fn plain(value: &Value) -> Value {
    if is_plain(value) {
        return value.clone();
    }
    let stays = |value: &Value| of(value) != Some(Directive::Delete) && !is_mark(value);
    match value {
        Value::Object(map) => {
            let entries = map.iter().filter(|(key, value)| *key != PATCH && stays(value));
            entries.map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        Value::Array(list) => list.iter().filter(|value| stays(value)).map(plain).collect(),
        scalar => scalar.clone(),
    }
}

/// Whether an overlay, an object of a type, has a directive for a place or what it is in.
pub(super) fn removes(overlay: &Value, place: &[String], types: &'static Struct) -> bool {
    if of(overlay).is_some() {
        return true;
    }
    let [key, rest @ ..] = place else { return false };
    let (Some(value), Some(field)) = (overlay.get(key), types.field(key)) else { return false };
    match (&field.kind, value) {
        (Kind::Struct(inner), value) => removes(value, rest, inner.get()),
        (Kind::Map(..), value) => of(value).is_some(),
        (Kind::List(_), Value::Array(entries)) => {
            replaces_list(entries) || {
                let named = NamedList::of(field).zip(rest.split_first());
                named.is_some_and(|(list, (name, rest))| {
                    let is_named = |entry: &&Value| {
                        list.name(entry).is_some_and(|found| path::entry(&found) == *name)
                    };
                    let entry = entries.iter().find(is_named);
                    entry.is_some_and(|entry| removes(entry, rest, list.types))
                })
            }
        }
        _ => false,
    }
}

/// Whether a value has no directives.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.iter().all(|(key, value)| *key != PATCH && is_plain(value)),
        Value::Array(list) => list.iter().all(is_plain),
        _ => true,
    }
}

/// Whether an overlay has only directives that are known and allowed.
pub(super) fn check(overlay: &Value, existing: Option<Existing>) -> Result<(), String> {
    match overlay {
        Value::Object(map) => {
            for (key, value) in map {
                if key.starts_with('$') {
                    check_one(key, value, existing)?;
                }
                check(value, existing)?;
            }
            Ok(())
        }
        Value::Array(list) => list.iter().try_for_each(|value| check(value, existing)),
        _ => Ok(()),
    }
}

fn check_one(key: &str, value: &Value, existing: Option<Existing>) -> Result<(), String> {
    let is_known = key == PATCH && (value == "delete" || value == "replace");
    if !is_known {
        return Err(format!(
            "the overlay has the key {key:?}: of merge directives only `$patch: delete` and \
             `$patch: replace` are known"
        ));
    }
    if existing != Some(Existing::Replace) {
        return Err(
            "the overlay has `$patch`: it needs `existing: Replace` beside the overlay".to_owned()
        );
    }
    Ok(())
}
