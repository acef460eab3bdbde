//! One template is evaluated for a pod.

mod filled;
mod left_out;
mod named;
mod names;
mod rules;
mod taken;

use std::{borrow::Cow, collections::BTreeSet};

use injectd_cel::Typed;
use injectd_templates::{Message, Template, object::Action};
use serde_json::Value;

use self::{
    filled::{Filled, filled},
    taken::Taken,
};
use crate::{
    lay::{self, Laid, Others, Own, Refused, StepOverlay, fresh},
    layers::Layers,
    lazy::Lazy,
    mark::{Entry, container_names},
    parameters,
    ports::Ports,
    scope::{Base, Failure, Scope, Spent},
};

use rules::Containers;
pub(crate) use rules::Seen;

/// No names.
static NONE: BTreeSet<String> = BTreeSet::new();

/// Why a template is not applied.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The pod is denied.
    Denied(String),
    /// The template is left out, for this reason.
    Skipped(String),
    /// The same: a container or volume of the pod is in the way.
    InTheWay(String),
    /// An expression fails: `failurePolicy` says what that means.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A template, and what it is evaluated for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'r> {
    pub(crate) template: &'r Template,
    pub(crate) base: &'r Base<'r>,
    pub(crate) layers: &'r Layers,
    pub(crate) ports: &'r Ports,
    /// What is known about other templates.
    pub(crate) others: Others<'r>,
}

/// A pod on its way.
#[derive(Debug, Clone)]
pub(crate) struct Work<'p> {
    pub(crate) pod: Cow<'p, Value>,
    /// What an API server would refuse in it, if that is known.
    refused: Option<Refused>,
}

impl<'p> Work<'p> {
    pub(crate) fn of(pod: &'p Value) -> Self {
        Self { pod: Cow::Borrowed(pod), refused: None }
    }

    /// What an API server would refuse before the pod is changed.
    fn before(&mut self) -> Before<'p> {
        match (self.refused.take(), &self.pod) {
            (Some(refused), _) => Before::Refused(refused),
            (None, Cow::Borrowed(pod)) => Before::Pod(pod),
            (None, Cow::Owned(pod)) => Before::Refused(Refused::of(pod)),
        }
    }

    /// Whether an API server would not refuse what was changed.
    fn check(&mut self, before: Before<'_>) -> Result<(), Stop> {
        let refused = match (before, &self.pod) {
            // Nothing was changed.
            (Before::Pod(_), Cow::Borrowed(_)) => Ok(None),
            (Before::Pod(before), after) => Refused::between(before, after),
            (Before::Refused(refused), after) => refused.after(after),
        };
        self.refused = refused.map_err(Stop::Denied)?;
        Ok(())
    }
}

/// What an API server would refuse before a pod is changed.
enum Before<'p> {
    /// What it refuses in this pod, if somebody wants to know it.
    Pod(&'p Value),
    Refused(Refused),
}

/// A template that is in a pod, and which containers its rules see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InPod<'p> {
    /// What it has put into the pod.
    pub(crate) entry: &'p Entry,
    /// Names of the containers that other templates added.
    pub(crate) others: &'p BTreeSet<String>,
    pub(crate) seen: Seen,
}

/// What a template has done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// What it has put into the pod; `None` if nothing.
    pub(crate) entry: Option<Entry>,
    /// Whether a step was left out: a container or volume of the pod is in its way.
    pub(crate) is_blocked: bool,
    /// Cost of its expressions, in units of cel-go.
    pub(crate) cost: u64,
}

