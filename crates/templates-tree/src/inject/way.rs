//! A pod on its way through templates.

use std::collections::BTreeSet;

use injectd_templates::{Template, object::FailurePolicy};

use super::{
    decision::{Denied, State},
    known::{Known, others_of},
};
use crate::{
    mark::{Mark, container_names},
    run::{Done, Stop, Work},
    scope::Failure,
};

/// A pod on its way.
pub(super) struct Way<'p> {
    pub(super) work: Work<'p>,
    pub(super) mark: Mark,
    pub(super) known: Known,
    /// Keys of the templates that were evaluated.
    pub(super) applied: BTreeSet<String>,
    pub(super) warnings: Vec<String>,
    /// Whether something is in the way of a template that is left out.
    pub(super) is_blocked: bool,
    /// Whether a second pass may have more to do: a template was laid after that, and may have replaced what was
    /// in the way, or a container of the pod counted as that of the template.
    pub(super) is_open: bool,
}

impl<'p> Way<'p> {
    /// Goes back to the pod before a template that is left out.
    pub(super) fn restore(&mut self, before: Option<Work<'p>>) {
        if let Some(before) = before {
            self.work = before;
        }
    }

    pub(super) fn warn(&mut self, key: &str, warnings: Vec<String>) {
        let texts = warnings.into_iter().map(|text| format!("template {key}: {text}"));
        self.warnings.extend(texts);
    }

    /// Names of the containers that other templates added; none if the template has no rules, which alone read
    /// them.
    pub(super) fn others(&self, template: &Template, key: &str) -> BTreeSet<String> {
        if template.steps.iter().all(|step| step.rules.is_empty()) {
            return BTreeSet::new();
        }
        let entries = self.mark.0.iter().filter(|(known, _)| *known != key);
        let added = entries.flat_map(|(_, entry)| &entry.added);
        added.cloned().chain(others_of(&self.known.met, key)).collect()
    }

    /// What one template added and another one removed is in the mark of neither.
    pub(super) fn forget_removed(&mut self) {
        if self.applied.is_empty() {
            return;
        }
        let names: BTreeSet<_> = container_names(&self.work.pod).map(str::to_owned).collect();
        let of_call = self.mark.0.iter_mut().filter(|(key, _)| self.applied.contains(*key));
        for (_, entry) in of_call {
            entry.added.retain(|name| names.contains(name));
            entry.served.retain(|name| names.contains(name));
        }
    }

    pub(super) fn take(&mut self, key: &str, done: Done) {
        match done.entry {
            Some(entry) => {
                self.is_open |= self.is_blocked;
                self.mark.0.insert(key.to_owned(), entry);
            }
            None if done.is_blocked => self.block(key),
            None => {}
        }
    }

    /// Something is in the way of a template.
    fn block(&mut self, key: &str) {
        self.is_blocked = true;
        self.is_open |= self.known.met.get(key).is_some_and(|names| !names.is_empty());
    }

    /// A template that is left out, if it does not deny the pod.
    pub(super) fn stopped(&mut self, template: &Template, stop: Stop) -> Result<State, Denied> {
        let key = template.key();
        match stop {
            Stop::Denied(text) => Err(Denied { template: key, text, failed_at: None }),
            Stop::Skipped(reason) => Ok(State::Skipped(reason)),
            Stop::InTheWay(reason) => {
                self.block(&key);
                Ok(State::Skipped(reason))
            }
            Stop::Failed(failure) => {
                let text = named(template, &failure);
                match template.spec.failure_policy {
                    FailurePolicy::Fail => {
                        Err(Denied { template: key, text, failed_at: Some(failure.field) })
                    }
                    FailurePolicy::Ignore => {
                        self.warn(&key, vec![format!("left out: {text}")]);
                        Ok(State::Failed { field: failure.field, text })
                    }
                }
            }
        }
    }
}

/// A failure with the name of its step.
pub(super) fn named(template: &Template, failure: &Failure) -> String {
    let Failure { field, text } = failure;
    let index = field.strip_prefix("spec.steps[").and_then(|rest| rest.split_once(']'));
    let step = index.and_then(|(index, _)| template.steps.get(index.parse::<usize>().ok()?));
    match step {
        Some(step) => format!("step {}: {field}: {text}", step.name),
        None => format!("{field}: {text}"),
    }
}
