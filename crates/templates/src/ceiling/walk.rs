//! A template is held against the controls of a level.

use std::collections::{BTreeMap, BTreeSet};

use injectd_k8s::pod_security::{APP_ARMOR_PREFIX, is_app_armor_profile};
use injectd_merge::schema::Merge;
use serde_json::Value;

use super::{
    Ceiling,
    control::{Allowed, CONTEXT, Control, Of, controls},
};
use crate::{
    Problem, Step, Template,
    spot::{DELETE, Part, Spot},
    structure::found,
    template::CONTAINER_LISTS,
};

/// Where a control's path leads to.
enum Reached<'t> {
    /// The value at its end.
    Value(Spot<'t>),
    /// An expression that decides it.
    Open(Spot<'t>),
}

pub(super) struct Walk {
    ceiling: Ceiling,
    problems: Vec<Problem>,
    /// By field: the controls that need a constant there.
    open: BTreeMap<String, Vec<&'static str>>,
}

impl Walk {
    pub(super) fn new(ceiling: Ceiling) -> Self {
        Self { ceiling, problems: Vec::new(), open: BTreeMap::new() }
    }

    pub(super) fn problems(mut self) -> Vec<Problem> {
        for (field, controls) in &self.open {
            let text = format!(
                "expected a constant, found an expression: level {} of the Pod Security Standards \
                 checks {} here",
                self.ceiling.as_str(),
                controls.join(", "),
            );
            self.problems.push(Problem::new(field, text));
        }
        self.problems.sort();
        self.problems.dedup();
        self.problems
    }

    pub(super) fn step(&mut self, template: &Template, step: usize) {
        if let Some(overlay) = Spot::overlay(template, step) {
            if let Some(annotations) = overlay.at(&["metadata", "annotations"]) {
                self.annotations(&annotations);
            }
            if let Some(spec) = overlay.get("spec") {
                self.spec(&spec, &always_added(template, step));
            }
        }
        for (_, rule) in Spot::rules(template, step) {
            self.container(&rule, false);
        }
    }

    /// Checks the overlay's `spec`; containers of these names have what they must have elsewhere.
    fn spec(&mut self, spec: &Spot<'_>, known: &BTreeSet<&str>) {
        self.check(Of::Spec, spec, false);
        if let Some(context) = spec.get(CONTEXT) {
            self.check(Of::Context, &context, false);
        }
        for list in CONTAINER_LISTS {
            let (containers, open) = spec.list(list);
            for container in &containers {
                self.container_of(container, known);
            }
            if let Some(open) = open {
                self.whole(Of::Container, &open);
            }
        }
        let (volumes, open) = spec.list("volumes");
        for volume in &volumes {
            self.check(Of::Volume, volume, true);
        }
        if let Some(open) = open {
            self.whole(Of::Volume, &open);
        }
    }

    /// A container of an overlay.
    fn container_of(&mut self, container: &Spot<'_>, known: &BTreeSet<&str>) {
        if let Some(directive) = container.directive() {
            return self.container(container, directive != DELETE);
        }
        let is_known = name_of(container).is_some_and(|name| known.contains(name));
        let context = container.get(CONTEXT).filter(has_directive);
        // What a container that is there has may be gone, and so is such an object itself in one that is new.
        self.container(container, !is_known || context.is_some());
        if let Some(context) = context.filter(|_| !is_known && self.ceiling == Ceiling::Restricted)
        {
            let text = "expected no $patch, found one in a container that no other step adds in any case: level \
                restricted of the Pod Security Standards";
            self.problems.push(context.problem(text));
        }
    }

    fn container(&mut self, container: &Spot<'_>, is_added: bool) {
        self.check(Of::Container, container, is_added);
        match container.get(CONTEXT) {
            Some(context) => self.check(Of::Context, &context, is_added),
            None if is_added => {
                let needed = self.controls(Of::Context).filter(|of| of.allowed.is_needed());
                for control in needed {
                    self.lacks(control, container);
                }
            }
            None => {}
        }
    }

    /// A list that an expression decides: all that a control looks at may be in it.
    fn whole(&mut self, of: Of, list: &Spot<'_>) {
        let mut names: Vec<_> = self.controls(of).map(|control| control.name).collect();
        if of == Of::Container {
            names.extend(self.controls(Of::Context).map(|control| control.name));
        }
        for name in names {
            self.open(name, list);
        }
    }

    fn controls(&self, of: Of) -> impl Iterator<Item = &'static Control> + use<> {
        controls(self.ceiling == Ceiling::Restricted).filter(move |control| control.of == of)
    }

    fn check(&mut self, of: Of, spot: &Spot<'_>, is_added: bool) {
        for control in self.controls(of) {
            let reached = reach(spot, control.path);
            if reached.is_empty() && is_added && control.allowed.is_needed() {
                self.lacks(control, spot);
            }
            for reached in reached {
                match reached {
                    Reached::Open(spot) => self.open(control.name, &spot),
                    Reached::Value(spot) => self.value(control, &spot),
                }
            }
        }
    }

    fn value(&mut self, control: &'static Control, spot: &Spot<'_>) {
        match control.allowed {
            Allowed::Sources(allowed) => {
                let is_wrong = |name: &str| name != "name" && !allowed.contains(&name);
                for (name, source) in spot.fields().iter().filter(|(name, _)| is_wrong(name)) {
                    self.refuse(control, source, name);
                }
            }
            Allowed::NeedsItem(needed) => self.item(control, spot, needed),
            allowed => match spot.constant() {
                Some(value) if holds(allowed, &value) => {}
                Some(value) => self.refuse(control, spot, &found(&value)),
                None => self.refuse(control, spot, "one"),
            },
        }
    }

    fn item(&mut self, control: &'static Control, list: &Spot<'_>, needed: &str) {
        let items = list.items(Merge::Replace);
        if items.iter().any(|item| item.text() == Some(needed)) {
            return;
        }
        match items.iter().find(|item| item.is_open()) {
            Some(item) => self.open(control.name, item),
            None => self.refuse(control, list, "a list without it"),
        }
    }

    fn annotations(&mut self, annotations: &Spot<'_>) {
        let name = "AppArmor";
        if annotations.is_open() {
            self.open(name, annotations);
        }
        for (key, value) in annotations.fields() {
            match value.constant() {
                _ if !key.starts_with(APP_ARMOR_PREFIX) => {}
                None => self.open(name, &value),
                Some(Value::String(profile)) if is_app_armor_profile(&profile) => {}
                Some(other) => {
                    let expected = "runtime/default or localhost/…";
                    self.refused(name, &value, expected, &found(&other));
                }
            }
        }
    }

    fn open(&mut self, control: &'static str, spot: &Spot<'_>) {
        let controls = self.open.entry(spot.field().to_owned()).or_default();
        if !controls.contains(&control) {
            controls.push(control);
        }
    }

    fn refuse(&mut self, control: &Control, spot: &Spot<'_>, found: &str) {
        self.refused(control.name, spot, &control.allowed.words(), found);
    }

    fn refused(&mut self, control: &str, spot: &Spot<'_>, expected: &str, found: &str) {
        let text = format!("expected {expected}, found {found}: {}", self.by(control));
        self.problems.push(spot.problem(text));
    }

    /// A container that is added has not what it must have. All of that is in its `securityContext`.
    fn lacks(&mut self, control: &Control, spot: &Spot<'_>) {
        let path = control.path.iter().filter(|name| **name != CONTEXT).copied();
        let path = path.collect::<Vec<_>>().join(".");
        let (expected, by) = (control.allowed.words(), self.by(control.name));
        let text = format!("expected {CONTEXT}.{path} to be {expected}, found none: {by}");
        self.problems.push(spot.problem(text));
    }

    fn by(&self, control: &str) -> String {
        let level = self.ceiling.as_str();
        format!("{control} of the Pod Security Standards, level {level}")
    }
}

