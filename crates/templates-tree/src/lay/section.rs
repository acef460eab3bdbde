//! Containers and volumes of a step, which are somebody's as a whole.

use std::collections::BTreeSet;

use injectd_merge::schema::POD;
use injectd_templates::object::OnConflict;
use serde_json::{Map, Value};

use super::{
    Laid, Own, StepOverlay,
    claims::Claim,
    directive::{self, Directive},
    layer::Layer,
    lists::{self, LISTS, List},
    path::{self, Path},
};

impl Own {
    pub(super) fn names(&mut self, list: List) -> &mut BTreeSet<String> {
        match list {
            List::Volumes => &mut self.volumes,
            _ => &mut self.containers,
        }
    }
}

/// What all steps of a template write together.
pub(super) struct Whole {
    /// What the steps give on an empty pod.
    expected: Value,
    /// Containers and volumes that the pod had completely before the steps, by list and name.
    complete: BTreeSet<(List, String)>,
    /// Other places that had what the steps together write there.
    pub(super) met: BTreeSet<Path>,
}

impl Whole {
    /// Compares a pod with what these steps give on an empty pod. What it has completely counts as the
    /// template's.
    pub(super) fn of(
        pod: &Value,
        own: &mut Own,
        expected: Value,
        steps: &[&StepOverlay<'_>],
    ) -> Self {
        let others = steps.first().map(|step| step.others).unwrap_or_default();
        let mut complete = BTreeSet::new();
        let mut taken_over = BTreeSet::new();
        for list in LISTS {
            for wanted in list.of(&expected) {
                let Some(name) = lists::name(wanted) else { continue };
                let at = list.position(pod, name);
                let met = at.and_then(|at| list.of(pod).get(at));
                let is_moved = || list.is_moved(pod, name, &others);
                if met.map_or_else(is_moved, |met| list.is_complete(met, wanted, &others)) {
                    complete.insert((list, name.to_owned()));
                    if !met.is_some_and(|met| list.has(met, wanted)) {
                        taken_over.insert((list, name.to_owned()));
                    }
                }
            }
        }
        // What a later template has replaced was the template's only if its step was not left out: nothing else
        // of such a step is in the pod.
        if !taken_over.is_empty() {
            let left_out = steps.iter().filter(|step| is_left_out(step, pod, &complete));
            let left_out: BTreeSet<_> = left_out.flat_map(|step| entries(step)).collect();
            complete.retain(|entry| !taken_over.contains(entry) || !left_out.contains(entry));
        }
        for (list, name) in &complete {
            own.names(*list).insert(name.clone());
        }
        Self { met: met(pod, &expected), expected, complete }
    }

    fn entry(&self, list: List, name: &str) -> Option<Value> {
        let at = list.position(&self.expected, name)?;
        list.of(&self.expected).get(at).cloned()
    }
}

/// The containers and volumes that a step writes.
fn entries<'s>(step: &'s StepOverlay<'_>) -> impl Iterator<Item = (List, String)> + 's {
    LISTS.into_iter().flat_map(|list| {
        let all = list.written(step.overlay).unwrap_or_default().iter();
        let written = all.filter(|entry| directive::of(entry).is_none());
        written.filter_map(lists::name).map(move |name| (list, name.to_owned()))
    })
}

/// Whether a pod lacks a container or volume that it has if the step was laid.
fn is_left_out(step: &StepOverlay, pod: &Value, complete: &BTreeSet<(List, String)>) -> bool {
    entries(step).any(|entry| {
        let (list, name) = &entry;
        list.position(pod, name).is_none() && !complete.contains(&entry)
    })
}

/// Places besides containers and volumes that have what is expected there.
pub(super) fn met(pod: &Value, expected: &Value) -> BTreeSet<Path> {
    let is_other =
        |place: &Path| !LISTS.iter().any(|list| place.get(1).is_some_and(|key| key == list.key()));
    path::same_places(pod, expected).into_iter().filter(is_other).collect()
}

/// One list of an overlay that is laid on a pod.
pub(super) struct Section<'a> {
    pub(super) list: List,
    pub(super) pod: &'a mut Value,
    pub(super) own: &'a mut Own,
    pub(super) step: &'a StepOverlay<'a>,
    pub(super) whole: &'a Whole,
    /// The later steps of the template.
    pub(super) following: &'a [&'a StepOverlay<'a>],
    /// Entries that the pod does not have, in the order of the overlay.
    pub(super) new: Vec<Value>,
}

