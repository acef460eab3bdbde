//! Rules for containers of a pod.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use injectd_cel::{Datum, TypeDef, Typed};
use injectd_templates::{Rule, Select, Template, named::member, object::ContainerKind};
use serde_json::Value;

use super::{
    Stop,
    names::{Names, has_each_once},
    taken::Taken,
};
use crate::{
    fill,
    lay::{self, Others, RuleOverlay, Turn},
    scope::{Failure, Scope},
};

/// The lists of containers, init containers first: they run first.
pub(super) const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Which containers rules see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Those that no template added.
    Own,
    /// Those that other templates added.
    Added,
}

/// The containers that rules are for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Containers<'c> {
    /// Containers of the template itself: no rule sees them.
    pub(crate) own: &'c BTreeSet<String>,
    /// Containers that other templates added: only rules for `Added` see them.
    pub(crate) added: &'c BTreeSet<String>,
    /// Containers that the rules have been applied to.
    pub(crate) served: &'c BTreeSet<String>,
    /// Which of the others are seen.
    pub(crate) seen: Seen,
    /// What is known about other templates.
    pub(crate) others: Others<'c>,
}

/// A rule of a step that is taken, with its turn.
struct Turned<'s, 't> {
    taken: &'s Taken<'t>,
    rule: &'s Rule,
    others: Others<'s>,
}

/// A container of a pod.
struct Found {
    list: &'static str,
    /// Its index in the list.
    place: usize,
    name: String,
    kind: ContainerKind,
    /// Its index among those that no template added.
    index: usize,
}

impl Containers<'_> {
    /// The containers that the rules have not been applied to.
    fn of(&self, pod: &Value) -> Vec<Found> {
        let mut found = Vec::new();
        let spec = member(pod, "spec");
        for list in LISTS {
            let containers = spec.and_then(|spec| member(spec, list)?.as_array());
            let mut index = 0;
            for (at, container) in containers.into_iter().flatten().enumerate() {
                let text = |key| member(container, key).and_then(Value::as_str);
                let name = text("name").unwrap_or_default().to_owned();
                let is_added = self.added.contains(&name);
                let is_own = self.own.contains(&name);
                let kind = match list {
                    _ if is_added => ContainerKind::Added,
                    "containers" => ContainerKind::Container,
                    _ if text("restartPolicy") == Some("Always") => ContainerKind::Sidecar,
                    _ => ContainerKind::InitContainer,
                };
                let is_seen = is_added == (self.seen == Seen::Added);
                if !is_own && is_seen && !self.served.contains(&name) {
                    found.push(Found { list, place: at, name, kind, index });
                }
                index += usize::from(!is_added && !is_own);
            }
        }
        found
    }

    /// Whether the pod has a container that a rule may be for, and was applied to by none.
    pub(crate) fn has_new(&self, pod: &Value, template: &Template) -> bool {
        let rules = || template.steps.iter().flat_map(|step| &step.rules);
        self.of(pod).iter().any(|at| rules().any(|rule| rule.kinds.contains(&at.kind)))
    }

    /// The rules of steps in their order, each with its turn.
    fn turns<'s, 't>(
        &'s self,
        steps: impl Iterator<Item = &'s Taken<'t>>,
    ) -> impl Iterator<Item = Turned<'s, 't>>
    where
        't: 's,
    {
        let rules = steps.flat_map(|taken| taken.step.rules.iter().map(move |rule| (taken, rule)));
        rules.enumerate().map(move |(at, (taken, rule))| {
            let turn = Turn { rule: at + 1, ..self.others.turn };
            Turned { taken, rule, others: Others { turn, ..self.others } }
        })
    }

    /// Applies the rules of steps, in their order; the names of the containers that they are for.
    pub(crate) fn apply<'s, 't: 's>(
        &'s self,
        pod: &mut Cow<'_, Value>,
        steps: impl Iterator<Item = &'s Taken<'t>>,
    ) -> Result<Vec<String>, Stop> {
        let found = self.of(pod);
        let mut is_served = vec![false; found.len()];
        let mut names = NamesOfRules::default();
        for turned in self.turns(steps) {
            let mut constant = None;
            for (at, is_served) in found.iter().zip(&mut is_served) {
                if !turned.rule.kinds.contains(&at.kind) {
                    continue;
                }
                *is_served = true;
                turned.taken.scope.base.must_be_awaited(&turned.rule.field)?;
                let container = at.container(pod).unwrap_or(&Value::Null);
                let Some(overlay) = turned.overlay_once(at, container, &mut constant)? else {
                    continue;
                };
                names.add(&turned, at, &overlay)?;
                turned.trace(at, &overlay);
                if let Some(container) = at.container_mut(pod.to_mut()) {
                    turned.lay(container, &overlay)?;
                }
            }
        }
        let served = found.into_iter().zip(is_served).filter(|(_, is_served)| *is_served);
        Ok(served.map(|(at, _)| at.name).collect())
    }

    /// Records what containers have of what the rules would write, each by itself.
    pub(crate) fn claim(&self, pod: &Value, steps: &[Taken<'_>]) {
        let found = self.of(pod);
        for turned in self.turns(steps.iter()) {
            for at in found.iter().filter(|at| turned.rule.kinds.contains(&at.kind)) {
                // What fails does so where it is applied.
                let _ = at.container(pod).map(|container| turned.claim(at, container));
            }
        }
    }
}