impl<'r> Run<'r> {
    /// Applies the template to a pod that does not have it. On an error the pod may be changed in part, unless the
    /// template is left out for a reason of its own. Warnings are there on an error, too.
    pub(crate) fn apply(
        &self,
        work: &mut Work<'_>,
        others: &BTreeSet<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Done, Stop> {
        let mut done = Done::default();
        let spent = Spent::default();
        let mut own = Own::default();
        let before = work.before();
        let pod = &mut work.pod;
        let served = self.with_steps(&spent, warnings, |steps| {
            let is_laid = self.overlays(steps, pod, &mut own)?;
            done.is_blocked = is_laid.contains(&false);
            let mut names = named::containers(steps)?;
            names.extend(own.containers.iter().cloned());
            let kept =
                || steps.iter().zip(&is_laid).filter(|(_, laid)| **laid).map(|(step, _)| step);
            let is_applied = kept().any(|step| step.step.overlay.is_some());
            let containers =
                Containers { own: &names, added: others, seen: Seen::Own, ..self.containers() };
            let served = containers.apply(pod, kept())?;
            Ok((is_applied || !served.is_empty()).then_some(served))
        })?;
        done.cost = spent.units();
        if let Some(served) = served {
            let hash = self.template.hash.clone();
            let added = in_order(&work.pod, &own.containers);
            done.entry = Some(Entry { hash, added, served });
        }
        work.check(before)?;
        Ok(done)
    }

    /// Names of the containers that a pod has, and that the template would have added just so.
    pub(crate) fn met(&self, pod: &Value) -> BTreeSet<String> {
        let before: BTreeSet<_> = container_names(pod).map(str::to_owned).collect();
        let (mut pod, mut own) = (Cow::Borrowed(pod), Own::default());
        let laid = self.with_steps(&Spent::default(), &mut Vec::new(), |steps| {
            self.overlays(steps, &mut pod, &mut own)
        });
        match laid {
            Ok(_) => own.containers.intersection(&before).cloned().collect(),
            // Why it fails is said where it is applied.
            Err(_) => BTreeSet::new(),
        }
    }

    /// Names of the containers in the overlays; none if an expression fails: why is said where it is applied.
    pub(crate) fn container_names(&self) -> BTreeSet<String> {
        let names = self.with_steps(&Spent::default(), &mut Vec::new(), |steps| {
            named::containers(steps).map_err(Stop::from)
        });
        names.unwrap_or_default()
    }

    /// Applies the rules of a template that is in the pod to containers that it has not served. On an error the
    /// pod may be changed in part. Warnings are there on an error, too.
    pub(crate) fn rules(
        &self,
        work: &mut Work<'_>,
        InPod { entry, others, seen }: InPod<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Done, Stop> {
        let mut done = Done::default();
        let spent = Spent::default();
        let own = entry.added.iter().cloned().collect();
        let known = entry.served.iter().cloned().collect();
        let containers =
            Containers { own: &own, added: others, served: &known, seen, ..self.containers() };
        if !containers.has_new(&work.pod, self.template) {
            return Ok(done);
        }
        let before = work.before();
        let served = self.with_steps(&spent, warnings, |steps| {
            let names = named::containers(steps)?.union(&own).cloned().collect();
            let mut kept = Vec::new();
            for step in steps.iter().filter(|step| !step.step.rules.is_empty()) {
                if !step.was_left_out(&work.pod, &own)? {
                    kept.push(step);
                }
            }
            Containers { own: &names, ..containers }.apply(&mut work.pod, kept.into_iter())
        })?;
        done.cost = spent.units();
        if !served.is_empty() {
            let served = entry.served.iter().cloned().chain(served).collect();
            done.entry = Some(Entry { served, ..entry.clone() });
        }
        work.check(before)?;
        Ok(done)
    }

    /// No containers.
    fn containers(&self) -> Containers<'r> {
        let none = &NONE;
        Containers { own: none, added: none, served: none, seen: Seen::Own, others: self.others }
    }

    /// Records what containers of a pod have of what rules would write. What fails does so where it is
    /// applied.
    pub(crate) fn claim_rules(&self, pod: &Value, seen: Seen, added: &BTreeSet<String>) {
        let _ = self.with_steps(&Spent::default(), &mut Vec::new(), |steps| {
            let own = named::containers(steps)?;
            let containers = Containers { own: &own, added, seen, ..self.containers() };
            containers.claim(pod, steps);
            Ok(())
        });
    }

    /// Whether parameters, validations and the conditions of steps let the template be applied.
    pub(crate) fn begins(&self) -> Result<(), Stop> {
        self.with_steps(&Spent::default(), &mut Vec::new(), |_| Ok(()))
    }

    /// Parameters and validations, and then what is done with the steps that are taken.
    fn with_steps<R>(
        &self,
        spent: &Spent,
        warnings: &mut Vec<String>,
        then: impl FnOnce(&[Taken<'_>]) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let read = parameters::read(&self.template.spec, &self.template.forms, self.layers)
            .map_err(Stop::Denied)?;
        warnings.extend(read.warnings);
        self.base.trace.iter().for_each(|trace| trace.parameters(&read.origins));
        let values = read.values.into_iter();
        let values = values.map(|(name, value)| (name, Value::from(value))).collect();
        let params = Typed::of(&self.template.params, Some(&Value::Object(values)));
        let scope = self.scope(spent, Some(&params));
        let variables = Lazy::new(&self.template.variables, scope.clone());
        let scope = Scope { variables: Some(&variables), ..scope };
        self.validate(&scope, warnings)?;
        taken::with(self.template, &scope, then)
    }

    /// What conditions of `match` see, and with parameters what all see.
    fn scope<'s>(&self, spent: &'s Spent, params: Option<&'s Typed>) -> Scope<'s>
    where
        'r: 's,
    {
        let is_strict = self.template.is_strict();
        let (base, ports) = (self.base, self.ports);
        Scope { base, params, variables: None, locals: Vec::new(), ports, spent, is_strict }
    }

    /// Whether the conditions of `match` hold; the name of one that does not.
    pub(crate) fn unmet_condition(&self) -> Result<Option<&'r str>, Failure> {
        let spent = Spent::default();
        let scope = self.scope(&spent, None);
        let mut failed = Ok(None);
        for condition in &self.template.conditions {
            match scope.holds(&condition.expression) {
                Ok(true) => {}
                // As for webhooks: one that does not hold counts more than one that fails.
                Ok(false) => return Ok(Some(&condition.name)),
                Err(failure) => failed = failed.and(Err(failure)),
            }
        }
        failed
    }

    fn validate(&self, scope: &Scope<'_>, warnings: &mut Vec<String>) -> Result<(), Stop> {
        for validation in &self.template.validations {
            if scope.holds(&validation.expression)? {
                continue;
            }
            let message = match &validation.message {
                Message::Constant(text) => text.clone(),
                Message::Expression(expression) => {
                    let Some(Value::String(text)) = scope.value(expression)? else {
                        let text = "expected a text, found another value";
                        return Err(Failure::of(expression, text).into());
                    };
                    text
                }
            };
            match validation.action {
                Action::Deny => return Err(Stop::Denied(message)),
                Action::Skip => return Err(Stop::Skipped(message)),
                Action::Warn => warnings.push(message),
            }
        }
        Ok(())
    }

    /// Lays the overlays; for each step, whether it is kept.
    fn overlays(
        &self,
        steps: &[Taken<'_>],
        pod: &mut Cow<'_, Value>,
        own: &mut Own,
    ) -> Result<Vec<bool>, Stop> {
        let mut filled = filled(steps)?;
        let is_namespaced = self.template.identity.namespace.is_some();
        let overlays: Vec<_> = filled
            .iter()
            .map(|filled| StepOverlay {
                overlay: &filled.overlay,
                existing: steps[filled.at].step.existing,
                on_conflict: steps[filled.at].step.on_conflict,
                init_containers: filled.placed[0].clone(),
                containers: filled.placed[1].clone(),
                is_namespaced,
                others: self.others,
            })
            .collect();
        let denied = |denied: lay::Denied| {
            let step = &steps[filled[denied.step].at].step.name;
            Stop::Denied(format!("step {step}: {}", denied.text))
        };
        let mut is_kept = vec![true; steps.len()];
        if fresh::is_new(pod, &overlays) {
            fresh::prepare(pod, own, &overlays).map_err(denied)?;
            for Filled { overlay, placed, .. } in &mut filled {
                fresh::put(pod.to_mut(), own, overlay, placed);
            }
            return Ok(is_kept);
        }
        let (laid, changed) = lay::laid(pod, own, &overlays).map_err(denied)?;
        for (filled, laid) in filled.iter().zip(laid) {
            match laid {
                Laid::Done => {}
                Laid::SkipStep => is_kept[filled.at] = false,
                Laid::SkipTemplate => {
                    let step = &steps[filled.at].step.name;
                    let text =
                        format!("step {step}: a container or volume of the pod is in the way");
                    return Err(Stop::InTheWay(text));
                }
            }
        }
        if let Some(changed) = changed {
            *pod = Cow::Owned(changed);
        }
        Ok(is_kept)
    }
}

/// Names of containers in the order of the pod: init containers first.
fn in_order(pod: &Value, names: &BTreeSet<String>) -> Vec<String> {
    container_names(pod).filter(|name| names.contains(*name)).map(str::to_owned).collect()
}
