//! Templates that are given together.

use injectd_templates::conflicts::conflicts;

use injectd_command::templates::{Rule, Written};

/// Adds what is wrong with templates beside each other.
pub(super) fn check(templates: &mut [Written]) {
    let (places, read): (Vec<_>, Vec<_>) = templates
        .iter()
        .enumerate()
        .filter_map(|(index, written)| Some((index, written.template.as_ref()?)))
        .unzip();
    let found: Vec<_> = conflicts(&read);
    for conflict in found {
        templates[places[conflict.template]].warn(Rule::Conflict, &[conflict.problem]);
    }
}
