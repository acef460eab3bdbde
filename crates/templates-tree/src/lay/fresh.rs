//! Containers and volumes that a pod does not have, and entries of lists that a container does not have: they meet
//! nothing, and are put there as they are written.
//!
//! The result is that of [`steps`](super::steps), which compares all that may be met. Not for directives.

use std::{borrow::Cow, collections::BTreeSet};

use injectd_merge::schema::{Field, Kind, POD, Struct};
use injectd_templates::named::{NamedList, member};
use serde_json::{Map, Value};

use super::{
    Denied, Own, Placed, StepOverlay, besides, check_spec, directive, expected_besides,
    layer::{arrange_all, names_others},
    lists::{self, LISTS, List},
    section,
};

/// Whether a pod has none of the containers and volumes of steps, no two of these have one name, and no step
/// has a directive, or a list with a name twice.
pub(crate) fn is_new(pod: &Value, steps: &[StepOverlay]) -> bool {
    let mut names = BTreeSet::new();
    steps.iter().all(|step| {
        let mut lists = LISTS.iter().filter_map(|list| Some((*list, list.written(step.overlay)?)));
        directive::check(step.overlay, None).is_ok()
            && lists.all(|(list, entries)| {
                entries.iter().all(|entry| {
                    lists::name(entry).is_some_and(|name| {
                        // The lists of containers share their names, and volumes have names of
                        // their own.
                        names.insert((list == List::Volumes, name)) && !has(pod, list, name)
                    }) && entry.as_object().is_some_and(|entry| is_plain(entry, list.types()))
                })
            })
    })
}

/// Whether a pod has an entry of a name in a list, or in one that shares its names.
fn has(pod: &Value, list: List, name: &str) -> bool {
    let mut lists = [list].into_iter().chain(list.others().iter().copied());
    lists.any(|list| list.position(pod, name).is_some())
}

/// Whether all entries of lists with names have one, each another one.
fn is_plain(entry: &Map<String, Value>, types: &'static Struct) -> bool {
    entry.iter().all(|(key, value)| {
        let list = value.as_array().filter(|entries| !entries.is_empty());
        let of = list.and_then(|_| NamedList::of(types.field(key)?));
        let (Some(entries), Some(of)) = (list, of) else { return true };
        let names: Option<BTreeSet<_>> = entries.iter().map(|entry| of.identity(entry)).collect();
        names.is_some_and(|names| names.len() == entries.len())
    })
}

/// Lays what steps write besides containers and volumes, and makes room for these. What follows is [`put`] for
/// each step.
///
/// # Errors
/// The step and the reason why the pod is denied. It may be changed in part then.
pub(crate) fn prepare(
    pod: &mut Cow<'_, Value>,
    own: &mut Own,
    steps: &[StepOverlay],
) -> Result<(), Denied> {
    let has_more: Vec<_> = steps.iter().map(|step| lists::has_more(step.overlay)).collect();
    let met = if !has_more.contains(&true) || has_room(pod, steps) {
        BTreeSet::new()
    } else {
        section::met(pod, &expected_besides(steps)?)
    };
    for (at, (step, has_more)) in steps.iter().zip(has_more).enumerate() {
        check_spec(pod).map_err(|text| Denied { step: at, text })?;
        for list in LISTS {
            if list.written(step.overlay).is_some_and(|entries| !entries.is_empty()) {
                // An empty list for now: its key comes where `steps` would have put it.
                list.insert_at(pod.to_mut(), Vec::new(), &Placed::default());
            }
        }
        if has_more {
            let laid = besides(pod.to_mut(), own, step, &[], &met);
            laid.map_err(|text| Denied { step: at, text })?;
        }
    }
    Ok(())
}

/// Whether a pod has nothing where steps write besides containers and volumes, and these have no lists with names
/// there: nothing is met, and nothing is refused.
fn has_room(pod: &Value, steps: &[StepOverlay]) -> bool {
    let types = POD.as_struct().expect("a Pod must be a struct");
    let Value::Object(pod) = pod else { return false };
    let has_room = |overlay: &Map<String, Value>| {
        overlay.iter().all(|(key, written)| match (key.as_str(), pod.get(key), written) {
            ("spec", Some(Value::Object(spec)), Value::Object(written)) => {
                let Some(Kind::Struct(types)) = types.field(key).map(|field| &field.kind) else {
                    return false;
                };
                let is_list = |key: &str| LISTS.iter().any(|list| list.key() == key);
                let mut others = written.iter().filter(|(key, _)| !is_list(key));
                others.all(|(key, value)| is_free(types.get().field(key), spec.get(key), value))
            }
            (_, found, written) => is_free(types.field(key), found, written),
        })
    };
    pod.get("spec").is_some_and(Value::is_object)
        && steps.iter().all(|step| step.overlay.as_object().is_some_and(has_room))
}