impl Found {
    fn container<'p>(&self, pod: &'p Value) -> Option<&'p Value> {
        member(member(pod, "spec")?, self.list)?.get(self.place)
    }

    fn container_mut<'p>(&self, pod: &'p mut Value) -> Option<&'p mut Value> {
        pod.get_mut("spec")?.get_mut(self.list)?.get_mut(self.place)
    }
}

/// Names in lists of the overlays of rules, by rule and by list and place of the container: names of containers may
/// be twice in a pod.
#[derive(Default)]
struct NamesOfRules<'f>(BTreeMap<(&'f str, &'static str, usize), Names>);

impl<'f> NamesOfRules<'f> {
    fn add(&mut self, turned: &Turned<'f, '_>, at: &Found, overlay: &Value) -> Result<(), Failure> {
        if turned.taken.step.for_each.is_none() && has_each_once(overlay, lay::container()) {
            return Ok(());
        }
        let names = self.0.entry((&turned.rule.field, at.list, at.place)).or_default();
        turned.add(names, overlay)
    }
}

impl Turned<'_, '_> {
    /// [`Self::overlay`], which is filled in once if it is the same for all containers.
    fn overlay_once<'o>(
        &self,
        at: &Found,
        container: &Value,
        constant: &'o mut Option<Value>,
    ) -> Result<Option<Cow<'o, Value>>, Stop> {
        if !self.is_constant() {
            return Ok(self.overlay(at, container)?.map(Cow::Owned));
        }
        if constant.is_none() {
            *constant = self.overlay(at, container)?;
        }
        Ok(constant.as_ref().map(Cow::Borrowed))
    }

    /// Whether it is for each container, and lays the same on all of them.
    fn is_constant(&self) -> bool {
        self.rule.select.is_none() && self.rule.overlay.is_constant()
    }

    /// What the rule lays on a container, if it selects it.
    fn overlay(&self, at: &Found, container: &Value) -> Result<Option<Value>, Stop> {
        let Self { taken, rule, .. } = self;
        if self.is_constant() {
            return Ok(fill::structure(&rule.overlay, &taken.scope)?);
        }
        let index = Typed::of(&TypeDef::Int, Some(&Value::from(at.index)));
        let scope = narrowed(&taken.scope);
        let scope = scope.with("container", Datum::from(container)).with("index", index.datum());
        if !selects(rule, at, &taken.scope, &scope)? {
            return Ok(None);
        }
        Ok(fill::structure(&rule.overlay, &scope)?)
    }

    /// Adds the names in the overlay.
    fn add(&self, names: &mut Names, overlay: &Value) -> Result<(), Failure> {
        let added = names.add(overlay, lay::container());
        added.map_err(|text| Failure { field: format!("{}.overlay", self.rule.field), text })
    }

    fn trace(&self, at: &Found, overlay: &Value) {
        self.taken.trace(&self.rule.overlay, overlay, Some([at.list, &at.name]));
    }

    fn lay(&self, container: &mut Value, overlay: &Value) -> Result<(), Stop> {
        let Self { taken, rule, others } = self;
        let overlay = RuleOverlay {
            overlay,
            existing: rule.existing,
            existing_env: &rule.existing_env,
            env_first: rule.env_first,
            others: *others,
        };
        lay::rule(container, &overlay).map_err(|text| {
            let step = &taken.step.name;
            Stop::Denied(format!("step {step}: {text}"))
        })
    }

    /// Records what a container has of what the rule would write.
    fn claim(&self, at: &Found, container: &Value) -> Result<(), Stop> {
        let Some(overlay) = self.overlay(at, container)? else { return Ok(()) };
        self.add(&mut Names::default(), &overlay)?;
        self.trace(at, &overlay);
        self.lay(&mut container.clone(), &overlay)
    }
}

/// A scope may see what lives shorter.
fn narrowed<'n>(scope: &'n Scope<'_>) -> Scope<'n> {
    scope.clone()
}

fn selects(
    rule: &Rule,
    at: &Found,
    around: &Scope<'_>,
    scope: &Scope<'_>,
) -> Result<bool, Failure> {
    match &rule.select {
        None => Ok(true),
        Some(Select::Expression(expression)) => scope.holds(expression),
        Some(Select::Names(names)) => {
            let names = fill::structure(names, around)?;
            let names = names.as_ref().and_then(Value::as_array);
            Ok(names.into_iter().flatten().any(|name| name.as_str() == Some(&at.name)))
        }
    }
}
