//! How lists are compared.

#![expect(clippy::disallowed_types, reason = "templates are merged into trees")]

use std::collections::HashMap;

use serde_json::Value;

use super::{Patch, stay};

/// What tells the elements of a list apart.
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
type Identity = (Option<String>, usize);

fn identities(list: &[Value], key: Key) -> Vec<Identity> {
    let mut seen = HashMap::<Option<String>, usize>::new();
    let identity = |element: &Value| {
        // The text of a string has quotes and that of a number has none.
        let value = match key {
            Key::Field(field) => element.get(field),
            Key::Whole => Some(element),
        };
        let text = value.map(ToString::to_string);
        let before = seen.entry(text.clone()).or_default();
        *before += 1;
        (text, *before - 1)
    };
    list.iter().map(identity).collect()
}

impl<'a> Patch<'a> {
    pub(super) fn compare_lists(
        &mut self,
        old: &[Value],
        (whole, new): (&'a Value, &'a [Value]),
        field: &str,
    ) {
        if let Some(key) = key(field) {
            self.compare_by_key(old, (whole, new), key);
        } else if old.len() == new.len() {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                self.at(&index.to_string(), |patch| patch.compare(old, new, ""));
            }
        } else {
            self.replace(whole);
        }
    }

    /// Removes what goes or moves, from the end, and then inserts from the front.
    fn compare_by_key(&mut self, old: &[Value], (whole, new): (&'a Value, &'a [Value]), key: Key) {
        let origins = origins(old, new, key);
        if !old.is_empty() && origins.iter().all(Option::is_none) {
            return self.replace(whole);
        }
        let mut stays = vec![false; old.len()];
        for origin in origins.iter().flatten() {
            stays[*origin] = true;
        }
        for (index, _) in stays.iter().enumerate().rev().filter(|(_, stays)| !**stays) {
            self.at(&index.to_string(), Self::remove);
        }
        for (index, (element, origin)) in new.iter().zip(&origins).enumerate() {
            self.at(&index.to_string(), |patch| match origin.and_then(|origin| old.get(origin)) {
                Some(old) => patch.compare(old, element, ""),
                None => patch.add(element),
            });
        }
    }
}

/// For each new element the index of the old one that stays for it, in rising order.
fn origins(old: &[Value], new: &[Value], key: Key) -> Vec<Option<usize>> {
    let places: HashMap<_, _> =
        identities(old, key).into_iter().enumerate().map(|(index, id)| (id, index)).collect();
    let mut origins: Vec<_> =
        identities(new, key).iter().map(|identity| places.get(identity).copied()).collect();
    if !origins.iter().flatten().is_sorted() {
        let is_same = |origin: usize, at: usize| old.get(origin) == new.get(at);
        stay::keep_rising(&mut origins, old.len(), is_same);
    }
    origins
}