impl Section<'_> {
    pub(super) fn lay(&mut self, entries: &[Value]) -> Result<Laid, String> {
        if directive::replaces_list(entries) {
            self.clear()?;
        }
        for entry in entries.iter().filter(|entry| !directive::is_mark(entry)) {
            match self.entry(entry)? {
                Laid::Done => {}
                skip => return Ok(skip),
            }
        }
        self.insert();
        Ok(Laid::Done)
    }

    fn entry(&mut self, entry: &Value) -> Result<Laid, String> {
        let Some(name) = lists::name(entry) else {
            let (key, noun) = (self.list.key(), self.list.noun());
            return Err(format!("spec.{key}: a {noun} of the overlay has no `name`; it needs one"));
        };
        if self.whole.complete.contains(&(self.list, name.to_owned())) {
            let is_replaced = self.on_conflict() == OnConflict::Replace
                || directive::of(entry) == Some(Directive::Replace);
            let claim = if is_replaced { Claim::Replaced } else { Claim::Written };
            self.step.others.claim(&self.list.place(name), claim);
            return Ok(Laid::Done);
        }
        if let Some(directive) = directive::of(entry) {
            return self.directed(name, entry, directive);
        }
        let other =
            self.list.others().iter().find(|other| other.position(self.pod, name).is_some());
        if let Some(other) = other {
            return self.conflict(name, entry, *other);
        }
        if self.new.iter().any(|new| lists::name(new) == Some(name)) {
            let (key, noun) = (self.list.key(), self.list.noun());
            return Err(format!("spec.{key}: the overlay has two {noun}s {name:?}; rename one"));
        }
        let Some(at) = self.list.position(self.pod, name) else {
            return self.put(name, entry);
        };
        if !self.names().contains(name) {
            let piece = self.merged(entry)?;
            let met = self.list.of(self.pod).get(at);
            if met.is_some_and(|met| self.list.has(met, &piece)) {
                return Ok(Laid::Done);
            }
            return self.conflict(name, entry, self.list);
        }
        let slot = self.list.of_mut(self.pod).and_then(|list| list.get_mut(at));
        let mut current = slot.map(Value::take).unwrap_or_default();
        self.merge(&mut current, entry)?;
        if let Some(slot) = self.list.of_mut(self.pod).and_then(|list| list.get_mut(at)) {
            *slot = current;
        }
        Ok(Laid::Done)
    }

    fn names(&mut self) -> &mut BTreeSet<String> {
        self.own.names(self.list)
    }

    /// Merges an entry of the overlay with the template's.
    fn merge(&self, current: &mut Value, entry: &Value) -> Result<(), String> {
        let place = lists::name(entry).map(path::entry).unwrap_or_default();
        let mut layer = Layer::own(vec!["spec".into(), self.list.key().into(), place]);
        match (current, entry) {
            (Value::Object(current), Value::Object(entry)) => {
                layer.fields(current, entry, self.list.types())
            }
            _ => Ok(()),
        }
    }

    /// An entry of the overlay as it is in a pod without it.
    fn merged(&self, entry: &Value) -> Result<Value, String> {
        let mut new = Value::Object(Map::new());
        self.merge(&mut new, entry)?;
        Ok(new)
    }

    /// Puts an entry in the place of the pod's, or adds it.
    fn put(&mut self, name: &str, entry: &Value) -> Result<Laid, String> {
        let new = self.merged(entry)?;
        // A pod has one container of a name in all of its lists.
        for other in self.list.others() {
            other.remove(self.pod, name);
        }
        let at = self.list.position(self.pod, name);
        match at.and_then(|at| self.list.of_mut(self.pod)?.get_mut(at)) {
            Some(slot) => *slot = new,
            None => self.new.push(new),
        }
        self.names().insert(name.to_owned());
        Ok(Laid::Done)
    }

    /// What `onConflict` says.
    fn conflict(&mut self, name: &str, entry: &Value, other: List) -> Result<Laid, String> {
        let place = format!("spec.{}{}", other.key(), path::entry(name));
        let noun = self.list.noun();
        if other != self.list && self.names().contains(name) {
            return Err(format!(
                "{place}: the template adds a container of this name to spec.{} as well; use another \
                 name there",
                self.list.key()
            ));
        }
        match self.on_conflict() {
            OnConflict::Keep => Ok(Laid::Done),
            OnConflict::Fail if self.step.others.records || self.is_removed_later(name) => {
                Ok(Laid::Done)
            }
            OnConflict::Replace => {
                // Earlier steps may have found what they write in the pod's.
                let whole = self.whole.entry(self.list, name);
                self.put(name, whole.as_ref().unwrap_or(entry))
            }
            OnConflict::SkipStep => Ok(Laid::SkipStep),
            OnConflict::SkipTemplate => Ok(Laid::SkipTemplate),
            OnConflict::Fail if other != self.list => Err(format!(
                "{place}: the pod has this container, and the template adds one of the same name to \
                 spec.{}; rename one, or set `onConflict`",
                self.list.key()
            )),
            OnConflict::Fail => Err(format!(
                "{place}: the pod has a {noun} of this name that differs from the template's; rename \
                 one, or set `onConflict`"
            )),
        }
    }

    fn on_conflict(&self) -> OnConflict {
        let is_volume = self.list == List::Volumes;
        OnConflict::of(self.step.on_conflict, self.step.existing, is_volume)
    }

    /// An entry with `$patch`.
    fn directed(
        &mut self,
        name: &str,
        entry: &Value,
        directive: Directive,
    ) -> Result<Laid, String> {
        if self.list.position(self.pod, name).is_some() {
            if directive == Directive::Delete && self.is_written_later(name) {
                self.step.others.claim(&self.list.place(name), Claim::Replaced);
                return Ok(Laid::Done);
            }
            self.check_removal(name)?;
        }
        if directive == Directive::Replace {
            return self.put(name, entry);
        }
        self.list.remove(self.pod, name);
        self.new.retain(|new| lists::name(new) != Some(name));
        self.names().remove(name);
        Ok(Laid::Done)
    }

    /// Removes all entries, for an overlay that stands for the whole list.
    fn clear(&mut self) -> Result<(), String> {
        let names: Vec<String> =
            self.list.of(self.pod).iter().filter_map(lists::name).map(str::to_owned).collect();
        for name in names {
            if self.is_written_later(&name) {
                self.step.others.claim(&self.list.place(&name), Claim::Replaced);
                continue;
            }
            self.check_removal(&name)?;
            self.list.remove(self.pod, &name);
            self.names().remove(&name);
        }
        Ok(())
    }

    /// Whether a later step of the template removes what the pod has of this name, or replaces it.
    fn is_removed_later(&self, name: &str) -> bool {
        let place = ["spec".to_owned(), self.list.key().to_owned(), path::entry(name)];
        let types = POD.as_struct().expect("a Pod must be a struct");
        self.following.iter().any(|step| directive::removes(step.overlay, &place, types))
    }

    /// Whether a later turn would write what the pod has of this name.
    fn is_written_later(&self, name: &str) -> bool {
        self.step.others.has(&self.list.place(name), Claim::Written)
    }

    fn check_removal(&mut self, name: &str) -> Result<(), String> {
        if !self.step.is_namespaced || self.names().contains(name) {
            return Ok(());
        }
        let place = format!("spec.{}{}", self.list.key(), path::entry(name));
        Err(format!(
            "{place}: `$patch` of a SidecarTemplate removes only what the template added, and this \
             is not its own; a ClusterSidecarTemplate may remove it"
        ))
    }

    /// Puts the new entries into the list.
    fn insert(&mut self) {
        self.list.insert(self.pod, std::mem::take(&mut self.new), self.step);
    }
}
