//! The ways in which a pod comes to have a template.

use injectd_k8s::selector::{LabelSelector, Operator, Requirement, Selector};

use super::{
    Note, condition,
    fact::{Fact, NAMESPACE_NAME, Word},
};
use crate::{
    Problem, Template,
    matching::{OFF, SYSTEM_NAMESPACE},
    object::{Enablement, EnablementValues, Identity, KeyPlace, OptOut, Switch, SystemPods},
};

/// What must be true of a pod so that a template may change it: all of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Way {
    /// The templates.
    pub(super) templates: Vec<Identity>,
    /// Of the labels of the namespace.
    pub(super) namespace: Vec<Requirement>,
    /// Of the pod.
    pub(super) facts: Vec<Fact>,
}

impl Way {
    /// Whether each pod of this way is one of the other.
    fn is_within(&self, other: &Self) -> bool {
        other.namespace.iter().all(|requirement| self.namespace.contains(requirement))
            && other.facts.iter().all(|fact| self.facts.iter().any(|own| own.implies(fact)))
    }

    /// Adds templates.
    pub(super) fn join(&mut self, templates: Vec<Identity>) {
        self.templates.extend(templates);
        self.templates.sort();
        self.templates.dedup();
    }

    fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.namespace.extend(other.namespace.iter().cloned());
        both.facts.extend(other.facts.iter().cloned());
        both
    }

    /// With what the key of enablement says at a place.
    fn says(mut self, enablement: &Enablement, place: KeyPlace, word: Word) -> Self {
        let key = enablement.key.clone();
        match (place, &word) {
            (KeyPlace::PodLabel | KeyPlace::PodAnnotation, _) => {
                self.facts.push(Fact::Says { place, key, word });
            }
            (KeyPlace::NamespaceLabel, Word::NotOff) => self.namespace.push(not_off(&key)),
            (KeyPlace::NamespaceLabel, Word::On | Word::OnOrName(_)) => {
                // A selector has no case: a list of all ways to write `enabled` has 128 words.
                self.namespace.push(Requirement::new(&key, Operator::Exists, &[]));
                self.namespace.push(not_off(&key));
            }
            // No selector has annotations of namespaces.
            (KeyPlace::NamespaceAnnotation, _) => {}
        }
        self.namespace.dedup();
        self
    }
}

/// A label of a namespace that does not switch off, as it is usually written: `fALSE` is called for in vain.
fn not_off(key: &str) -> Requirement {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    let words = OFF.iter().flat_map(|&word| [word.to_owned(), capital(word), word.to_uppercase()]);
    let words: Vec<_> = words.collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    Requirement::new(key, Operator::NotIn, &words)
}

/// The ways of a template, and what could not be written.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) ways: Vec<Way>,
    pub(super) notes: Vec<Note>,
}

/// The ways of a template in which a pod comes to have it.
pub(super) fn of_template(template: &Template, own_namespace: Option<&str>) -> Ways {
    let mut notes = Vec::new();
    let mut note = |problem| {
        let template = Some(template.identity.clone());
        notes.push(Note { template, problem });
    };
    let matched = matched(template, own_namespace, &mut note);
    let mut ways = match &template.spec.enablement {
        None => vec![Way::default()],
        Some(enablement) => switched_on(enablement, &template.identity.name),
    };
    if let Some(enablement) = &template.spec.enablement
        && enablement.r#in.contains(&KeyPlace::NamespaceAnnotation)
    {
        let text = "a webhook cannot select namespaces by annotations: use NamespaceLabel";
        note(Problem::new("spec.enablement.in", text));
    }
    for way in &mut ways {
        *way = matched.and(way);
    }
    Ways { ways, notes }
}

/// Without ways that are within others.
pub(super) fn without_others(ways: Vec<Way>) -> Vec<Way> {
    let mut kept: Vec<Way> = Vec::new();
    for way in ways {
        if let Some(wider) = kept.iter_mut().find(|known| way.is_within(known)) {
            wider.join(way.templates);
            continue;
        }
        let mut way = way;
        let (within, others) = kept.into_iter().partition(|known| known.is_within(&way));
        kept = others;
        let within: Vec<Way> = within;
        for narrow in within {
            way.join(narrow.templates);
        }
        kept.push(way);
    }
    kept
}

/// What must be true by `match`.
fn matched(
    template: &Template,
    own_namespace: Option<&str>,
    note: &mut impl FnMut(Problem),
) -> Way {
    let rules = &template.spec.r#match;
    let mut way = Way { templates: vec![template.identity.clone()], ..Way::default() };
    let name = |operator, name: &str| Requirement::new(NAMESPACE_NAME, operator, &[name]);
    way.namespace.extend(own_namespace.map(|own| name(Operator::NotIn, own)));
    way.namespace.extend(template.identity.namespace.as_deref().map(|own| name(Operator::In, own)));
    if rules.system_pods == SystemPods::Exclude {
        way.namespace.push(name(Operator::NotIn, SYSTEM_NAMESPACE));
        way.facts.push(Fact::NoSystemClass);
    }
    // A template that is read has selectors that are valid.
    let requirements = |selector: &Option<LabelSelector>| {
        let selector = Selector::valid(selector.clone().unwrap_or_default());
        selector.unwrap_or_default().requirements().to_vec()
    };
    way.namespace.extend(requirements(&rules.namespace_selector));
    way.facts.extend(requirements(&rules.pod_selector).into_iter().map(Fact::Label));
    for condition in &template.conditions {
        match condition::said(&condition.expression) {
            Ok(text) => way.facts.push(Fact::Condition { name: condition.name.clone(), text }),
            Err(problem) => note(problem),
        }
    }
    way
}

/// The ways in which a template is switched on: by each place, if those before it do not switch it off.
fn switched_on(enablement: &Enablement, template: &str) -> Vec<Way> {
    let on = || match enablement.values {
        EnablementValues::Switch => Word::On,
        EnablementValues::Name => Word::OnOrName(template.to_owned()),
    };
    let (mut ways, mut before) = (Vec::new(), Way::default());
    for place in &enablement.r#in {
        ways.push(before.clone().says(enablement, *place, on()));
        let is_pod = matches!(place, KeyPlace::PodLabel | KeyPlace::PodAnnotation);
        if !is_pod || enablement.opt_out == OptOut::Honored {
            before = before.says(enablement, *place, Word::NotOff);
        }
    }
    if enablement.default == Switch::Enabled {
        ways.push(before);
    }
    ways
}
