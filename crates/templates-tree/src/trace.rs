//! Who wrote what: for each field of a pod that templates changed, the step and the expression.
//!
//! An evaluation reports the overlays that it has filled in, and the pods before and after. Not for deciding
//! anything: an evaluation is the same with and without a trace.

mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use injectd_templates::{Step, Template, object::Existing, structure::Structure};
use serde_json::Value;

use self::source::{Names, Source};
use crate::lay::leaves::{self, Part, Spot, leaves};

/// A field of a pod that a template wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The place in the pod: `spec.containers["app"].env["A"].value`.
    pub place: String,
    /// Whether the place was removed from the pod.
    pub is_removed: bool,
    /// The name of the step.
    pub step: String,
    /// The path of the field of the template.
    pub field: String,
    /// The expression there; `None` for a constant.
    pub expression: Option<String>,
}

/// What is known of a template's work on a pod.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    /// Where the values of its parameters come from, by their names.
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) writes: Vec<Write>,
    /// Values of its overlays, in the order in which they are laid.
    pub(crate) laid: Vec<Laid>,
    /// How many of them are of work that has ended.
    ended: usize,
}

/// A value of an overlay, and its place in the pod.
#[derive(Debug)]
pub(crate) struct Laid {
    pub(crate) place: Vec<String>,
    pub(crate) value: Value,
    /// Whether it stands in place of what it meets.
    pub(crate) replaces: bool,
    write: Write,
}

/// A record of an evaluation.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The key of the template at work.
    at_work: Option<String>,
    templates: BTreeMap<String, Traced>,
}

/// An overlay of a step that is filled in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overlay<'o> {
    pub(crate) step: &'o Step,
    pub(crate) structure: &'o Structure,
    pub(crate) filled: &'o Value,
    pub(crate) existing: Option<Existing>,
}

impl Trace {
    fn with(&self, then: impl FnOnce(&mut Traced)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = state.at_work.clone() {
            then(state.templates.entry(key).or_default());
        }
    }

    /// A template begins its work.
    pub(crate) fn begin(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at_work = Some(key.to_owned());
    }

    /// A template rests: what is evaluated for another one is not its work.
    pub(crate) fn rest(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).at_work = None;
    }

    /// Parameters are read.
    pub(crate) fn parameters(&self, origins: &BTreeMap<String, String>) {
        self.with(|traced| traced.parameters.clone_from(origins));
    }

    /// The overlay of a step is filled in.
    pub(crate) fn overlay(&self, template: &Template, overlay: &Overlay<'_>) {
        let index = index_of(template, overlay.step);
        let field = format!("spec.steps[{index}].overlay");
        self.filled(template, overlay, field, &[]);
    }

    /// The overlay of a rule is filled in for a container in a list of the pod.
    pub(crate) fn rule(&self, template: &Template, overlay: &Overlay<'_>, container: [&str; 2]) {
        let [list, name] = container;
        let index = index_of(template, overlay.step);
        let mut rules = overlay.step.rules.iter();
        // By place: two rules may have equal overlays.
        let rule = rules.position(|rule| std::ptr::eq(&raw const rule.overlay, overlay.structure));
        let rule = rule.unwrap_or_default();
        let field = format!("spec.steps[{index}].containers[{rule}].overlay");
        self.filled(template, overlay, field, &leaves::container_place(list, name));
    }

    fn filled(&self, template: &Template, overlay: &Overlay<'_>, field: String, place: &[String]) {
        let step = overlay.step;
        let each = step.for_each.as_ref().map_or(&[][..], |each| &each.variables);
        let names = Names { template, each, step: index_of(template, step) };
        let spot = if place.is_empty() { Spot::pod() } else { Spot::container() };
        let source = Source::of(overlay.structure, field, names);
        let replaces = overlay.existing == Some(Existing::Replace);
        let mut walk = Walk { names, step: &step.name, replaces, found: Vec::new() };
        walk.value(overlay.filled, spot, &source, place);
        self.with(|traced| traced.laid.extend(walk.found));
    }

    /// A template has done its work: what it changed in the pod.
    pub(crate) fn end(&self, before: &Value, after: &Value) {
        self.with(|traced| {
            let writes = writes(&traced.laid[traced.ended..], before, after);
            traced.ended = traced.laid.len();
            traced.writes.extend(writes);
        });
    }

    /// What was recorded, by the keys of the templates.
    pub(crate) fn into_templates(self) -> BTreeMap<String, Traced> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).templates
    }
}

fn index_of(template: &Template, step: &Step) -> usize {
    template.steps.iter().position(|one| std::ptr::eq(one, step)).unwrap_or_default()
}

/// A filled overlay is walked together with what is written in the template.
struct Walk<'w> {
    names: Names<'w>,
    step: &'w str,
    replaces: bool,
    found: Vec<Laid>,
}

impl<'w> Walk<'w> {
    fn value(&mut self, value: &Value, spot: Spot, source: &Source<'w>, place: &[String]) {
        let mut parts = Vec::new();
        let mut keep = |part: Part<'_>, step: String, value, spot| {
            parts.push((source.part(&part, self.names), step, value, spot));
        };
        let is_leaf = !spot.each_part(value, &mut keep);
        if is_leaf || value.get("$patch").is_some() {
            let (field, expression) = source.written();
            let (shown, step) = (leaves::shown(place), self.step.to_owned());
            let write = Write { place: shown, is_removed: false, step, field, expression };
            let (place, value, replaces) = (place.to_vec(), value.clone(), self.replaces);
            self.found.push(Laid { place, value, replaces, write });
        }
        for (source, step, value, spot) in parts {
            self.value(value, spot, &source, &[place, &[step]].concat());
        }
    }
}

/// The places that differ between two pods, with who wrote them.
fn writes(candidates: &[Laid], before: &Value, after: &Value) -> Vec<Write> {
    let (old, new) = (leaves(before), leaves(after));
    let changed = new.iter().filter(|(place, value)| old.get(*place) != Some(*value));
    let changed = changed.filter_map(|(place, _)| writer(candidates, place, false));
    let is_there = |place: &[String]| new.keys().any(|other| other.starts_with(place));
    let removed = old.keys().filter(|place| !is_there(place)).map(|place| {
        let lengths = 1..=place.len();
        let shortest = lengths.map(|end| &place[..end]).find(|part| !is_there(part));
        shortest.unwrap_or(place).to_vec()
    });
    let removed: BTreeSet<Vec<String>> = removed.collect();
    let removed = removed.iter().filter_map(|place| writer(candidates, place, true));
    changed.chain(removed).collect()
}

/// The last overlay that has a place; else the one that has what the place is in.
fn writer(candidates: &[Laid], place: &[String], is_removed: bool) -> Option<Write> {
    let around = candidates.iter().filter(|one| place.starts_with(&one.place));
    let nearest = around.max_by_key(|one| one.place.len())?;
    Some(Write { place: leaves::shown(place), is_removed, ..nearest.write.clone() })
}
