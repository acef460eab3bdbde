//! Containers and volumes that a pod does not have: they meet nothing, and are put there as they are written.
//!
//! The result is that of [`steps`](super::steps), which compares all that may be met. Not for directives.

use std::{borrow::Cow, collections::BTreeSet};

use injectd_merge::schema::Struct;
use injectd_templates::named::NamedList;
use serde_json::{Map, Value};

use super::{
    Denied, Own, Placed, StepOverlay, besides, check_spec, directive, expected_besides,
    layer::arrange_all,
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
    let met = if has_more.contains(&true) {
        section::met(pod, &expected_besides(steps)?)
    } else {
        BTreeSet::new()
    };
    for (at, (step, has_more)) in steps.iter().zip(has_more).enumerate() {
        check_spec(pod).map_err(|text| Denied { step: at, text })?;
        for list in LISTS {
            if list.written(step.overlay).is_some_and(|entries| !entries.is_empty()) {
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

/// Puts the containers and volumes of an overlay into a pod that has room for them.
pub(crate) fn put(pod: &mut Value, own: &mut Own, overlay: &mut Value, placed: [&Placed; 2]) {
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
