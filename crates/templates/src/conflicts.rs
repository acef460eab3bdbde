//! Templates that are given together, and that add things of one name with different content.
//!
//! Not for what a pod has already: that is known when the pod is there. What expressions name is not known.

mod things;

use injectd_k8s::selector::{LabelSelector, Operator, Requirement, Selector};

use crate::{Problem, Template};

use things::{Thing, things};

/// The label that each namespace has, with its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A conflict of a template with one that is applied before it.
#[derive(Debug)]
pub struct Conflict {
    /// The place of the template among those that were given.
    pub template: usize,
    /// What both add, where the later one adds it.
    pub problem: Problem,
}

/// The conflicts of templates that are given together: two add a container, a volume, a mount path or a
/// port of one name with different content, and a pod may match both.
#[must_use]
pub fn conflicts(templates: &[&Template]) -> Vec<Conflict> {
    let mut order: Vec<_> = templates.iter().enumerate().collect();
    // In the order in which they are applied, as the first of two decides what the other one meets.
    order.sort_by_key(|(_, template)| template.order());
    let things: Vec<_> = order.iter().map(|(_, template)| things(template)).collect();
    let mut found = Vec::new();
    for (later, (template, other)) in order.iter().enumerate() {
        for earlier in 0..later {
            let first = order[earlier].1;
            let pairs = || {
                things[earlier].iter().flat_map(|one| {
                    things[later].iter().filter(|two| one.conflicts(two)).map(move |two| (one, two))
                })
            };
            if pairs().next().is_none() || !may_both_match(first, other) {
                continue;
            }
            found.extend(pairs().map(|(_, thing)| Conflict {
                template: *template,
                problem: Problem::new(&thing.field, text(thing, first, other)),
            }));
        }
    }
    found.sort_by(|one, other| (one.template, &one.problem).cmp(&(other.template, &other.problem)));
    // Two steps of a template may meet the same thing of another one.
    found.dedup_by(|one, other| one.template == other.template && one.problem == other.problem);
    found
}

fn text(thing: &Thing, first: &Template, later: &Template) -> String {
    let why = match (&first.identity.namespace, &later.identity.namespace) {
        (None, Some(_)) => "it is a cluster template".to_owned(),
        _ if first.spec.priority == later.spec.priority => "its name comes first".to_owned(),
        _ => format!("its priority is {}, not {}", first.spec.priority, later.spec.priority),
    };
    let Thing { kind, name, effect, .. } = thing;
    let key = first.key();
    format!(
        "template {key} adds {} {name} as well, with other content, and is applied first, because \
         {why}: {effect}",
        kind.word(),
    )
}

/// Whether a pod may match both, as far as their selectors say.
fn may_both_match(one: &Template, other: &Template) -> bool {
    let [one, other] = [one, other].map(|template| {
        let of = &template.spec.r#match;
        let in_namespace = template
            .identity
            .namespace
            .iter()
            .map(|name| Requirement::new(NAME_LABEL, Operator::In, &[name]));
        let namespaces = selector(of.namespace_selector.as_ref()).and(&in_namespace.collect());
        [namespaces, selector(of.pod_selector.as_ref())]
    });
    one.iter().zip(&other).all(|(one, other)| one.and(other).example().is_some())
}

/// A selector; one that is not valid, or is not written, excludes nothing here.
fn selector(written: Option<&LabelSelector>) -> Selector {
    written.and_then(|written| Selector::new(written.clone()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
