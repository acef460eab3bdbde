//! The ways in which a pod comes to have a template.

use std::collections::HashMap;

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

    /// What must be true of a pod, as texts.
    fn asked(&self) -> Vec<String> {
        let namespace = self.namespace.iter().map(|one| format!("{one:?}"));
        namespace.chain(self.facts.iter().map(|fact| format!("{fact:?}"))).collect()
    }

    /// What is true of its pods: what must be, what follows from it, and the empty text.
    fn truths(&self) -> Vec<String> {
        let follows = self.facts.iter().filter_map(Fact::follows);
        let follows = follows.map(|fact| format!("{fact:?}"));
        self.asked().into_iter().chain(follows).chain([String::new()]).collect()
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
    let mut kept = Kept::default();
    for way in ways {
        kept.add(way);
    }
    let mut ways: Vec<_> = kept.ways.into_iter().flatten().collect();
    for way in &mut ways {
        way.templates.sort();
        way.templates.dedup();
    }
    ways
}

/// Ways of which none is within another one. Only ways that ask for the same are compared: of a thousand
/// templates, few do.
#[derive(Default)]
struct Kept {
    /// In their order; `None` for one that is within a later one.
    ways: Vec<Option<Way>>,
    /// Ways by something that they ask for, which most others do not.
    by_rare: HashMap<String, Vec<usize>>,
    /// Ways by all that is true of their pods.
    by_any: HashMap<String, Vec<usize>>,
}

impl Kept {
    /// Adds a way. The result is the number of ways that it was compared with.
    fn add(&mut self, mut way: Way) -> usize {
        let truths = way.truths();
        let mut wider: Vec<_> =
            truths.iter().filter_map(|one| self.by_rare.get(one)).flatten().copied().collect();
        wider.sort_unstable();
        let mut compared = wider.len();
        for at in wider {
            if let Some(wider) = self.ways[at].as_mut().filter(|wider| way.is_within(wider)) {
                wider.templates.append(&mut way.templates);
                return compared;
            }
        }
        let count = |one: &String| self.by_any.get(one).map_or(0, Vec::len);
        let rare = way.asked().into_iter().rev().min_by_key(count).unwrap_or_default();
        let narrower = self.by_any.get(&rare).map_or(&[][..], Vec::as_slice);
        compared += narrower.len();
        for at in narrower {
            if let Some(mut narrow) = self.ways[*at].take_if(|narrow| narrow.is_within(&way)) {
                way.templates.append(&mut narrow.templates);
            }
        }
        let at = self.ways.len();
        for one in truths {
            self.by_any.entry(one).or_default().push(at);
        }
        self.by_rare.entry(rare).or_default().push(at);
        self.ways.push(Some(way));
        compared
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &str, facts: Vec<Fact>) -> Way {
        let identity = Identity { namespace: None, name: name.to_owned() };
        let namespace = vec![Requirement::new(NAMESPACE_NAME, Operator::NotIn, &["kube-system"])];
        let facts = [Fact::NoSystemClass].into_iter().chain(facts).collect();
        Way { templates: vec![identity], namespace, facts }
    }

    fn says(key: &str, word: Word) -> Fact {
        Fact::Says { place: KeyPlace::PodLabel, key: key.to_owned(), word }
    }

    /// Ways of different keys, each twice.
    fn compared(count: usize) -> usize {
        let mut kept = Kept::default();
        let of =
            |at: usize| way(&format!("t-{at}"), vec![says(&format!("key-{}", at / 2), Word::On)]);
        (0..count).map(|at| kept.add(of(at))).sum()
    }

    #[test]
    fn a_way_is_compared_with_those_that_ask_for_the_same() {
        let (few, many) = (compared(100), compared(1_000));
        assert!(many <= 11 * few && many < 4_000, "{few} and {many} comparisons");
    }

    #[test]
    fn ways_within_others_are_left_out_in_any_order() {
        let off = || way("off", vec![says("a", Word::NotOff)]);
        let on = || way("on", vec![says("a", Word::On), says("b", Word::On)]);
        let other = || way("other", vec![says("b", Word::On)]);
        let open = || Way { templates: vec![], ..Way::default() };
        for (ways, expected) in [
            (vec![off(), on()], vec!["off on"]),
            (vec![on(), off()], vec!["off on"]),
            (vec![on(), other(), off()], vec!["on other", "off"]),
            (vec![on(), off(), open(), other()], vec!["off on other"]),
        ] {
            let names = |way: &Way| {
                way.templates.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(" ")
            };
            let found: Vec<_> = without_others(ways).iter().map(names).collect();
            assert_eq!(found, expected);
        }
    }
}
