//! Which pods a template is for, in CEL of a policy: what selectors and the condition of a webhook say, and what
//! the key of enablement says, which a policy can read of the namespace, too.

use std::mem;

use injectd_k8s::selector::Selector;
use injectd_templates::{Condition, Template, Validation, object::Action, scope};

use super::{super::selector::to_cel, enablement};

/// CEL that is true for exactly the pods for which a template is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scope(pub(super) String);

/// The field of the note that a template is for all pods: more are not shown than it is for.
const ALL: &str = "spec.match";

/// The scope of a template. Its enablement and its validations are taken out of it.
///
/// # Errors
/// Why it cannot be said.
pub(super) fn scope(template: &mut Template) -> Result<Scope, String> {
    let enablement = template.spec.enablement.take();
    // A pod for which one does not hold is left out, as if it were a condition of `match`.
    let skips = mem::take(&mut template.validations).into_iter();
    let skips = skips.filter(|validation| validation.action == Action::Skip);
    let skips =
        skips.map(|Validation { expression, .. }| Condition { name: String::new(), expression });
    let conditions = mem::take(&mut template.conditions).into_iter();
    template.conditions = conditions.chain(skips).collect();
    let found = scope::Scope::of([&*template], None);
    let wider = found.notes.iter().chain(&found.all_pods);
    if let Some(note) = wider.clone().find(|note| note.problem.field != ALL) {
        return Err(note.problem.to_string());
    }
    let [entry] = &*found.entries else {
        return Err("its scope has several parts".to_owned());
    };
    let mut all = Vec::new();
    for (labels, selector) in [
        ("variables.namespaceLabels", &entry.namespace_selector),
        ("variables.podLabels", &entry.object_selector),
    ] {
        all.extend(of_selector(labels, selector));
    }
    all.extend(entry.condition.iter().map(|condition| format!("({condition})")));
    if let Some(enablement) = &enablement {
        all.push(enablement::to_cel(enablement, &template.identity.name));
    }
    if all.is_empty() {
        all.push("true".to_owned());
    }
    Ok(Scope(all.join(" &&\n")))
}

fn of_selector(labels: &str, selector: &Selector) -> Vec<String> {
    selector.requirements().iter().map(|requirement| to_cel(labels, requirement)).collect()
}
