//! How a pod that runs stands to the templates that are in force: what its mark says, compared with what a new
//! pod of its workload would get.
//!
//! The pod as its author wrote it is not known. Whether a template is for it is judged without what templates
//! put there, as far as that can be taken out; whether one that is not in it would be applied is judged for the
//! pod as it is. Not for what a template of the mark would write now: its hash says whether that has changed.

use std::collections::{BTreeMap, BTreeSet};

use injectd_templates::{Template, structure::Structure};
use serde_json::{Map, Value};

use crate::{
    inject::{Fit, Request, State, fits, inject_in_order, laid, selects},
    lay::leaves::{self, leaves},
    mark::{Entry, Mark, container_names},
    trace::Laid,
    uninject::by_mark,
};

/// How a pod stands to a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The key of the template.
    pub template: String,
    /// The hash of the revision that is in force; empty if none is.
    pub hash: String,
    /// How the pod stands to it.
    pub stands: Stands,
}

/// How a pod stands to a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stands {
    /// It is in the pod, and a new one would get it.
    Present,
    /// It is in the pod with this hash, and a new one would get another revision.
    Outdated(String),
    /// It is not in the pod, and a new one would get it.
    Missing,
    /// It is in the pod with this hash, and a new one would not get it.
    Unexpected {
        /// The hash that the mark has.
        hash: String,
        /// Why a new pod would not get it.
        reason: String,
    },
    /// It is not in the pod, and a new one would not get it, either.
    Absent(State),
    /// A new pod would be denied, for this reason.
    Denied(String),
}

/// How a pod stands to templates that are in their [order](Template::order), and to those of its mark that are
/// not in force, by their names.
#[must_use]
pub fn standings(templates: &[&Template], request: &Request<'_>) -> Vec<Standing> {
    let mut marked = Marked::of(request.pod);
    let before = without(templates, &marked, request);
    let fits = fits(templates, &Request { pod: &before, ..*request });
    let is_open = |(template, fit): (&&Template, &Fit)| {
        matches!(fit, Fit::Fits) && marked.get(&template.key()).is_none()
    };
    let is_evaluated = templates.iter().zip(&fits).any(is_open);
    let applied = if is_evaluated { Applied::of(templates, request) } else { Applied::default() };
    let mut all = Vec::new();
    for (template, fit) in templates.iter().zip(fits) {
        let key = template.key();
        let entry = marked.0.remove(&key);
        let stands = match (fit, entry) {
            (Fit::Denied(text), _) => Stands::Denied(text),
            (Fit::Left(state), None) => Stands::Absent(state),
            // A validation that skips a pod often looks for the template itself, in any form.
            (Fit::Left(State::Skipped(_)), Some(Entry { hash, .. })) if hash == template.hash => {
                Stands::Present
            }
            (Fit::Left(state), Some(Entry { hash, .. })) => {
                Stands::Unexpected { hash, reason: state.to_string() }
            }
            (Fit::Fits, _) if applied.denial(&key).is_some() => applied.stands(&key),
            (Fit::Fits, Some(Entry { hash, .. })) if hash == template.hash => Stands::Present,
            (Fit::Fits, Some(Entry { hash, .. })) => Stands::Outdated(hash),
            (Fit::Fits, None) => applied.stands(&key),
        };
        all.push(Standing { template: key, hash: template.hash.clone(), stands });
    }
    all.extend(marked.0.into_iter().map(|(template, Entry { hash, .. })| {
        let reason = "no such template is in force".to_owned();
        Standing { template, hash: String::new(), stands: Stands::Unexpected { hash, reason } }
    }));
    all
}

/// For each template, whether selectors and its switch let it be for a pod, or whether the pod has it: of these,
/// [`standings`] reads what they need of owners and the ServiceAccount.
#[must_use]
pub fn selected(templates: &[&Template], request: &Request<'_>) -> Vec<bool> {
    let marked = Marked::of(request.pod);
    let selected = selects(templates, request);
    let has = |template: &Template| marked.get(&template.key()).is_some();
    templates.iter().zip(selected).map(|(template, is)| is || has(template)).collect()
}

/// A pod without what these templates, and those of its mark, have put into it, as far as that is known; `None` if
/// it has nothing of them.
#[must_use]
pub fn before(templates: &[&Template], request: &Request<'_>) -> Option<Value> {
    let marked = Marked::of(request.pod);
    (!Mark::of(request.pod).0.is_empty()).then(|| without(templates, &marked, request))
}

/// The entries of a mark of which the pod has a container, or that have none.
struct Marked(BTreeMap<String, Entry>);

