//! The scope of a webhook that serves templates: which pods an API server shows to it. It is the smallest
//! superset of the pods that the templates may change that entries of a webhook can say.
//!
//! Selectors and conditions of an entry see the pod and the labels of its namespace, and no more. What they
//! cannot say is left out, so that more pods are shown, and never fewer.
//!
//! Not for the webhook's configuration, and not for what becomes of a pod.

mod condition;
mod entries;
mod fact;
mod largest;
mod refused;
mod way;

use std::fmt;

use injectd_k8s::selector::{Operator, Requirement, Selector};

use self::{
    entries::{Part, divided},
    way::{Way, without_others},
};
use crate::{Problem, Template, object::Identity};

/// Which pods an API server shows to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Entries of the webhook's configuration: a pod is in one of them at most. None: no pod is shown.
    pub entries: Vec<Entry>,
    /// Why all pods are shown; empty if they are not.
    pub all_pods: Vec<Note>,
    /// What could not be written: more pods are shown than the templates change.
    pub notes: Vec<Note>,
}

/// An entry of a webhook's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its `namespaceSelector`.
    pub namespace_selector: Selector,
    /// Its `objectSelector`.
    pub object_selector: Selector,
    /// The expression of its only match condition, which never fails; `None`: it has none.
    pub condition: Option<String>,
    /// The terms of the condition for a person, with the templates that have them.
    pub pods: Vec<String>,
}

/// Why more pods are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The template; `None`: all of them together.
    pub template: Option<Identity>,
    /// Where, why, and what to write instead.
    pub problem: Problem,
}

impl Scope {
    /// The scope of some templates; injectd's own namespace is never in it.
    #[must_use]
    pub fn of<'t>(
        templates: impl IntoIterator<Item = &'t Template>,
        own_namespace: Option<&str>,
    ) -> Self {
        let (mut ways, mut notes) = (Vec::new(), Vec::new());
        for template in templates {
            let found = way::of_template(template, own_namespace);
            ways.extend(found.ways);
            notes.extend(found.notes);
        }
        let mut ways = without_others(ways);
        loop {
            let parts = divided(ways.clone());
            if let Some(part) = parts.iter().find(|part| part.is_all()) {
                let all_pods = why_all(part, &notes);
                notes.retain(|note| !all_pods.contains(note));
                return Self { entries: whole(&ways), all_pods, notes };
            }
            let refused: Vec<_> = parts.iter().flat_map(Part::refused).collect();
            if refused.is_empty() {
                return Self::of_parts(&parts, notes, &ways);
            }
            for refused in &refused {
                notes.extend(refused.leave_out(&mut ways));
            }
            ways = without_others(ways);
        }
    }

    fn of_parts(parts: &[Part], notes: Vec<Note>, ways: &[Way]) -> Self {
        match parts.iter().map(checked).collect() {
            Ok(entries) => Self { entries, all_pods: Vec::new(), notes },
            Err(text) => {
                let problem = Problem::new("spec", text);
                let all_pods = vec![Note { template: None, problem }];
                Self { entries: whole(ways), all_pods, notes }
            }
        }
    }
}

impl Entry {
    /// All pods, but those of injectd's own namespace.
    #[must_use]
    pub fn of_all_pods(own_namespace: Option<&str>) -> Self {
        let outside = |own| Requirement::new(fact::NAMESPACE_NAME, Operator::NotIn, &[own]);
        Self {
            namespace_selector: own_namespace.map(outside).into_iter().collect(),
            object_selector: Selector::default(),
            condition: None,
            pods: Vec::new(),
        }
    }
}

/// One entry with all pods.
fn whole(ways: &[Way]) -> Vec<Entry> {
    Part::of_all(ways).entry().into_iter().collect()
}

/// Why a part has all pods: what its templates cannot say, or that they are for all.
fn why_all(part: &Part, notes: &[Note]) -> Vec<Note> {
    let mut why = Vec::new();
    for template in part.widest().into_iter().flat_map(|way| &way.templates) {
        let before = why.len();
        why.extend(notes.iter().filter(|note| note.template.as_ref() == Some(template)).cloned());
        if why.len() == before {
            let problem = Problem::new("spec.match", "the template is for all pods");
            why.push(Note { template: Some(template.clone()), problem });
        }
    }
    why
}

/// The entry of a part, if an API server compiles it.
fn checked(part: &Part) -> Result<Entry, String> {
    let entry = part.entry()?;
    if let Some(condition) = &entry.condition {
        refused::compiled(condition)?;
    }
    Ok(entry)
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.template {
            Some(template) => write!(f, "template {template}: {}", self.problem),
            None => f.write_str(&self.problem.text),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |selector: &Selector, words: fn(&Requirement) -> String| {
            selector.requirements().iter().map(words).collect::<Vec<_>>().join(" and ")
        };
        match of(&self.namespace_selector, fact::of_namespace) {
            namespaces if namespaces.is_empty() => f.write_str("in all namespaces")?,
            namespaces => write!(f, "in namespaces where {namespaces}")?,
        }
        let pods = of(&self.object_selector, fact::of_label);
        if !pods.is_empty() {
            write!(f, ", of pods where {pods}")?;
        }
        f.write_str(":")?;
        self.pods.iter().try_for_each(|pods| write!(f, "\n  - {pods}"))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.all_pods {
            [] if self.entries.is_empty() => f.write_str("called for: no pods")?,
            [] => f.write_str("called for:")?,
            [why] => write!(f, "called for: all pods, because {why}")?,
            all => {
                f.write_str("called for: all pods, because")?;
                all.iter().try_for_each(|why| write!(f, "\n- {why}"))?;
            }
        }
        self.entries.iter().try_for_each(|entry| write!(f, "\n- {entry}"))?;
        if !self.notes.is_empty() {
            f.write_str("\ncalled for more pods than necessary:")?;
            self.notes.iter().try_for_each(|note| write!(f, "\n- {note}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
