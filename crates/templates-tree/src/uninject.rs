//! What templates have put into a pod is taken out of it.
//!
//! The mark names their containers. All else is known only with the template: what its overlays write now, if
//! the pod has just that. What a template replaced is lost; nothing here guesses it.

use std::collections::{BTreeMap, BTreeSet};

use injectd_templates::Template;
use serde_json::Value;

use crate::{
    inject::{self, Request},
    lay::leaves::{self, leaves},
    mark::{self, Entry, Mark},
    trace::{Laid, Trace},
};

/// The lists of containers that templates add to.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// A pod without what templates have put into it.
#[derive(Debug, Clone, PartialEq)]
pub struct Uninjected {
    /// The pod.
    pub pod: Value,
    /// The keys of the templates.
    pub templates: Vec<String>,
    /// What is left, for a person.
    pub left: Vec<String>,
}

/// Takes the containers of all templates out of a pod, by its mark; `None` if it has none.
#[must_use]
pub fn by_mark(pod: &Value) -> Option<Uninjected> {
    let mark = Mark::of(pod);
    let templates: Vec<String> = mark.0.keys().cloned().collect();
    let left = |key: &String| {
        format!(
            "volumes, variables, mounts and other fields of template {key} are left; --templates with it finds them"
        )
    };
    let left = templates.iter().map(left).collect();
    let pod = without_marked(pod, &mark, &templates);
    (!templates.is_empty()).then_some(Uninjected { pod, templates, left })
}

/// Takes what these templates have put there out of a pod; `None` if the mark has none of them.
#[must_use]
pub fn uninject(templates: &[Template], request: &Request<'_>) -> Option<Uninjected> {
    let mark = Mark::of(request.pod);
    let known: BTreeMap<_, _> = templates.iter().map(|one| (one.key(), one)).collect();
    let keys: Vec<String> = mark.0.keys().filter(|key| known.contains_key(*key)).cloned().collect();
    if keys.is_empty() {
        return None;
    }
    let plain = without_marked(request.pod, &mark, &keys);
    let mut work = Work { request, mark: &mark, plain: &plain, left: Vec::new() };
    let places = work.places(templates, &known, &keys);
    let pod = leaves::without(&plain, &places);
    if places.is_empty() || work.is_restored(templates, &pod) {
        return Some(Uninjected { pod, templates: keys, left: work.left });
    }
    let text = "volumes, variables, mounts and other fields are left: without them, the templates would add others now";
    Some(Uninjected { pod: plain, templates: keys, left: vec![text.to_owned()] })
}

/// A pod without the containers that templates added, and without their entries in the mark.
fn without_marked(pod: &Value, mark: &Mark, keys: &[String]) -> Value {
    let mut rest = mark.clone();
    let entries: Vec<_> = keys.iter().filter_map(|key| rest.0.remove(key)).collect();
    let added: BTreeSet<_> = entries.into_iter().flat_map(|entry| entry.added).collect();
    let places = LISTS.iter().flat_map(|list| {
        added.iter().map(|name| leaves::container_place(list, name)).collect::<Vec<_>>()
    });
    let pod = leaves::without(pod, &places.collect());
    let mut pod = if rest.0.is_empty() { mark::removed(&pod) } else { pod };
    rest.write(&mut pod);
    pod
}

struct Work<'w> {
    request: &'w Request<'w>,
    mark: &'w Mark,
    /// The pod without the containers of the templates.
    plain: &'w Value,
    left: Vec<String>,
}