impl Marked {
    fn of(pod: &Value) -> Self {
        let is_there = |entry: &Entry| {
            let mut names = container_names(pod);
            entry.added.is_empty() || names.any(|name| entry.added.iter().any(|one| one == name))
        };
        let entries = Mark::of(pod).0.into_iter();
        Self(entries.filter(|(_, entry)| is_there(entry)).collect())
    }

    fn get(&self, key: &str) -> Option<&Entry> {
        self.0.get(key)
    }
}

/// The pod without what templates have put into it, as far as that is known: the containers of the mark, the volumes
/// that the overlays name, and what they would write just so, even if the template is no longer for the pod. What
/// they may have replaced goes as well: what was there is not known.
fn without(templates: &[&Template], marked: &Marked, request: &Request<'_>) -> Value {
    let found = by_mark(request.pod);
    let mut pod = found.map_or_else(|| request.pod.clone(), |found| found.pod);
    let of_mark = templates.iter().filter(|template| marked.get(&template.key()).is_some());
    let of_mark: Vec<_> = of_mark.copied().collect();
    let written =
        of_mark.iter().flat_map(|template| laid(template, &Request { pod: &pod, ..*request }));
    let written: Vec<_> = written.collect();
    let there = leaves(&pod);
    let is_there = |laid: &Laid| there.get(&laid.place) == Some(&&laid.value);
    let places = written.into_iter().filter(is_there).map(|laid| laid.place).collect();
    pod = leaves::without(&pod, &places);
    let volumes = of_mark.iter().flat_map(|template| volume_names(template)).collect();
    remove_volumes(&mut pod, &volumes);
    pod
}

/// The constant names of volumes in the overlays of a template.
fn volume_names(template: &Template) -> impl Iterator<Item = &str> {
    let overlays = template.steps.iter().filter_map(|step| step.overlay.as_ref());
    let lists = overlays.filter_map(|overlay| overlay.field("spec")?.field("volumes"));
    let volumes = lists.flat_map(|list| match list {
        Structure::List(volumes) => &**volumes,
        _ => &[],
    });
    volumes.filter_map(|volume| match volume.field("name") {
        Some(Structure::Constant(name)) => name.as_str(),
        _ => None,
    })
}

/// Removes volumes and their mounts; lists that are empty without them go as well.
fn remove_volumes(pod: &mut Value, names: &BTreeSet<&str>) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    remove_named(spec, "volumes", names);
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        let containers = containers.into_iter().flatten();
        containers
            .filter_map(Value::as_object_mut)
            .for_each(|container| remove_named(container, "volumeMounts", names));
    }
}

fn remove_named(object: &mut Map<String, Value>, list: &str, names: &BTreeSet<&str>) {
    let Some(items) = object.get_mut(list).and_then(Value::as_array_mut) else { return };
    let before = items.len();
    items.retain(|item| item["name"].as_str().is_none_or(|name| !names.contains(name)));
    if items.is_empty() && before > 0 {
        object.shift_remove(list);
    }
}

/// What becomes of the templates that a pod does not have.
#[derive(Default)]
struct Applied {
    states: BTreeMap<String, State>,
    /// The template that denies the pod, and the reason.
    denied: Option<(String, String)>,
}

impl Applied {
    fn of(templates: &[&Template], request: &Request<'_>) -> Self {
        match inject_in_order(templates, request) {
            Ok(injected) => {
                let states = injected.decisions.into_iter();
                let states = states.map(|decision| (decision.template, decision.state)).collect();
                Self { states, denied: None }
            }
            Err(denied) => Self { denied: Some((denied.template, denied.text)), ..Self::default() },
        }
    }

    /// Why this template denies the pod.
    fn denial(&self, key: &str) -> Option<&str> {
        self.denied.as_ref().filter(|(by, _)| by == key).map(|(_, text)| &**text)
    }

    fn stands(&self, key: &str) -> Stands {
        if let Some(text) = self.denial(key) {
            return Stands::Denied(text.to_owned());
        }
        match (&self.denied, self.states.get(key)) {
            (Some((by, _)), _) => {
                Stands::Absent(State::Skipped(format!("template {by} denies the pod")))
            }
            (None, Some(state @ (State::Unmatched(_) | State::Disabled | State::Skipped(_)))) => {
                Stands::Absent(state.clone())
            }
            (None, Some(State::Nothing)) => Stands::Absent(State::Nothing),
            (None, _) => Stands::Missing,
        }
    }
}

#[cfg(test)]
mod tests;
