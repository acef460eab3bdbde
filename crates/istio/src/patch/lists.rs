//! How lists are compared.

use std::{borrow::Cow, collections::HashMap};

use serde_json::Value;

use super::{Patch, before::Before, stay};

/// What distinguishes the elements of a list.
#[derive(Clone, Copy)]
enum Key {
    /// This field of an element.
    Field(&'static str),
    /// The element itself.
    Whole,
}

/// The key of a list of this name.
fn key(field: &str) -> Option<Key> {
    match field {
        "containers"
        | "env"
        | "ephemeralContainers"
        | "imagePullSecrets"
        | "initContainers"
        | "resourceClaims"
        | "schedulingGates"
        | "volumes" => Some(Key::Field("name")),
        "finalizers" => Some(Key::Whole),
        "hostAliases" => Some(Key::Field("ip")),
        "ownerReferences" => Some(Key::Field("uid")),
        "ports" => Some(Key::Field("containerPort")),
        "topologySpreadConstraints" => Some(Key::Field("topologyKey")),
        "volumeDevices" => Some(Key::Field("devicePath")),
        "volumeMounts" => Some(Key::Field("mountPath")),
        _ => None,
    }
}

/// What an element is known by: the text of its key and how many of that key stand before it.
type Identity<'v> = (Option<Cow<'v, str>>, usize);

fn identities<'v>(list: impl Iterator<Item = impl Before<'v>>, key: Key) -> Vec<Identity<'v>> {
    let mut seen = HashMap::<Option<Cow<'_, str>>, usize>::new();
    let identity = |element| {
        let text = text(element, key);
        let before = seen.entry(text.clone()).or_default();
        *before += 1;
        (text, *before - 1)
    };
    list.map(identity).collect()
}

/// The value of an element's key.
fn value<'v, B: Before<'v>>(element: B, key: Key) -> Option<B> {
    match key {
        Key::Field(field) => element.get(field),
        Key::Whole => Some(element),
    }
}

/// The text of an element's key. That of another value than a string begins with a quote, which no
/// name does.
fn text<'v>(element: impl Before<'v>, key: Key) -> Option<Cow<'v, str>> {
    let value = value(element, key)?;
    let text = value.text().filter(|text| !text.starts_with('"'));
    Some(text.unwrap_or_else(|| Cow::Owned(format!("\"{}", value.tree()))))
}

impl<'a> Patch<'a> {
    pub(super) fn compare_lists<'o>(
        &mut self,
        old: &[impl Before<'o>],
        whole: &'a Value,
        new: &'a [Value],
        field: &str,
    ) {
        if let Some(key) = key(field) {
            self.compare_by_key(old, whole, new, key);
        } else if old.len() == new.len() {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                self.at_index(index, |patch| patch.compare(*old, new, ""));
            }
        } else {
            self.replace(whole);
        }
    }

    /// Removes what goes or moves, from the end, and then inserts from the front.
    fn compare_by_key<'o>(
        &mut self,
        old: &[impl Before<'o>],
        whole: &'a Value,
        new: &'a [Value],
        key: Key,
    ) {
        let origins = origins(old, new, key);
        if !old.is_empty() && origins.iter().all(Option::is_none) {
            return self.replace(whole);
        }
        let mut stays = vec![false; old.len()];
        for origin in origins.iter().flatten() {
            stays[*origin] = true;
        }
        // From the end: a removal moves only the elements behind it, whose operations are written
        // already.
        for (index, _) in stays.iter().enumerate().rev().filter(|(_, stays)| !**stays) {
            self.at_index(index, Self::remove);
        }
        for (index, (element, origin)) in new.iter().zip(&origins).enumerate() {
            self.at_index(index, |patch| match origin.and_then(|origin| old.get(origin)) {
                Some(old) => patch.compare(*old, element, ""),
                None => patch.add(element),
            });
        }
    }
}

/// For each new element the index of the old one that stays for it, in rising order.
fn origins<'o>(old: &[impl Before<'o>], new: &[Value], key: Key) -> Vec<Option<usize>> {
    if is_same_order(old, new, key) {
        return (0..new.len()).map(|index| (index < old.len()).then_some(index)).collect();
    }
    let identified = identities(old.iter().copied(), key).into_iter().enumerate();
    let places: HashMap<_, _> = identified.map(|(index, identity)| (identity, index)).collect();
    let new_identities = identities(new.iter(), key);
    let mut origins: Vec<_> =
        new_identities.iter().map(|identity| places.get(identity).copied()).collect();
    if !origins.iter().flatten().is_sorted() {
        let is_same = |origin: usize, at: usize| old[origin].is(&new[at]);
        stay::keep_rising(&mut origins, old.len(), is_same);
    }
    origins
}

/// Whether the new elements are the old ones, with others after them.
fn is_same_order<'o>(old: &[impl Before<'o>], new: &[Value], key: Key) -> bool {
    old.len() <= new.len()
        && old.iter().zip(new).all(|(old, new)| match (value(*old, key), value(new, key)) {
            (Some(old), Some(new)) => old.is(new),
            (old, new) => old.is_none() && new.is_none(),
        })
}