fn has_directive(spot: &Spot<'_>) -> bool {
    spot.directive().is_some() || spot.fields().iter().any(|(_, field)| has_directive(field))
}

fn name_of<'t>(container: &Spot<'t>) -> Option<&'t str> {
    container.get("name")?.text()
}

/// Names of the containers that other steps add in any case, or that steps before this one do. None that a
/// step deletes or replaces is one of them: then what else is added of that name begins with nothing.
fn always_added(template: &Template, step: usize) -> BTreeSet<&str> {
    let is_sure = |step: &Step| step.when.is_none() && step.for_each.is_none();
    let is_own_sure = template.steps.get(step).is_some_and(is_sure);
    let steps = template.steps.iter().enumerate();
    let others = steps.filter(|(index, other)| {
        is_sure(other) && if is_own_sure { *index < step } else { *index != step }
    });
    let added = others.flat_map(|(index, _)| containers(template, index));
    let all = (0..template.steps.len()).flat_map(|step| containers(template, step));
    let patched: Vec<_> = all.filter(|container| container.directive().is_some()).collect();
    // A name that an expression decides may be any.
    let may_be = |patched: &Spot<'_>, name: &str| name_of(patched).is_none_or(|of| of == name);
    let is_patched = |name: &str| patched.iter().any(|patched| may_be(patched, name));
    let names = added.filter_map(|container| name_of(&container));
    names.filter(|name| !is_patched(name)).collect()
}

/// The containers of a step's overlay.
fn containers(template: &Template, step: usize) -> Vec<Spot<'_>> {
    let spec = Spot::overlay(template, step).and_then(|overlay| overlay.get("spec"));
    spec.iter().flat_map(|spec| CONTAINER_LISTS.map(|list| spec.list(list).0)).flatten().collect()
}

/// What a path leads to: nothing where the template writes nothing.
fn reach<'t>(spot: &Spot<'t>, path: &[&str]) -> Vec<Reached<'t>> {
    let mut open = Vec::new();
    if matches!(spot.part(), Some(Part::Open(_) | Part::Text(_))) {
        return vec![Reached::Open(spot.clone())];
    }
    // Nothing of such an object is written.
    if spot.directive() == Some(DELETE) {
        return Vec::new();
    }
    let below = match path {
        [] => {
            // A base that an expression decides may have fields of any name.
            if spot.is_open() {
                open.push(Reached::Open(spot.clone()));
            }
            vec![Reached::Value(spot.clone())]
        }
        [name, "*", rest @ ..] => {
            let (items, list) = spot.list(name);
            open.extend(list.map(Reached::Open));
            items.iter().flat_map(|item| reach(item, rest)).collect()
        }
        [name, rest @ ..] => spot.get(name).map_or_else(Vec::new, |below| reach(&below, rest)),
    };
    open.into_iter().chain(below).collect()
}

/// Whether a constant is allowed.
fn holds(allowed: Allowed, value: &Value) -> bool {
    match allowed {
        Allowed::False | Allowed::NeedsFalse => *value == Value::Bool(false),
        Allowed::NeedsTrue => *value == Value::Bool(true),
        Allowed::Zero => value.as_i64() == Some(0),
        Allowed::NotZero => value.as_i64().is_some_and(|number| number != 0),
        Allowed::Empty => value == "",
        Allowed::SelinuxType if value == "" => true,
        other => {
            value.as_str().zip(other.texts()).is_some_and(|(text, allowed)| allowed.contains(&text))
        }
    }
}