/// Whether nothing is found where a value of a field would be written.
fn is_free(field: Option<&'static Field>, found: Option<&Value>, written: &Value) -> bool {
    match (field.map(|field| &field.kind), found, written) {
        (Some(Kind::Struct(types)), None | Some(Value::Object(_)), Value::Object(written)) => {
            let found = |key: &str| found.and_then(|found| member(found, key));
            written.iter().all(|(key, value)| is_free(types.get().field(key), found(key), value))
        }
        (Some(Kind::Map(..)), Some(Value::Object(found)), Value::Object(written)) => {
            written.keys().all(|key| !found.contains_key(key))
        }
        (_, None, Value::Array(_)) => field.and_then(NamedList::of).is_none(),
        (_, found, _) => found.is_none(),
    }
}

/// Puts the containers and volumes of an overlay into a pod that has room for them.
pub(crate) fn put(pod: &mut Value, own: &mut Own, overlay: &mut Value, placed: &[Placed; 2]) {
    let default = Placed::default();
    let [init_containers, containers] = placed;
    for (list, placed) in LISTS.into_iter().zip([init_containers, containers, &default]) {
        let entries = overlay.get_mut("spec").and_then(|spec| spec.get_mut(list.key()));
        let Some(entries) = entries.and_then(Value::as_array_mut).map(std::mem::take) else {
            continue;
        };
        let mut new = entries;
        for entry in &mut new {
            own.names(list).extend(lists::name(entry).map(str::to_owned));
            if let Value::Object(entry) = entry {
                arrange(entry, list.types());
            }
        }
        if !new.is_empty() {
            list.insert_at(pod, new, placed);
        }
    }
}

/// An entry as it is in a pod without it: variables are arranged, lists with names that are empty are left out.
fn arrange(entry: &mut Map<String, Value>, types: &'static Struct) {
    let named = |key: &str| types.field(key).and_then(NamedList::of);
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    if entry.values().any(is_empty) {
        entry.retain(|key, value| !is_empty(value) || named(key).is_none());
    }
    if let Some(Value::Array(variables)) = entry.get_mut("env")
        && let Some(list) = named("env").filter(|list| list.is_env())
    {
        arrange_all(variables, list);
    }
}

/// Entries that are compared one by one.
const FEW: usize = 16;

/// Adds the entries in a rule's overlay, which has no directive, to a container that has none of them. `false` if
/// there is more to do: then the container is as it was.
pub(super) fn add_entries(
    container: &mut Map<String, Value>,
    overlay: &Map<String, Value>,
) -> bool {
    let types = lists::container();
    let adds = |(key, new): (&String, &Value)| {
        let list = types.field(key).and_then(NamedList::of);
        let (Some(list), Value::Array(new)) = (list, new) else { return false };
        match container.get(key) {
            None => are_new(new, &[], list),
            Some(Value::Array(known)) => are_new(new, known, list),
            Some(_) => false,
        }
    };
    if !overlay.iter().all(adds) {
        return false;
    }
    for (key, new) in overlay {
        let Value::Array(new) = new else { continue };
        match container.get_mut(key) {
            Some(Value::Array(known)) => known.extend_from_slice(new),
            _ if new.is_empty() => {}
            _ => drop(container.insert(key.clone(), Value::Array(new.clone()))),
        }
    }
    true
}

/// Whether few entries have names that no other entry has, and are no variables that name others, whose order
/// matters.
fn are_new(new: &[Value], known: &[Value], list: NamedList) -> bool {
    let is_new = |(at, entry): (usize, &Value)| {
        let Some(name) = list.identity(entry) else { return false };
        let is_other = |other: &Value| list.identity(other).as_deref() != Some(&*name);
        let is_ordered = list.is_env() && names_others(entry);
        !is_ordered && new[..at].iter().all(is_other) && known.iter().all(is_other)
    };
    new.len() <= FEW && new.iter().enumerate().all(is_new)
}
