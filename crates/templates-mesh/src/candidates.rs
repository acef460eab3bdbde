//! Which templates may be for a pod, by the keys of labels and annotations that they ask for.

use std::{collections::HashMap, sync::Arc};

use injectd_k8s::selector::LabelSelector;
use injectd_templates::{
    Template,
    object::{KeyPlace, Switch},
};

/// Templates by a key that a pod or its namespace must have. A pod that asks for nothing costs a look-up
/// for each of its keys, however many templates there are.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Those that ask for no key.
    always: Vec<usize>,
    /// Those of one namespace, by its name.
    of_namespace: HashMap<Box<str>, Vec<usize>>,
    by_key: [HashMap<Box<str>, Vec<usize>>; PLACES.len()],
}

/// Where keys are.
const PLACES: [KeyPlace; 4] = [
    KeyPlace::PodLabel,
    KeyPlace::PodAnnotation,
    KeyPlace::NamespaceLabel,
    KeyPlace::NamespaceAnnotation,
];

impl Candidates {
    /// The index of templates.
    pub(crate) fn of(templates: &[Arc<Template>]) -> Self {
        let mut candidates = Self::default();
        for (at, template) in templates.iter().enumerate() {
            candidates.add(at, template);
        }
        candidates
    }

    fn add(&mut self, at: usize, template: &Template) {
        if let Some(namespace) = &template.identity.namespace {
            // Such a template is for pods of its own namespace only, which leaves few enough: its
            // keys need no index.
            self.of_namespace.entry(namespace.as_str().into()).or_default().push(at);
            return;
        }
        for (place, key) in asked(template).unwrap_or_default() {
            self.by_key[place as usize].entry(key.into()).or_default().push(at);
        }
        if asked(template).is_none() {
            self.always.push(at);
        }
    }

    /// The templates that may be for a pod, in their order. `each_key` calls its function with the keys of a
    /// place.
    pub(crate) fn find(
        &self,
        namespace: &str,
        each_key: impl Fn(KeyPlace, &mut dyn FnMut(&str)),
    ) -> Vec<usize> {
        let mut found = self.always.clone();
        found.extend(self.of_namespace.get(namespace).into_iter().flatten());
        for (place, by_key) in PLACES.into_iter().zip(&self.by_key) {
            if !by_key.is_empty() {
                each_key(place, &mut |key| found.extend(by_key.get(key).into_iter().flatten()));
            }
        }
        // The templates without a key are in order already, and each is there once.
        if found.len() > self.always.len() {
            found.sort_unstable();
            found.dedup();
        }
        found
    }
}

/// The keys one of which must be there; `None` if none has to be.
fn asked(template: &Template) -> Option<Vec<(KeyPlace, &str)>> {
    // Any condition that has to hold would do. Keys of a pod come first: all pods of a namespace
    // share its labels, which leave out fewer of them.
    let of = &template.spec.r#match;
    if let Some(key) = required(of.pod_selector.as_ref()) {
        return Some(vec![(KeyPlace::PodLabel, key)]);
    }
    if let Some(switch) = template.spec.enablement.as_ref()
        && switch.default == Switch::Disabled
    {
        return Some(switch.r#in.iter().map(|place| (*place, switch.key.as_str())).collect());
    }
    required(of.namespace_selector.as_ref()).map(|key| vec![(KeyPlace::NamespaceLabel, key)])
}

/// A key that a selector requires.
fn required(selector: Option<&LabelSelector>) -> Option<&str> {
    let selector = selector?;
    // `NotIn` and `DoesNotExist` hold for pods without the key, too.
    let needs = |operator: &str| ["In", "Exists"].contains(&operator);
    let expression = selector.match_expressions.iter().find(|one| needs(&one.operator));
    let label = selector.match_labels.keys().next();
    label.or_else(|| expression.map(|one| &one.key)).map(String::as_str)
}