impl Work<'_> {
    /// The places of the pod that the templates would write just so.
    fn places(
        &mut self,
        templates: &[Template],
        known: &BTreeMap<String, &Template>,
        keys: &[String],
    ) -> BTreeSet<Vec<String>> {
        let trace = Trace::default();
        let request = Request { pod: self.plain, ..*self.request };
        let templates = inject::sorted(templates);
        if let Err(denied) = inject::traced(&templates, &request, Some(&trace), &mut Vec::new()) {
            let text =
                format!("all but the containers is left, for the pod is denied now: {denied}");
            self.left.push(text);
            return BTreeSet::new();
        }
        let mut laid = trace.into_templates();
        let mut places = BTreeSet::new();
        for key in keys {
            let (Some(entry), Some(template)) = (self.mark.0.get(key), known.get(key)) else {
                continue;
            };
            let found = laid.remove(key).map(|traced| traced.laid).unwrap_or_default();
            if entry.hash != template.hash {
                self.left.push(format!(
                    "volumes, variables, mounts and other fields of template {key} are left: it has changed since"
                ));
            } else if found.is_empty() {
                let text = "are left: it is not for the pod any more";
                self.left.push(format!("volumes, variables and mounts of template {key} {text}"));
            } else {
                self.of_template(&found, entry, &mut places);
            }
        }
        self.keep_mounted(&mut places);
        places
    }

    /// Adds the places that a template would write just so: entries of lists as a whole, other fields one by one.
    fn of_template(&mut self, laid: &[Laid], entry: &Entry, places: &mut BTreeSet<Vec<String>>) {
        let wanted: BTreeMap<_, _> = laid.iter().map(|laid| (&laid.place, laid)).collect();
        let (mut whole, mut others) = (BTreeMap::new(), Vec::<&Laid>::new());
        for (place, value) in leaves(self.plain) {
            let laid = wanted.get(&place).filter(|laid| laid.value == *value);
            let is_served = container_of(&place).is_none_or(|name| entry.has_served(name));
            match entry_place(&place) {
                Some(entry) => {
                    *whole.entry(entry).or_insert(true) &= laid.is_some() && is_served;
                }
                None => others.extend(laid.filter(|_| is_served).copied()),
            }
        }
        places.extend(whole.into_iter().filter(|(_, is_whole)| *is_whole).map(|(place, _)| place));
        for laid in others {
            if laid.replaces {
                let place = leaves::shown(&laid.place);
                self.left.push(format!(
                    "{place} is left: the template may have replaced another value there"
                ));
            } else {
                places.insert(laid.place.clone());
            }
        }
    }

    /// Volumes that a container mounts stay.
    fn keep_mounted(&self, places: &mut BTreeSet<Vec<String>>) {
        // An API server refuses a pod whose container mounts a volume that is not there.
        let rest = leaves::without(self.plain, places);
        let lists = LISTS.iter().filter_map(|list| rest["spec"][list].as_array());
        let mounts = lists.flatten().filter_map(|container| container["volumeMounts"].as_array());
        let mounted: BTreeSet<_> =
            mounts.flatten().filter_map(|mount| mount["name"].as_str()).collect();
        places.retain(|place| match &place[..] {
            [spec, volumes, name] if spec == "spec" && volumes == "volumes" => {
                !mounted.iter().any(|one| *name == leaves::entry(one))
            }
            _ => true,
        });
    }

    /// Whether an injection brings back what is taken out, just so.
    fn is_restored(&self, templates: &[Template], pod: &Value) -> bool {
        let injected = inject::inject(templates, &Request { pod, ..*self.request });
        let Ok(injected) = injected else { return false };
        let (expected, left) = (mark::removed(self.request.pod), leaves(pod));
        let (expected, found) = (leaves(&expected), leaves(&injected.pod));
        let mut taken = expected.iter().filter(|(place, _)| !left.contains_key(*place));
        taken.all(|(place, value)| found.get(place) == Some(value))
    }
}

/// The name part of the container that a place is in.
fn container_of(place: &[String]) -> Option<&str> {
    match place {
        [spec, list, name, ..] if spec == "spec" && LISTS.contains(&&**list) => Some(name),
        _ => None,
    }
}

/// The place of the entry of a list that a place is in, containers aside.
fn entry_place(place: &[String]) -> Option<Vec<String>> {
    let first = if container_of(place).is_some() { 3 } else { 0 };
    let at = place.iter().enumerate().skip(first).find(|(_, part)| part.starts_with('['))?.0;
    place.get(..=at).map(<[_]>::to_vec)
}

impl Entry {
    /// Whether rules were for the container with this name, as places have it.
    fn has_served(&self, name: &str) -> bool {
        self.served.iter().any(|served| leaves::entry(served) == name)
    }
}

#[cfg(test)]
mod tests;
